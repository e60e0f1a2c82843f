"""The GPU driver of one node: what stands, and the few things that change it.

Two implementations pass one contract suite: NVML, and the simulator's. The methods say here when
they refuse and with which failure; the suite holds every implementation to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from partita.model.gpu import MigMode
from partita.model.placement import Placement

__all__ = [
    "DriverFailure",
    "DriverGpu",
    "DriverInstance",
    "DriverProcess",
    "GpuDriver",
    "HealthEvent",
    "MigDevice",
    "ModeChange",
    "Recovery",
]


class Recovery(Enum):
    """What the driver says a GPU needs before it is well again."""

    NONE = "nothing"
    RESET = "a reset of the GPU"
    DRAIN = "its programs to end, and then a reset"
    REBOOT = "a reboot of the node"


class ModeChange(Enum):
    """What became of a MIG mode change."""

    DONE = "done"
    IN_USE = "in use"  # somebody uses the GPU; the mode stays pending
    RESET_REQUIRED = "reset required"  # the mode is pending until the GPU is reset


class DriverFailure(Enum):
    """Why the driver refused, in NVML's terms."""

    NOT_SUPPORTED = "not supported"
    NO_PERMISSION = "no permission"
    INVALID_ARGUMENT = "invalid argument"
    NOT_FOUND = "not found"
    IN_USE = "in use"
    INSUFFICIENT_RESOURCES = "insufficient resources"
    GPU_IS_LOST = "GPU is lost"
    RESET_REQUIRED = "reset required"
    TIMEOUT = "timeout"
    UNKNOWN = "unknown error"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigDevice:
    """A compute instance of a GPU instance, as programs see it.

    Attributes:
        uuid: ``MIG-…``.
        index: NVML index of the MIG device on its GPU; they may have holes, and change.
        compute_instance_id: Compute-instance id within its GPU instance.
    """

    uuid: str
    index: int
    compute_instance_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverInstance:
    """A GPU instance as the driver has it, with one MIG device when it is whole.

    Attributes:
        instance_id: GPU-instance id.
        profile_id: Profile id.
        placement: Where it stands.
        mig_devices: Its MIG devices, one per compute instance; empty without any.
    """

    instance_id: int
    profile_id: int
    placement: Placement
    mig_devices: tuple[MigDevice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverProcess:
    """A process on a GPU.

    Attributes:
        process_id: Host PID.
        instance_id: GPU instance it runs on, None outside of MIG.
        used_memory_bytes: GPU memory it uses, None when the driver does not say.
    """

    process_id: int
    instance_id: int | None
    used_memory_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverGpu:
    """A GPU as the driver has it. Unknown is None.

    With a failure only what the board *is* counts (UUID, index, product, PCI); its modes are then
    ``UNSUPPORTED`` and its instances empty because nobody can read them, not because it has none.

    Attributes:
        uuid: ``GPU-…``.
        index: NVML index.
        minor: Minor number of its device node (``/dev/nvidia<minor>``), None when unknown.
        product: Product name.
        pci_device: PCI device and vendor id, ``0xDDDDVVVV``.
        pci_bus_id: PCI bus id, ``00000000:01:00.0``.
        numa_node: NUMA node of the board, None when the system does not say.
        memory_bytes: Total memory.
        reserved_memory_bytes: Memory the driver keeps.
        mig_mode: Current MIG mode.
        pending_mig_mode: MIG mode after the next reset.
        instances: GPU instances, by placement.
        recovery: What it needs before it is well again, None when the driver does not say.
        failure: Why the GPU cannot be read or used, None when it can.
    """

    uuid: str
    index: int
    minor: int | None = None
    product: str
    pci_device: str
    pci_bus_id: str
    numa_node: int | None = None
    memory_bytes: int | None = None
    reserved_memory_bytes: int | None = None
    mig_mode: MigMode = MigMode.UNSUPPORTED
    pending_mig_mode: MigMode = MigMode.UNSUPPORTED
    instances: tuple[DriverInstance, ...] = ()
    recovery: Recovery | None = None
    failure: DriverFailure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthEvent:
    """A critical event of a GPU.

    Attributes:
        uuid: GPU it concerns, None when the driver does not say (then every GPU is meant).
        xid: XID number.
        instance_id: GPU instance it concerns, None for the whole GPU.
    """

    uuid: str | None
    xid: int
    instance_id: int | None = None


class GpuDriver(Protocol):
    """What can be asked of, and done to, the GPUs of a node.

    Every method raises ``DriverError`` with the failure when the driver refuses, and has then
    changed nothing: ``NOT_FOUND`` for a GPU that is not there, ``GPU_IS_LOST`` for a lost one,
    ``NO_PERMISSION`` for a change without the right to it, and what each method names. A failure
    of one GPU never keeps the others from being read and used.
    """

    def gpus(self) -> Sequence[DriverGpu]:
        """Return every GPU, lost ones included, by index.

        What is wrong with one GPU is its ``failure``; only a failure of the driver is raised.
        """

    def processes(self, uuid: str) -> Sequence[DriverProcess]:
        """Return the processes on a GPU and its instances, by PID."""

    def set_mig_mode(self, uuid: str, mode: MigMode) -> ModeChange:
        """Ask for a MIG mode; unless it is done, it is the pending mode until asked otherwise.

        ``IN_USE`` when processes run on the GPU or instances stand on it. To ask for the current
        mode is done at once and takes back what was pending. Refused with ``NOT_SUPPORTED`` on a
        board without MIG, with ``INVALID_ARGUMENT`` for the mode ``UNSUPPORTED``.
        """

    def reset(self, uuid: str) -> None:
        """Reset this GPU alone: instances are gone, the pending MIG mode is in force.

        Refused with ``IN_USE`` when a process runs on it.
        """

    def create_instance(self, uuid: str, profile_id: int, placement: Placement) -> DriverInstance:
        """Create a GPU instance at a placement with one compute instance over all of it.

        Refused with ``NOT_SUPPORTED`` when MIG is off, ``INVALID_ARGUMENT`` when there is no such
        profile or it cannot stand there even on an empty GPU, ``INSUFFICIENT_RESOURCES`` when what
        stands is in the way or has the engines, ``IN_USE`` when it would be the
        first one and a process uses the GPU as a whole.
        """

    def destroy_instance(self, uuid: str, instance_id: int) -> None:
        """Destroy a GPU instance, its compute instances first.

        Refused with ``NOT_SUPPORTED`` when MIG is off, ``NOT_FOUND`` when there is no such
        instance, ``IN_USE`` when a process runs on it.
        """

    def wait_for_events(self, timeout_seconds: float) -> Sequence[HealthEvent]:
        """Wait for critical events; return those there are, empty when the time is over."""
