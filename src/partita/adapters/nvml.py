"""The GPU driver through NVML, NVIDIA's management library. The only module that imports pynvml.

NVML needs root for most of what changes a GPU. A program that has NVML open counts as a user of
every GPU, so a reset closes it and opens it again; calls from other threads wait meanwhile.
"""

import contextlib
import ctypes
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pynvml  # type: ignore[import-untyped]

from partita.errors import DriverError
from partita.model.gpu import MigMode
from partita.model.placement import Placement
from partita.ports.gpu_driver import (
    DriverFailure,
    DriverGpu,
    DriverInstance,
    DriverProcess,
    HealthEvent,
    ModeChange,
)

__all__ = ["NvmlDriver", "reset_with_nvidia_smi"]

_Handle = Any  # opaque ctypes pointers of pynvml

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
_NONE = 0xFFFFFFFF  # how NVML says that there is no instance
_MOST_INSTANCES = 32  # some drivers tell a wrong limit per profile; no GPU has as many as this
_WATCH_SLICE_SECONDS = 0.25  # how long a reset may have to wait for a watcher
_ABSENT = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
_NO_SUCH_PROFILE = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Profile:
    profile_id: int
    slices: int
    processors: int


def reset_with_nvidia_smi(uuid: str) -> None:
    """Reset a GPU; NVML itself has no such call."""
    command = ["nvidia-smi", "--gpu-reset", "-i", uuid]
    subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - no shell


