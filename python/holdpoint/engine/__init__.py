"""Measuring models with inference engines: ONNX Runtime and TensorRT (docs/engines.md)."""
