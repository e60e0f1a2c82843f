"""What the agent of a node says of itself and its GPUs, for whoever asks."""

from dataclasses import dataclass

__all__ = ["SCHEMA", "AgentStatus", "Condition", "GpuStatus", "ResourceStatus", "SliceStatus"]

SCHEMA = "partita.agent-status/v1"
"""Names the form in which all this is written; keys may be added to it, never renamed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Something that holds, or does not, or is not known.

    Attributes:
        type: What it is about: ``Ready``, ``SoleOwner``, ``DriverAnswers``, ``KubeletAnswers``,
            ``LayoutsFollowed``, ``GpusHealthy``, ``GpusAsWanted``; only when it does not hold
            ``Deliverable`` or ``BudgetsWatched``.
        holds: Whether it holds, None when unknown.
        reason: Why, in one CamelCase word.
        message: Why, in words; empty when there is nothing to say.
        hint: What to do about it, None when there is nothing to do.
        since: Since when it is so, RFC 3339.
    """

    type: str
    holds: bool | None
    reason: str
    message: str = ""
    hint: str | None = None
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceStatus:
    """A slice that is offered to the kubelet.

    Attributes:
        device_id: Device ID.
        resource: Resource name.
        profile: MIG profile, None outside of MIG.
        placement: Placement as ``start:size``, None outside of MIG.
        usable: Whether new pods may get it.
        leaving: Whether it goes when its holder has ended.
        holders: Who holds it.
        budget_mib: Memory it may use, None when unknown.
    """

    device_id: str
    resource: str
    profile: str | None = None
    placement: str | None = None
    usable: bool = True
    leaving: bool = False
    holders: tuple[str, ...] = ()
    budget_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuStatus:
    """A GPU of the node.

    Attributes:
        index: NVML index.
        uuid: UUID.
        product: Product name.
        memory_mib: Memory, None when unknown.
        mig_mode: ``on``, ``off`` or ``unsupported``; None when it cannot be read.
        phase: ``Ready``, ``Kept``, ``Waiting``, ``Withdrawing``, ``Changing``, ``Offering``,
            ``Failed``, ``Sick`` or ``Unknown``.
        reason: Why, None when there is nothing to say.
        since: Since when it is in that phase for that reason, RFC 3339.
        processes: Processes on it.
        slices: What is offered of it.
    """

    index: int
    uuid: str
    product: str
    memory_mib: int | None = None
    mig_mode: str | None = None
    phase: str = "Unknown"
    reason: str | None = None
    since: str = ""
    processes: tuple[str, ...] = ()
    slices: tuple[SliceStatus, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceStatus:
    """A resource that is served.

    Attributes:
        name: Resource name.
        slices: How many slices are offered.
        usable: How many of them new pods may get.
        held: How many of them are held.
        connected: Whether the kubelet listens.
        problem: Why not, None when it does.
    """

    name: str
    slices: int
    usable: int
    held: int
    connected: bool
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStatus:
    """The whole of it.

    Attributes:
        node: Name of the node.
        version: Version of partita.
        process_id: PID of the agent.
        at: When this was written, RFC 3339.
        source: File that the wanted layouts are from, empty without one.
        conditions: Conditions, the most important first.
        gpus: GPUs by index.
        resources: Resources by name.
    """

    node: str
    version: str
    process_id: int
    at: str
    source: str = ""
    conditions: tuple[Condition, ...] = ()
    gpus: tuple[GpuStatus, ...] = ()
    resources: tuple[ResourceStatus, ...] = ()

    def condition(self, kind: str) -> Condition | None:
        """Return one of the conditions, None when it is not told."""
        return next((one for one in self.conditions if one.type == kind), None)

    @property
    def is_ready(self) -> bool:
        """Whether the agent serves this node."""
        ready = self.condition("Ready")
        return ready is not None and ready.holds is True