class NvmlDriver:
    """The GPUs of this node through NVML. Threads may share it."""

    def __init__(
        self,
        *,
        reset_command: Callable[[str], None] = reset_with_nvidia_smi,
        sysfs: Path = Path("/sys"),
    ) -> None:
        """Open NVML.

        Args:
            reset_command: Resets the GPU of a UUID; raises ``OSError`` or
                ``subprocess.SubprocessError`` when it cannot.
            sysfs: Where the kernel tells the NUMA node of a PCI device.
        """
        self._reset_command = reset_command
        self._sysfs = sysfs
        self._calls = threading.RLock()  # no call while NVML is closed
        self._watch = threading.Lock()  # no watcher while NVML is closed
        self._open = threading.Event()  # lets a reset go before the next watcher
        self._events: _Handle = None
        self._known: dict[int, DriverGpu] = {}  # identity by index, for when a GPU is lost
        self._watched: dict[int, str] = {}  # UUIDs by the address of their handle
        with _translated():
            self._start()

    def close(self) -> None:
        """Close NVML, after the last call."""
        self._open.clear()
        with self._watch, self._calls:
            self._stop()

    def gpus(self) -> Sequence[DriverGpu]:
        """Return every GPU by index, with what could be read of it.

        A GPU that was lost before it was ever seen has the UUID ``unknown-<index>``. When NVML
        could not be opened after a reset, it is tried again here.
        """
        self._reopen()
        with self._calls:
            with _translated():
                count = pynvml.nvmlDeviceGetCount()
            return tuple(self._gpu(index) for index in range(count))

    def processes(self, uuid: str) -> Sequence[DriverProcess]:
        """Return the processes on a GPU and its instances, by PID."""
        with self._calls, _translated(uuid):
            return _processes(_handle(uuid))

    def set_mig_mode(self, uuid: str, mode: MigMode) -> ModeChange:
        """Ask for a MIG mode."""
        if mode is MigMode.UNSUPPORTED:
            raise _error(DriverFailure.INVALID_ARGUMENT, "not a mode to ask for", uuid)
        with self._calls, _translated(uuid):
            status = pynvml.nvmlDeviceSetMigMode(_handle(uuid), int(mode is MigMode.ON))
            if status == pynvml.NVML_SUCCESS:
                return ModeChange.DONE
            if status == pynvml.NVML_ERROR_IN_USE:
                return ModeChange.IN_USE
            if status == pynvml.NVML_ERROR_RESET_REQUIRED:
                return ModeChange.RESET_REQUIRED
            raise pynvml.NVMLError(status)

    def reset(self, uuid: str) -> None:
        """Reset this GPU alone, with NVML closed meanwhile."""
        self._open.clear()
        with self._watch, self._calls:
            try:
                with _translated(uuid):
                    if _processes(_handle(uuid)):
                        raise pynvml.NVMLError(pynvml.NVML_ERROR_IN_USE)
                    self._stop()
                    try:
                        self._run_reset(uuid)
                    finally:
                        self._start()
            finally:
                self._open.set()

    def create_instance(self, uuid: str, profile_id: int, placement: Placement) -> DriverInstance:
        """Create a GPU instance at a placement with one compute instance over all of it."""
        wanted = pynvml.c_nvmlGpuInstancePlacement_t(placement.start, placement.size)
        with self._calls, _translated(uuid):
            device = _handle(uuid)
            instance = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(
                device, profile_id, ctypes.byref(wanted)
            )
            try:
                compute_profile = max(_compute_profiles(instance), key=_reach)
                pynvml.nvmlGpuInstanceCreateComputeInstance(instance, compute_profile.profile_id)
            except BaseException:
                with contextlib.suppress(pynvml.NVMLError):  # the first failure is what matters
                    pynvml.nvmlGpuInstanceDestroy(instance)
                raise
            return _instance(instance, _mig_uuids(device))

    def destroy_instance(self, uuid: str, instance_id: int) -> None:
        """Destroy a GPU instance, its compute instances first.

        It is asked first whether a process is on any of them, so that none goes when one stays.
        """
        with self._calls, _translated(uuid):
            device = _handle(uuid)
            instance = pynvml.nvmlDeviceGetGpuInstanceById(device, instance_id)
            if any(process.instance_id == instance_id for process in _processes(device)):
                raise pynvml.NVMLError(pynvml.NVML_ERROR_IN_USE)
            for compute in list(_compute_instances(instance)):
                pynvml.nvmlComputeInstanceDestroy(compute)
            pynvml.nvmlGpuInstanceDestroy(instance)

    def wait_for_events(self, timeout_seconds: float) -> Sequence[HealthEvent]:
        """Wait for XIDs; empty when the time is over."""
        end = time.monotonic() + timeout_seconds
        while True:
            left = max(0.0, end - time.monotonic())
            if not self._open.wait(left):
                return ()
            with self._watch, _translated():
                found = self._next_events(min(left, _WATCH_SLICE_SECONDS))
            if found or left <= _WATCH_SLICE_SECONDS:
                return found

    def _reopen(self) -> None:
        if self._events is None:
            with self._watch, self._calls, _translated():
                if self._events is None:
                    self._start()

    def _start(self) -> None:
        pynvml.nvmlInit()
        self._events = pynvml.nvmlEventSetCreate()
        self._register()
        self._open.set()

    def _stop(self) -> None:
        self._watched.clear()
        events, self._events = self._events, None
        with contextlib.suppress(pynvml.NVMLError):  # closing is all that is left to do
            pynvml.nvmlEventSetFree(events)
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()

    def _register(self) -> None:
        """Watch every GPU that is not watched yet; one that is lost now is tried again later."""
        for index in range(pynvml.nvmlDeviceGetCount()):
            with contextlib.suppress(pynvml.NVMLError):
                device = pynvml.nvmlDeviceGetHandleByIndex(index)
                if _address(device) not in self._watched:
                    uuid = pynvml.nvmlDeviceGetUUID(device)
                    wanted = pynvml.nvmlEventTypeXidCriticalError
                    pynvml.nvmlDeviceRegisterEvents(device, wanted, self._events)
                    self._watched[_address(device)] = uuid

    def _run_reset(self, uuid: str) -> None:
        try:
            self._reset_command(uuid)
        except BlockingIOError as error:
            raise _error(DriverFailure.IN_USE, str(error), uuid) from error
        except subprocess.CalledProcessError as error:
            said = f"{error.stdout or ''}{error.stderr or ''}".strip()
            failure = DriverFailure.IN_USE if "in use" in said.lower() else DriverFailure.UNKNOWN
            raise _error(failure, " ".join(said.split()) or str(error), uuid) from error
        except (OSError, subprocess.SubprocessError) as error:
            raise _error(DriverFailure.UNKNOWN, str(error), uuid) from error

    def _next_events(self, seconds: float) -> tuple[HealthEvent, ...]:
        self._register()
        found: list[HealthEvent] = []
        milliseconds = round(seconds * 1000)
        while True:
            try:
                data = pynvml.nvmlEventSetWait_v2(self._events, milliseconds)
            except pynvml.NVMLError_Timeout:
                return tuple(found)
            instance_id = None if data.gpuInstanceId == _NONE else data.gpuInstanceId
            uuid = self._watched.get(_address(data.device))
            found.append(HealthEvent(uuid=uuid, xid=data.eventData, instance_id=instance_id))
            milliseconds = 0

    def _gpu(self, index: int) -> DriverGpu:
        try:
            device = pynvml.nvmlDeviceGetHandleByIndex(index)
            self._known[index] = identity = self._identity(device, index)
        except pynvml.NVMLError as error:
            unseen = DriverGpu(
                uuid=f"unknown-{index}", index=index, product="", pci_device="", pci_bus_id=""
            )
            return replace(self._known.get(index, unseen), failure=_failure(error))
        try:
            return _with_state(device, identity)
        except pynvml.NVMLError as error:
            return replace(identity, failure=_failure(error))

    def _identity(self, device: _Handle, index: int) -> DriverGpu:
        pci = pynvml.nvmlDeviceGetPciInfo_v3(device)
        bus_id = _text(pci.busId)
        return DriverGpu(
            uuid=pynvml.nvmlDeviceGetUUID(device),
            index=index,
            product=pynvml.nvmlDeviceGetName(device),
            pci_device=f"0x{pci.pciDeviceId:08X}",
            pci_bus_id=bus_id,
            numa_node=self._numa_node(bus_id),
        )

    def _numa_node(self, bus_id: str) -> int | None:
        """Ask the kernel: NVML's own call is about the memory of a GPU that is a node itself."""
        path = self._sysfs / "bus/pci/devices" / bus_id.lower()[-12:] / "numa_node"
        try:
            node = int(path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None
        return node if node >= 0 else None


def _with_state(device: _Handle, identity: DriverGpu) -> DriverGpu:
    current, pending = _modes(device)
    total, reserved = _memory(device)
    return replace(
        identity,
        memory_bytes=total,
        reserved_memory_bytes=reserved,
        mig_mode=current,
        pending_mig_mode=pending,
        instances=_instances(device) if current is MigMode.ON else (),
    )


def _modes(device: _Handle) -> tuple[MigMode, MigMode]:
    try:
        current, pending = pynvml.nvmlDeviceGetMigMode(device)
    except pynvml.NVMLError as error:
        if error.value not in _ABSENT:
            raise
        return MigMode.UNSUPPORTED, MigMode.UNSUPPORTED
    return (
        MigMode.ON if current == pynvml.NVML_DEVICE_MIG_ENABLE else MigMode.OFF,
        MigMode.ON if pending == pynvml.NVML_DEVICE_MIG_ENABLE else MigMode.OFF,
    )


def _memory(device: _Handle) -> tuple[int | None, int | None]:
    """Return total and reserved bytes; old drivers tell no reserved, some boards neither."""
    for version in (pynvml.nvmlMemory_v2, None):
        try:
            memory = pynvml.nvmlDeviceGetMemoryInfo(device, version)
        except pynvml.NVMLError as error:
            if error.value not in (*_ABSENT, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH):
                raise
            continue
        return memory.total, memory.reserved if version else None
    return None, None


def _instances(device: _Handle) -> tuple[DriverInstance, ...]:
    mig_uuids = _mig_uuids(device)
    found = [
        _instance(handle, mig_uuids)
        for profile in _gpu_profiles(device)
        for handle in _listed(
            pynvml.nvmlDeviceGetGpuInstances,
            device,
            profile.profile_id,
            pynvml.c_nvmlGpuInstance_t,
        )
    ]
    return tuple(sorted(found, key=lambda instance: instance.placement))


def _instance(handle: _Handle, mig_uuids: Sequence[tuple[int, str]]) -> DriverInstance:
    info = pynvml.nvmlGpuInstanceGetInfo(handle)
    return DriverInstance(
        instance_id=info.id,
        profile_id=info.profileId,
        placement=Placement(start=info.placement.start, size=info.placement.size),
        mig_uuids=tuple(uuid for instance_id, uuid in mig_uuids if instance_id == info.id),
    )


def _mig_uuids(device: _Handle) -> Sequence[tuple[int, str]]:
    """Return instance id and UUID of each MIG device; their indices may have holes."""
    found = []
    for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(device)):
        with contextlib.suppress(pynvml.NVMLError_NotFound):
            mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(device, index)
            found.append((pynvml.nvmlDeviceGetGpuInstanceId(mig), pynvml.nvmlDeviceGetUUID(mig)))
    return found


