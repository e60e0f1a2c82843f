"""What NVML tells of one GPU, read into the nouns of the port."""

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pynvml  # type: ignore[import-untyped]

from partita.model.gpu import MigMode
from partita.model.placement import Placement
from partita.ports.gpu_driver import (
    DriverInstance,
    DriverProcess,
    MigDevice,
    Recovery,
)

__all__ = [
    "NOBODY",
    "XIDS",
    "Handle",
    "Profile",
    "address_of",
    "compute_instances",
    "compute_profiles",
    "gpu_profiles",
    "handle_of",
    "instance_of",
    "listed",
    "memory_of",
    "mig_devices_of",
    "minor_of",
    "modes_of",
    "processes_of",
    "reach",
    "recovery_of",
    "text_of",
    "try_to_watch",
]

Handle = Any  # opaque ctypes pointers of pynvml

XIDS = pynvml.nvmlEventTypeXidCriticalError
NOBODY = 0xFFFFFFFF  # how NVML says that there is no instance
_MOST_INSTANCES = 32  # some drivers tell a wrong limit per profile; no GPU has as many as this
ABSENT = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
_NO_SUCH_PROFILE = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT)
_UNTOLD = (*ABSENT, pynvml.NVML_ERROR_INVALID_ARGUMENT)  # the call, or all that it was asked for
# What each asks for: NVIDIA, "GPU Memory Error Management", recovery action flag; told since R565.
# The last two are numbers because older pynvml has no name for them. 5 is missing on purpose: a
# reset of the bus in R580 (pynvml 13.580), recovery of the IMEX domain in R590 and later.
_RECOVERIES = {
    pynvml.NVML_GPU_RECOVERY_ACTION_NONE: Recovery.NONE,
    pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET: Recovery.RESET,
    pynvml.NVML_GPU_RECOVERY_ACTION_NODE_REBOOT: Recovery.REBOOT,
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_P2P: Recovery.DRAIN,
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET: Recovery.DRAIN,
    6: Recovery.RESET,  # NVML_GPU_RECOVERY_ACTION_BUS_RESET
    7: Recovery.REBOOT,  # NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT
}
# Older drivers: row remapping (Ampere and later) and page retirement (before) wait for a reset.
_PENDING_FIELDS = (pynvml.NVML_FI_DEV_REMAPPED_PENDING, pynvml.NVML_FI_DEV_RETIRED_PENDING)
_RECOVERY_FIELDS = (pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, *_PENDING_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A profile as NVML tells it: its id, slices and multiprocessors."""

    profile_id: int
    slices: int
    processors: int


def minor_of(device: Handle) -> int | None:
    """Return what NVML says of it."""
    try:
        return int(pynvml.nvmlDeviceGetMinorNumber(device))
    except pynvml.NVMLError as error:
        if error.value not in ABSENT:
            raise
        return None


def recovery_of(device: Handle) -> Recovery | None:
    """Ask for all fields in one call; each is answered, or refused, by itself.

    An action that is not known for sure is taken for the strongest, a reboot: the GPU is not well,
    and somebody has to look.
    """
    try:
        answers = pynvml.nvmlDeviceGetFieldValues(device, _RECOVERY_FIELDS)
    except pynvml.NVMLError as error:
        if error.value not in _UNTOLD:
            raise
        return None
    told = {
        answer.fieldId: answer.value.uiVal
        for answer in answers
        if answer.nvmlReturn == pynvml.NVML_SUCCESS
    }
    action = told.pop(pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, None)
    if action is not None:
        return _RECOVERIES.get(action, Recovery.REBOOT)
    if not told:
        return None
    return Recovery.RESET if any(told.values()) else Recovery.NONE


def modes_of(device: Handle) -> tuple[MigMode, MigMode]:
    """Return current and pending MIG mode."""
    try:
        current, pending = pynvml.nvmlDeviceGetMigMode(device)
    except pynvml.NVMLError as error:
        if error.value not in ABSENT:
            raise
        return MigMode.UNSUPPORTED, MigMode.UNSUPPORTED
    return (
        MigMode.ON if current == pynvml.NVML_DEVICE_MIG_ENABLE else MigMode.OFF,
        MigMode.ON if pending == pynvml.NVML_DEVICE_MIG_ENABLE else MigMode.OFF,
    )


def memory_of(device: Handle) -> tuple[int | None, int | None]:
    """Return total and reserved bytes; old drivers tell no reserved, some boards neither."""
    for version in (pynvml.nvmlMemory_v2, None):
        try:
            memory = pynvml.nvmlDeviceGetMemoryInfo(device, version)
        except pynvml.NVMLError as error:
            if error.value not in (*ABSENT, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH):
                raise
            continue
        return memory.total, memory.reserved if version else None
    return None, None


def instance_of(handle: Handle, mig_devices: Mapping[int, tuple[MigDevice, ...]]) -> DriverInstance:
    """Return a GPU instance as the port has it."""
    info = pynvml.nvmlGpuInstanceGetInfo(handle)
    return DriverInstance(
        instance_id=info.id,
        profile_id=info.profileId,
        placement=Placement(start=info.placement.start, size=info.placement.size),
        mig_devices=mig_devices.get(info.id, ()),
    )


def mig_devices_of(device: Handle) -> Mapping[int, tuple[MigDevice, ...]]:
    """Return the MIG devices by instance id; their indices may have holes.

    A device that was found and then cannot be asked is a failure, not a hole: it may be in use.
    """
    found: dict[int, tuple[MigDevice, ...]] = {}
    for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(device)):
        try:
            mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(device, index)
        except pynvml.NVMLError_NotFound:
            continue
        instance_id = pynvml.nvmlDeviceGetGpuInstanceId(mig)
        one = MigDevice(
            uuid=pynvml.nvmlDeviceGetUUID(mig),
            index=index,
            compute_instance_id=pynvml.nvmlDeviceGetComputeInstanceId(mig),
        )
        found[instance_id] = (*found.get(instance_id, ()), one)
    return found


def gpu_profiles(device: Handle) -> Iterator[Profile]:
    """Yield the GPU-instance profiles of a GPU."""
    for index in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(device, index, version=1)
        except pynvml.NVMLError as error:
            if error.value not in _NO_SUCH_PROFILE:
                raise
            continue
        yield _profile(info)


def compute_profiles(instance: Handle) -> Iterator[Profile]:
    """Yield the compute-instance profiles of a GPU instance."""
    engines = pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
    for index in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        try:
            info = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(
                instance, index, engines, version=1
            )
        except pynvml.NVMLError as error:
            if error.value not in _NO_SUCH_PROFILE:
                raise
            continue
        yield _profile(info)


def _profile(info: Any) -> Profile:
    return Profile(profile_id=info.id, slices=info.sliceCount, processors=info.multiprocessorCount)


def reach(profile: Profile) -> tuple[int, int]:
    """Order compute profiles; of two with all slices, one may leave processors unused."""
    return profile.slices, profile.processors


def compute_instances(instance: Handle) -> Iterator[Handle]:
    """Yield the compute instances of a GPU instance."""
    for profile in compute_profiles(instance):
        yield from listed(
            pynvml.nvmlGpuInstanceGetComputeInstances,
            instance,
            profile.profile_id,
            pynvml.c_nvmlComputeInstance_t,
        )


def listed(call: Callable[..., object], owner: Handle, profile_id: int, kind: Any) -> list[Handle]:
    """Return the handles that a call lists."""
    handles, count = (kind * _MOST_INSTANCES)(), ctypes.c_uint(_MOST_INSTANCES)
    call(owner, profile_id, handles, ctypes.byref(count))
    return list(handles[: count.value])


def processes_of(device: Handle) -> tuple[DriverProcess, ...]:
    """Return the processes on a GPU and its instances, by PID."""
    found: dict[tuple[int, int], DriverProcess] = {}
    for call in (
        pynvml.nvmlDeviceGetComputeRunningProcesses_v3,
        pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
        pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
    ):
        try:
            listed = call(device)
        except pynvml.NVMLError as error:
            if error.value not in ABSENT or call is pynvml.nvmlDeviceGetComputeRunningProcesses_v3:
                raise
            continue
        for entry in listed:
            instance_id = None if entry.gpuInstanceId == NOBODY else entry.gpuInstanceId
            found[(entry.pid, entry.gpuInstanceId)] = DriverProcess(
                process_id=entry.pid,
                instance_id=instance_id,
                used_memory_bytes=entry.usedGpuMemory,
            )
    return tuple(found[key] for key in sorted(found))


def try_to_watch(device: Handle) -> None:
    """Raise when a wait for this GPU fails, which a lost one may only show then."""
    alone = pynvml.nvmlEventSetCreate()
    try:
        pynvml.nvmlDeviceRegisterEvents(device, XIDS, alone)
        with contextlib.suppress(pynvml.NVMLError_Timeout):
            pynvml.nvmlEventSetWait_v2(alone, 0)
    finally:
        pynvml.nvmlEventSetFree(alone)


def handle_of(uuid: str) -> Handle:
    """Return the handle of a GPU by its UUID."""
    return pynvml.nvmlDeviceGetHandleByUUID(uuid)


def address_of(handle: Handle) -> int:
    """Return what tells handles apart."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def text_of(value: str | bytes) -> str:
    """Return a text, whichever way the bindings give it."""
    return value.decode() if isinstance(value, bytes) else value
