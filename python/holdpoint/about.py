"""The version of the package, which is that of the binary. A test holds it against Cargo.toml."""

# Written down here: asking importlib.metadata takes a tenth of the worker's start-up.
__version__ = "0.1.0"
