"""The GPU driver through NVML, NVIDIA's management library. The only module that imports pynvml.

NVML needs root for most of what changes a GPU. A program that has NVML open counts as a user of
every GPU, so a reset closes it and opens it again; calls from other threads wait meanwhile.
"""

import contextlib
import ctypes
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pynvml  # type: ignore[import-untyped]

from partita.adapters.nvml.reading import (
    NOBODY,
    XIDS,
    Handle,
    Profile,
    address_of,
    compute_instances,
    compute_profiles,
    gpu_profiles,
    handle_of,
    instance_of,
    listed,
    memory_of,
    mig_devices_of,
    minor_of,
    modes_of,
    processes_of,
    reach,
    recovery_of,
    text_of,
    try_to_watch,
)
from partita.adapters.nvml.refusals import failure_of, refused, translated
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


_WATCH_SLICE_SECONDS = 0.25  # how long a reset may have to wait for a watcher
_RESET_SECONDS = 60.0  # a reset that takes longer is taken for one that hangs
_REGISTER_SECONDS = 5.0  # how often it is looked for another GPU in the place of one


def reset_with_nvidia_smi(uuid: str, *, timeout_seconds: float = _RESET_SECONDS) -> None:
    """Reset a GPU; NVML itself has no such call.

    Raises:
        OSError: When there is no ``nvidia-smi``.
        subprocess.SubprocessError: When it fails, or is ended because it takes too long.
    """
    command = ["nvidia-smi", "--gpu-reset", "-i", uuid]
    subprocess.run(  # noqa: S603 - no shell
        command, check=True, capture_output=True, text=True, timeout=timeout_seconds
    )


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
                ``subprocess.SubprocessError`` when it cannot, ``TimeoutExpired`` when it hangs.
            sysfs: Where the kernel tells the NUMA node of a PCI device.
        """
        self._reset_command = reset_command
        self._sysfs = sysfs
        self._calls = threading.RLock()  # no call while NVML is closed
        self._watch = threading.Lock()  # no watcher while NVML is closed
        self._open = threading.Event()  # lets a reset go before the next watcher
        self._events: Handle = None
        self._known: dict[int, DriverGpu] = {}  # identity by index, for when a GPU is lost
        self._watched: dict[int, str] = {}  # UUIDs by the address of their handle
        self._registered_at = 0.0
        self._is_wary = False  # a wait has failed because a GPU was lost
        self._profiles: dict[str, tuple[Profile, ...]] = {}  # by UUID, as long as NVML is open
        with translated():
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
            with translated():
                count = pynvml.nvmlDeviceGetCount()
            return tuple(self._gpu(index) for index in range(count))

    def processes(self, uuid: str) -> Sequence[DriverProcess]:
        """Return the processes on a GPU and its instances, by PID."""
        with self._calls, translated(uuid):
            return processes_of(handle_of(uuid))

    def set_mig_mode(self, uuid: str, mode: MigMode) -> ModeChange:
        """Ask for a MIG mode."""
        if mode is MigMode.UNSUPPORTED:
            raise refused(DriverFailure.INVALID_ARGUMENT, "not a mode to ask for", uuid)
        with self._calls, translated(uuid):
            status = pynvml.nvmlDeviceSetMigMode(handle_of(uuid), int(mode is MigMode.ON))
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
                with translated(uuid):
                    if processes_of(handle_of(uuid)):
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
        with self._calls, translated(uuid):
            device = handle_of(uuid)
            instance = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(
                device, profile_id, ctypes.byref(wanted)
            )
            try:
                compute_profile = max(compute_profiles(instance), key=reach)
                pynvml.nvmlGpuInstanceCreateComputeInstance(instance, compute_profile.profile_id)
            except BaseException:
                with contextlib.suppress(pynvml.NVMLError):  # the first failure is what matters
                    pynvml.nvmlGpuInstanceDestroy(instance)
                raise
            return instance_of(instance, mig_devices_of(device))

    def destroy_instance(self, uuid: str, instance_id: int) -> None:
        """Destroy a GPU instance, its compute instances first.

        It is asked first whether a process is on any of them, so that none goes when one stays.
        """
        with self._calls, translated(uuid):
            device = handle_of(uuid)
            instance = pynvml.nvmlDeviceGetGpuInstanceById(device, instance_id)
            if any(process.instance_id == instance_id for process in processes_of(device)):
                raise pynvml.NVMLError(pynvml.NVML_ERROR_IN_USE)
            for compute in list(compute_instances(instance)):
                pynvml.nvmlComputeInstanceDestroy(compute)
            pynvml.nvmlGpuInstanceDestroy(instance)

    def wait_for_events(self, timeout_seconds: float) -> Sequence[HealthEvent]:
        """Wait for XIDs; empty when the time is over. A GPU that is lost is not waited for."""
        end = time.monotonic() + timeout_seconds
        while True:
            left = max(0.0, end - time.monotonic())
            if not self._open.wait(left):
                return ()
            with self._watch, translated():
                found = self._next_events(min(left, _WATCH_SLICE_SECONDS))
            if found or left <= _WATCH_SLICE_SECONDS:
                return found

    def _reopen(self) -> None:
        if self._events is None:
            with self._watch, self._calls, translated():
                if self._events is None:
                    self._start()

    def _start(self) -> None:
        pynvml.nvmlInit()
        self._events = pynvml.nvmlEventSetCreate()
        self._register()
        self._open.set()

    def _stop(self) -> None:
        self._watched.clear()
        self._profiles.clear()
        events, self._events = self._events, None
        with contextlib.suppress(pynvml.NVMLError):  # closing is all that is left to do
            pynvml.nvmlEventSetFree(events)
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()

    def _register(self) -> None:
        """Watch every GPU that is not watched yet; one that is lost now is tried again later."""
        self._registered_at = time.monotonic()
        for index in range(pynvml.nvmlDeviceGetCount()):
            with contextlib.suppress(pynvml.NVMLError):
                device = pynvml.nvmlDeviceGetHandleByIndex(index)
                if address_of(device) not in self._watched:
                    uuid = pynvml.nvmlDeviceGetUUID(device)
                    if self._is_wary:
                        try_to_watch(device)
                    pynvml.nvmlDeviceRegisterEvents(device, XIDS, self._events)
                    self._watched[address_of(device)] = uuid

    def _watch_who_is_left(self) -> None:
        """Watch anew, without the GPUs that are lost.

        As long as one of them is in a set, every wait for that set fails, and a GPU cannot be taken
        out of a set. What the old set has not given yet is lost.
        """
        self._is_wary = True
        fresh = pynvml.nvmlEventSetCreate()
        old, self._events = self._events, fresh
        with contextlib.suppress(pynvml.NVMLError):  # nothing else can be done with it
            pynvml.nvmlEventSetFree(old)
        self._watched.clear()
        self._register()

    def _run_reset(self, uuid: str) -> None:
        try:
            self._reset_command(uuid)
        except BlockingIOError as error:
            raise refused(DriverFailure.IN_USE, str(error), uuid) from error
        except subprocess.CalledProcessError as error:
            said = f"{error.stdout or ''}{error.stderr or ''}".strip()
            failure = DriverFailure.IN_USE if "in use" in said.lower() else DriverFailure.UNKNOWN
            raise refused(failure, " ".join(said.split()) or str(error), uuid) from error
        except subprocess.TimeoutExpired as error:
            said = f"the reset did not end within seconds: {error.timeout:g}"
            raise refused(DriverFailure.TIMEOUT, said, uuid) from error
        except (OSError, subprocess.SubprocessError) as error:
            raise refused(DriverFailure.UNKNOWN, str(error), uuid) from error

    def _next_events(self, seconds: float) -> tuple[HealthEvent, ...]:
        is_whole = len(self._watched) == pynvml.nvmlDeviceGetCount()
        if not is_whole or time.monotonic() - self._registered_at >= _REGISTER_SECONDS:
            self._register()
        try:
            return self._given(seconds)
        except pynvml.NVMLError_GpuIsLost:
            self._watch_who_is_left()
            return self._given(seconds)

    def _given(self, seconds: float) -> tuple[HealthEvent, ...]:
        """Return what the set gives; a failure after the first event is left to the next wait."""
        found: list[HealthEvent] = []
        milliseconds = round(seconds * 1000)
        while True:
            try:
                data = pynvml.nvmlEventSetWait_v2(self._events, milliseconds)
            except pynvml.NVMLError as error:
                if not found and error.value != pynvml.NVML_ERROR_TIMEOUT:
                    raise
                return tuple(found)
            instance_id = None if data.gpuInstanceId == NOBODY else data.gpuInstanceId
            uuid = self._watched.get(address_of(data.device))
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
            return replace(self._known.get(index, unseen), failure=failure_of(error))
        try:
            return self._with_state(device, identity)
        except pynvml.NVMLError as error:
            return replace(identity, failure=failure_of(error))

    def _identity(self, device: Handle, index: int) -> DriverGpu:
        """Ask which GPU it is, and for what never changes of it only once."""
        uuid = pynvml.nvmlDeviceGetUUID(device)
        known = self._known.get(index)
        if known is not None and known.uuid == uuid:
            return replace(known, minor=minor_of(device))
        pci = pynvml.nvmlDeviceGetPciInfo_v3(device)
        bus_id = text_of(pci.busId)
        return DriverGpu(
            uuid=uuid,
            index=index,
            product=pynvml.nvmlDeviceGetName(device),
            pci_device=f"0x{pci.pciDeviceId:08X}",
            pci_bus_id=bus_id,
            numa_node=self._numa_node(bus_id),
            minor=minor_of(device),
        )

    def _with_state(self, device: Handle, identity: DriverGpu) -> DriverGpu:
        current, pending = modes_of(device)
        total, reserved = memory_of(device)
        is_cut = current is MigMode.ON
        return replace(
            identity,
            memory_bytes=total,
            reserved_memory_bytes=reserved,
            mig_mode=current,
            pending_mig_mode=pending,
            instances=self._instances(device, identity.uuid) if is_cut else (),
            recovery=recovery_of(device),
        )

    def _instances(self, device: Handle, uuid: str) -> tuple[DriverInstance, ...]:
        profiles = self._profiles.get(uuid)
        if profiles is None:
            profiles = self._profiles[uuid] = tuple(gpu_profiles(device))
        handles = [
            handle
            for profile in profiles
            for handle in listed(
                pynvml.nvmlDeviceGetGpuInstances,
                device,
                profile.profile_id,
                pynvml.c_nvmlGpuInstance_t,
            )
        ]
        mig_devices = mig_devices_of(device)  # after them, so that each has its own
        found = [instance_of(handle, mig_devices) for handle in handles]
        return tuple(sorted(found, key=lambda instance: instance.placement))

    def _numa_node(self, bus_id: str) -> int | None:
        """Ask the kernel: NVML's own call is about the memory of a GPU that is a node itself."""
        path = self._sysfs / "bus/pci/devices" / bus_id.lower()[-12:] / "numa_node"
        try:
            node = int(path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None
        return node if node >= 0 else None
