"""The built-in ops in PyTorch and Triton; `holdpoint.ops.suite` serves them as workloads."""
