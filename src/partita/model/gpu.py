"""One physical GPU as it stands: its mode, its instances and who holds them."""

from dataclasses import dataclass
from enum import Enum

from partita.model import resource
from partita.model.placement import Placement

__all__ = ["ComputeInstance", "Gpu", "GpuInstance", "Hold", "MigMode", "Sharing"]


class Hold(Enum):
    """Whether a running pod or process uses a slice.

    ``POSSIBLE`` is for input that counts holders without saying which slice each one has (a pod
    object names its node, not its device): such a slice is pinned like a held one.
    """

    FREE = "free"
    POSSIBLE = "possible"
    HELD = "held"

    @property
    def pinned(self) -> bool:
        """Whether the slice must stay exactly as it is."""
        return self is not Hold.FREE


class MigMode(Enum):
    """MIG mode of a GPU; ``UNSUPPORTED`` where the board has none."""

    OFF = "off"
    ON = "on"
    UNSUPPORTED = "unsupported"


class Sharing(Enum):
    """How several pods share one GPU without MIG."""

    TIME_SLICING = "time-slicing"
    MPS = "mps"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeInstance:
    """A compute instance inside a GPU instance. Splits are left alone, so little is kept.

    Attributes:
        instance_id: Compute-instance id within its GPU instance.
        uuid: UUID of the MIG device, None when unknown.
        sm_count: Streaming multiprocessors, None when unknown.
    """

    instance_id: int
    uuid: str | None = None
    sm_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuInstance:
    """A MIG GPU instance that stands on a GPU.

    Attributes:
        profile: Profile name as the catalogue has it, for example ``1g.10gb+me``.
        candidates: Every placement the instance may have, given what was read; one = known.
        instance_id: GPU-instance id of the driver, None when unknown.
        hold: Whether it is in use.
        holders: Who uses it, ``namespace/pod`` or ``process <pid>``, or the sign of use where
            nobody is listed (``15000 MiB in use, no process listed``); may be empty when only
            possibly held.
        compute_instances: What it is split into, empty when unknown.
    """

    profile: str
    candidates: tuple[Placement, ...]
    instance_id: int | None = None
    hold: Hold = Hold.FREE
    holders: tuple[str, ...] = ()
    compute_instances: tuple[ComputeInstance, ...] = ()

    @property
    def placement(self) -> Placement | None:
        """The placement when it is known for sure."""
        return self.candidates[0] if len(self.candidates) == 1 else None

    @property
    def mask(self) -> int:
        """Memory slices that it may occupy, as a bit mask."""
        mask = 0
        for placement in self.candidates:
            mask |= placement.mask
        return mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One physical GPU of a node, as it stands.

    Attributes:
        node: Name of its node.
        index: NVML index on the node, from 0.
        product: Name as the driver or the label reports it.
        model: Catalogue id, None when the product is not in the catalogue.
        uuid: ``GPU-…``, None when unknown.
        mig_mode: Current MIG mode.
        pending_mig_mode: Mode after the next reset, None when the same as now or unknown.
        instances: MIG GPU instances, ordered by placement.
        hold: Whether the GPU as a whole is in use (a pod asked for the whole or a shared GPU);
            with MIG on it is free, and the instances say who uses them.
        holders: Who uses the whole GPU, or the sign of use, as with an instance.
        replicas: Replicas it is served as, 1 = not shared.
        sharing: How it is shared, None when it is not.
        renamed: Whether its replicas are served as ``nvidia.com/gpu.shared``.
        slots_held: How many of its replicas pods hold. When only the node's total is known, the
            total is spread over its GPUs, and their ``hold`` is ``POSSIBLE``.
        single_strategy: Whether its MIG instances are served as ``nvidia.com/gpu``.
        memory_mib: Total memory, None when unknown.
        reserved_memory_mib: Memory the driver keeps for itself, None when unknown.
        problem: Why it cannot be used at all (lost, error, or its instances are unknown), None when
            it is well.
        notes: What is not known of it, in words for the user.
    """

    node: str
    index: int
    product: str
    model: str | None
    uuid: str | None = None
    mig_mode: MigMode = MigMode.OFF
    pending_mig_mode: MigMode | None = None
    instances: tuple[GpuInstance, ...] = ()
    hold: Hold = Hold.FREE
    holders: tuple[str, ...] = ()
    replicas: int = 1
    sharing: Sharing | None = None
    renamed: bool = False
    slots_held: int = 0
    single_strategy: bool = False
    memory_mib: int | None = None
    reserved_memory_mib: int | None = None
    problem: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def resource(self) -> str:
        """Resource name under which the whole GPU, or a share of it, is served."""
        shared = self.renamed and self.replicas > 1
        return resource.shared(resource.WHOLE_GPU) if shared else resource.WHOLE_GPU

    @property
    def key(self) -> tuple[str, int]:
        """Node name and index: unique in a fleet."""
        return (self.node, self.index)
