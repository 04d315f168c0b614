"""The PyTorch versions of holdpoint.ops, on the CPU, for fuzz-torch.toml in this folder."""

from holdpoint.ops import kernels, torch_ops

kernels.declare(lambda: torch_ops, "torch")