def _gpu_profiles(device: _Handle) -> Iterator[_Profile]:
    for index in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(device, index, version=1)
        except pynvml.NVMLError as error:
            if error.value not in _NO_SUCH_PROFILE:
                raise
            continue
        yield _profile(info)


def _compute_profiles(instance: _Handle) -> Iterator[_Profile]:
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


def _profile(info: Any) -> _Profile:
    return _Profile(profile_id=info.id, slices=info.sliceCount, processors=info.multiprocessorCount)


def _reach(profile: _Profile) -> tuple[int, int]:
    """Order compute profiles; of two with all slices, one may leave processors unused."""
    return profile.slices, profile.processors


def _compute_instances(instance: _Handle) -> Iterator[_Handle]:
    for profile in _compute_profiles(instance):
        yield from _listed(
            pynvml.nvmlGpuInstanceGetComputeInstances,
            instance,
            profile.profile_id,
            pynvml.c_nvmlComputeInstance_t,
        )


def _listed(
    call: Callable[..., object], owner: _Handle, profile_id: int, kind: Any
) -> list[_Handle]:
    handles, count = (kind * _MOST_INSTANCES)(), ctypes.c_uint(_MOST_INSTANCES)
    call(owner, profile_id, handles, ctypes.byref(count))
    return list(handles[: count.value])


