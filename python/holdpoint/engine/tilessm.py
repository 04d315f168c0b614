"""Apex-X's TensorRT plugin for the scan of tiles, TileSSMScan, as an engine of that one layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..workloads import Skip
from .model import Arrays
from .shapes import Shapes, Tensor
from .tensorrt import TensorrtModel

# Named in place of a model's file.
NAME = "plugin:TileSSMScan"
CLAMP = 1e4
# As much as Apex-X's builder gets.
WORKSPACE_BYTES = 1 << 20


class TileSsmModel(TensorrtModel):
    """The plugin alone: the shape of the tokens gives all others."""

    def __init__(self, plugins: Sequence[str]) -> None:
        if not self.open(plugins):
            raise Skip("missing_plugin_library")
        self.creator = self.trt.get_plugin_registry().get_creator("TileSSMScan", "1", "apexx")
        if self.creator is None:
            raise Skip("tilessm_plugin_creator_not_registered")

    def inputs(self) -> Sequence[Tensor]:
        return [Tensor("tokens", (None, None, None), "float16")]

    def draw(self, shapes: Shapes, seed: int) -> Arrays:
        """Apex-X's parameters: decays below one, positive gains, a small bias, a state of zeros."""
        import numpy

        batch, _, channels = shapes["tokens"]
        random = numpy.random.default_rng(seed + 7)
        arrays = {
            **super().draw(shapes, seed),
            "decay": random.random(channels) * 0.8 + 0.1,
            "input_gain": random.random(channels) * 1.5 + 0.05,
            "output_gain": random.random(channels) * 1.5 + 0.05,
            "state_bias": random.standard_normal(channels) * 0.1,
            "init_state": numpy.zeros((batch, channels)),
        }
        return {name: array.astype("float16") for name, array in arrays.items()}

    def place(self, arrays: Arrays) -> Arrays:
        return {name: self.torch.from_numpy(array).to(self.device) for name, array in arrays.items()}

    def start(self, shapes: Shapes) -> Any:
        every = list_shapes(*shapes["tokens"])
        self.load(self.build(every))
        return super().start(every)

    def build(self, shapes: Shapes) -> object:
        import numpy

        trt = self.trt
        builder = trt.Builder(self.logger)
        network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
        inputs = [network.add_input(name, trt.float16, shape) for name, shape in shapes.items()]
        kinds = trt.PluginFieldType
        fields = trt.PluginFieldCollection(
            [
                trt.PluginField("direction", numpy.array([0], "int32"), kinds.INT32),
                trt.PluginField("clamp_value", numpy.array([CLAMP], "float32"), kinds.FLOAT32),
            ]
        )
        try:
            layer = network.add_plugin_v2(inputs, self.creator.create_plugin("tile_ssm", fields))
            for at, name in enumerate(("y", "final_state")):
                output = layer.get_output(at)
                output.name = name
                network.mark_output(output)
            config = builder.create_builder_config()
            config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, WORKSPACE_BYTES)
            data: object = builder.build_serialized_network(network, config)
        except Exception as error:
            raise Skip(f"engine_build_failed:{type(error).__name__}") from error
        if data is None:
            raise Skip("engine_build_returned_none")
        return data

    def reference(self, arrays: Arrays) -> Arrays:
        """The scan as it is defined, in double precision."""
        import numpy

        tokens, decay, input_gain, output_gain, bias, state = (arrays[name].astype("float64") for name in arrays)
        tokens = numpy.nan_to_num(tokens, nan=0.0, posinf=CLAMP, neginf=-CLAMP).clip(-CLAMP, CLAMP)
        decay = decay.clip(1e-6, 1 - 1e-6)
        outputs = numpy.empty_like(tokens)
        for step in range(tokens.shape[1]):
            state = decay * state + (1 - decay) * (input_gain * tokens[:, step] + bias)
            outputs[:, step] = output_gain * state
        return {"y": outputs.astype("float16"), "final_state": state.astype("float16")}


def list_shapes(batch: int, steps: int, channels: int) -> Shapes:
    vectors = dict.fromkeys(("decay", "input_gain", "output_gain", "state_bias"), (channels,))
    return {"tokens": (batch, steps, channels), **vectors, "init_state": (batch, channels)}
