"""The result of planning, as values that explain themselves."""

from dataclasses import dataclass
from enum import Enum

from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, GpuInstance, MigMode, Sharing
from partita.model.placement import Placement
from partita.model.pod import Pod

__all__ = [
    "Assignment",
    "Blocker",
    "Change",
    "ChangeKind",
    "Cost",
    "Create",
    "Destroy",
    "GpuPlan",
    "Plan",
    "PlannedInstance",
    "Reason",
    "SetMigMode",
    "SetReplicas",
    "Step",
    "Unfit",
    "Unusable",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMigMode:
    """Switch MIG on or off on one idle GPU.

    Attributes:
        node: Node name.
        index: NVML index.
        enable: On or off.
        needs_reset: Whether this GPU (alone) must be reset for it (Ampere).
    """

    node: str
    index: int
    enable: bool
    needs_reset: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Destroy:
    """Destroy one free GPU instance (its compute instances first).

    Attributes:
        node: Node name.
        index: NVML index.
        profile: Profile name.
        placement: Where it stands; None when the input does not tell.
        instance_id: GPU-instance id; None when the input does not tell.
    """

    node: str
    index: int
    profile: str
    placement: Placement | None
    instance_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create one GPU instance at an explicit placement, with one compute instance over all of it.

    Attributes:
        node: Node name.
        index: NVML index.
        profile: Profile name.
        profile_id: Profile id, None when no source shows it.
        placement: Where it will stand.
    """

    node: str
    index: int
    profile: str
    profile_id: int | None
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReplicas:
    """Serve a whole GPU several times over, or no longer.

    Attributes:
        node: Node name.
        index: NVML index.
        replicas: Replicas from then on, 1 = no longer shared.
        sharing: How they share it, None when no longer shared.
        renamed: Whether they are served as ``nvidia.com/gpu.shared``.
        budget_mib: Memory budget of each, None when the memory is unknown.
        budget_exact: False when the driver's own memory is unknown and so not taken off.
    """

    node: str
    index: int
    replicas: int
    sharing: Sharing | None
    renamed: bool
    budget_mib: int | None
    budget_exact: bool = True


Step = SetMigMode | Destroy | Create | SetReplicas


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedInstance:
    """A GPU instance of the planned layout.

    Attributes:
        profile: Profile name.
        candidates: Where it stands or will stand; more than one = the input does not tell.
        standing: What stands there now when it is kept, None when it is created.
        pods: Pending pods that are to get it (``namespace/name``).
    """

    profile: str
    candidates: tuple[Placement, ...]
    standing: GpuInstance | None = None
    pods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """Capacity of one GPU that the planned layout leaves unusable for good.

    Attributes:
        memory_slices: Memory slices where no profile can start any more.
        memory_slices_total: Length of the axis.
        compute_slices: Compute slices that no further instance can use.
        compute_slices_total: All compute slices.
        memory_mib: The unusable memory, None when unknown.
    """

    memory_slices: int
    memory_slices_total: int
    compute_slices: int
    compute_slices_total: int
    memory_mib: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPlan:
    """One GPU before and after.

    Attributes:
        gpu: As it stands.
        mig_mode: Mode after the plan.
        instances: Planned layout, ordered by placement.
        replicas: Replicas it is served as after the plan, 1 = not shared.
        sharing: How they share it, None when not shared.
        renamed: Whether they are served as ``nvidia.com/gpu.shared``.
        budget_mib: Memory budget of each replica, None when not shared or unknown.
        pods: Pending pods that are to get the whole GPU or a shared slot of it.
        needs_reset: Whether the mode change needs a reset of this GPU.
        unusable: What the layout wastes, None when the GPU is not cut by MIG.
        frozen: Why the planner must not re-cut it, None when it may.
    """

    gpu: Gpu
    mig_mode: MigMode
    instances: tuple[PlannedInstance, ...] = ()
    replicas: int = 1
    sharing: Sharing | None = None
    renamed: bool = False
    budget_mib: int | None = None
    pods: tuple[str, ...] = ()
    needs_reset: bool = False
    unusable: Unusable | None = None
    frozen: str | None = None

    @property
    def touched(self) -> bool:
        """Whether any step concerns this GPU."""
        return (
            self.mig_mode is not self.gpu.mig_mode
            or self.replicas != self.gpu.replicas
            or (self.replicas > 1 and self.renamed != self.gpu.renamed)
            or any(instance.standing is None for instance in self.instances)
            or len(self.instances) < len(self.gpu.instances)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Where one requested slice of a pending pod will come from.

    Attributes:
        pod: ``namespace/name``.
        resource: Resource name it asked for.
        node: Node name.
        index: NVML index; None when the slice stands and the input does not tell which of the
            node's equal ones is free.
        placement: Placement of the MIG instance, None for whole or shared GPUs, or when unknown.
    """

    pod: str
    resource: str
    node: str
    index: int | None
    placement: Placement | None


class Reason(Enum):
    """Why a request does not fit."""

    NO_SUCH_RESOURCE = "no GPU of the fleet can ever offer this resource"
    NO_ELIGIBLE_NODE = "no node that the pod may run on has GPUs that could offer it"
    EXCEEDS_GPU = "more than one node's GPUs can ever hold at once"
    BLOCKED = "every place for it is held"
    OUTRANKED = "the room it needs goes to other pending pods"
    BUDGET = "the memory budget of a shared slot is too small"
    NOT_ALLOWED = "no policy allows a GPU to be cut for it"
    BROKEN = "every GPU that could serve it is in error"
    UNKNOWN_LAYOUT = "the input does not tell where instances stand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """What stands in the way on one GPU.

    Attributes:
        node: Node name.
        index: NVML index.
        placement: The placement that would be needed, None for a whole GPU.
        instances: Held instances in the way (empty when the whole GPU is held).
        holders: Who holds them.
    """

    node: str
    index: int
    placement: Placement | None
    instances: tuple[GpuInstance, ...]
    holders: tuple[str, ...]


class ChangeKind(Enum):
    """What kind of change would make a request fit."""

    ASK_OTHER_PROFILE = "ask-other-profile"
    END_HOLDERS = "end-holders"
    ALLOW_RESET = "allow-reset"
    ADD_GPU = "add-gpu"
    GIVE_PLACEMENTS = "give-placements"
    FEWER_REPLICAS = "fewer-replicas"
    CHANGE_POLICY = "change-policy"
    FIX_NODE = "fix-node"
    RAISE_PRIORITY = "raise-priority"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The nearest change that would make a request fit.

    Attributes:
        kind: Its kind.
        text: One line for the user, complete with names and numbers.
        blocker: What would have to end, for ``END_HOLDERS``.
    """

    kind: ChangeKind
    text: str
    blocker: Blocker | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """A pending pod that gets nothing in this plan.

    Attributes:
        pod: The pod.
        reason: Why.
        detail: The reason with its facts, one line.
        changes: What would make it fit, nearest first.
    """

    pod: Pod
    reason: Reason
    detail: str
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cost:
    """What a plan costs, in the order in which it matters after the demand it satisfies.

    Attributes:
        destroyed: Free instances destroyed.
        created: Instances created.
        mode_changes: GPUs whose MIG mode changes.
        future_lost: What could be created before and no longer afterwards: (profile, placement)
            pairs, each counted with its memory slices, summed over GPUs.
        gpus_touched: GPUs that any step concerns.
    """

    destroyed: int = 0
    created: int = 0
    mode_changes: int = 0
    future_lost: int = 0
    gpus_touched: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do, why, and what stays.

    Attributes:
        fleet: What stands.
        gpus: Every GPU before and after, in fleet order.
        steps: Steps in an order that is legal at every point, GPU by GPU.
        assignments: Which pending pod gets which slice.
        unfit: Pending pods that get nothing, most important first.
        cost: What it costs.
        warnings: What the plan cannot help and the user should know.
        proven: Whether no better plan exists, shown by exhaustive search or by a bound; False = the
            search was cut off and the plan is the best one found.
    """

    fleet: Fleet
    gpus: tuple[GpuPlan, ...]
    steps: tuple[Step, ...]
    assignments: tuple[Assignment, ...]
    unfit: tuple[Unfit, ...]
    cost: Cost
    proven: bool
    warnings: tuple[str, ...] = ()