def _processes(device: _Handle) -> tuple[DriverProcess, ...]:
    found: dict[tuple[int, int], DriverProcess] = {}
    for call in (
        pynvml.nvmlDeviceGetComputeRunningProcesses_v3,
        pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
        pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
    ):
        try:
            listed = call(device)
        except pynvml.NVMLError as error:
            if error.value not in _ABSENT or call is pynvml.nvmlDeviceGetComputeRunningProcesses_v3:
                raise
            continue
        for entry in listed:
            instance_id = None if entry.gpuInstanceId == _NONE else entry.gpuInstanceId
            found[(entry.pid, entry.gpuInstanceId)] = DriverProcess(
                process_id=entry.pid,
                instance_id=instance_id,
                used_memory_bytes=entry.usedGpuMemory,
            )
    return tuple(found[key] for key in sorted(found))


def _handle(uuid: str) -> _Handle:
    return pynvml.nvmlDeviceGetHandleByUUID(uuid)


def _address(handle: _Handle) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _failure(error: Any) -> DriverFailure:
    return _FAILURES.get(error.value, DriverFailure.UNKNOWN)


def _error(failure: DriverFailure, said: str, uuid: str | None) -> DriverError:
    about = f" for {uuid}" if uuid is not None else ""
    return DriverError(
        message=f"the GPU driver refused{about}: {said}",
        hint=_HINTS[failure],
        failure=failure.value,
        uuid=uuid,
    )


@contextmanager
def _translated(uuid: str | None = None) -> Iterator[None]:
    try:
        yield
    except pynvml.NVMLError as error:
        raise _error(_failure(error), str(error), uuid) from error
