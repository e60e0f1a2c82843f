"""NVML, NVIDIA's management library. The only package that imports pynvml."""

from partita.adapters.nvml.driver import NvmlDriver, reset_with_nvidia_smi

__all__ = ["NvmlDriver", "reset_with_nvidia_smi"]
