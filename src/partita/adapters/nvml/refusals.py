"""What NVML says when it refuses, in the words of the port."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pynvml  # type: ignore[import-untyped]

from partita.errors import DriverError
from partita.ports.gpu_driver import DriverFailure

__all__ = ["failure_of", "refused", "translated"]

_FAILURES = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: DriverFailure.NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION: DriverFailure.NO_PERMISSION,
    pynvml.NVML_ERROR_INVALID_ARGUMENT: DriverFailure.INVALID_ARGUMENT,
    pynvml.NVML_ERROR_NOT_FOUND: DriverFailure.NOT_FOUND,
    pynvml.NVML_ERROR_IN_USE: DriverFailure.IN_USE,
    pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES: DriverFailure.INSUFFICIENT_RESOURCES,
    pynvml.NVML_ERROR_GPU_IS_LOST: DriverFailure.GPU_IS_LOST,
    pynvml.NVML_ERROR_RESET_REQUIRED: DriverFailure.RESET_REQUIRED,
    pynvml.NVML_ERROR_TIMEOUT: DriverFailure.TIMEOUT,
}
_HINTS = {
    DriverFailure.NOT_SUPPORTED: "MIG must be on, and the GPU and its driver must support the call",
    DriverFailure.NO_PERMISSION: "run as root, or with access to the MIG capability devices",
    DriverFailure.INVALID_ARGUMENT: "`nvidia-smi mig -lgipp` lists what the GPU accepts",
    DriverFailure.NOT_FOUND: "`nvidia-smi -L` lists what the node has now",
    DriverFailure.IN_USE: "end the programs on the GPU, monitoring included",
    DriverFailure.INSUFFICIENT_RESOURCES: "destroy what stands there, or take another placement",
    DriverFailure.GPU_IS_LOST: "see `dmesg` for the XID; the node may have to be restarted",
    DriverFailure.RESET_REQUIRED: "reset the GPU: nvidia-smi --gpu-reset",
    DriverFailure.TIMEOUT: "the driver did not answer in time; see `dmesg`",
    DriverFailure.UNKNOWN: "check that `nvidia-smi` works on this node",
}


def failure_of(error: Any) -> DriverFailure:
    """Return the failure that an error of pynvml stands for."""
    return _FAILURES.get(error.value, DriverFailure.UNKNOWN)


def refused(failure: DriverFailure, said: str, uuid: str | None) -> DriverError:
    """Return the error of the port."""
    about = f" for {uuid}" if uuid is not None else ""
    return DriverError(
        message=f"the GPU driver refused{about}: {said}",
        hint=_HINTS[failure],
        failure=failure.value,
        uuid=uuid,
    )


@contextmanager
def translated(uuid: str | None = None) -> Iterator[None]:
    """Let errors of pynvml out as errors of the port."""
    try:
        yield
    except pynvml.NVMLError as error:
        raise refused(failure_of(error), str(error), uuid) from error
