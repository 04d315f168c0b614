"""Writes model.onnx: a small network on images of any number and size, and a class for each."""

from __future__ import annotations

import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS, CLASSES = 16, 10


def weights(name: str, *shape: int) -> onnx.TensorProto:
    random = numpy.random.default_rng(len(name))
    return numpy_helper.from_array(random.standard_normal(shape).astype("float32") / 10, name)


def build(layers: int) -> onnx.ModelProto:
    """Convolutions, the mean over each channel, and a matrix."""
    nodes, constants, value = [], [], "image"
    for layer in range(layers):
        before = CHANNELS if layer else 3
        constants += [weights(f"kernel{layer}", CHANNELS, before, 3, 3), weights(f"bias{layer}", CHANNELS)]
        nodes += [
            helper.make_node("Conv", [value, f"kernel{layer}", f"bias{layer}"], [f"conv{layer}"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"conv{layer}"], [f"relu{layer}"]),
        ]
        value = f"relu{layer}"
    constants.append(weights("classes", CHANNELS, CLASSES))
    nodes += [
        helper.make_node("GlobalAveragePool", [value], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        helper.make_node("MatMul", ["flat", "classes"], ["scores"]),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, "height", "width"])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", CLASSES])
    graph = helper.make_graph(nodes, "small", [image], [scores], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    path, layers = sys.argv[1:] or ("model.onnx", "2")
    onnx.save(build(int(layers)), path)
