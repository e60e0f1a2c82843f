"""partita: split the GPUs of a Kubernetes cluster and see who uses them."""

__all__ = ["__version__"]

__version__ = "0.1.0"
