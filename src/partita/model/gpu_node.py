"""A node with GPUs as the cluster knows it: what each GPU is to be, and what its agent reports.

The wanted side is as explicit as the GPU itself: profiles at placements, not counts. Whoever writes
it has decided already, and the agent only has to bring it about.
"""

from dataclasses import dataclass

from partita.model.agent_status import AgentStatus
from partita.model.placement import Placement

__all__ = [
    "GpuNode",
    "Layout",
    "MigLayout",
    "PlacedProfile",
    "SharedDevices",
    "TimeSlicedLayout",
    "WantedGpu",
    "WholeLayout",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeLayout:
    """MIG off, and one slice: the GPU itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedProfile:
    """A MIG instance that is to stand at a place.

    Attributes:
        profile: Profile name as the catalogue has it, for example ``1g.10gb+me``.
        placement: Memory slices that it takes.
    """

    profile: str
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDevices:
    """MIG devices of one resource that are served several times over.

    Attributes:
        name: Resource name without suffix, for example ``nvidia.com/mig-1g.10gb``.
        replicas: Slots of each of its devices, 2 or more.
    """

    name: str
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MigLayout:
    """MIG on, with these instances and no others.

    Attributes:
        instances: Instances; none means MIG on and nothing to serve.
        shared: Resources whose devices are shared; what is not listed is not shared.
        renamed: Whether shared resources get the suffix ``.shared``.
        one_each: Whether a container may not ask for more than one shared slot.
    """

    instances: tuple[PlacedProfile, ...] = ()
    shared: tuple[SharedDevices, ...] = ()
    renamed: bool = False
    one_each: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSlicedLayout:
    """MIG off, and the GPU served several times over; memory is watched, not enforced.

    Attributes:
        replicas: Shared slots of the GPU, 2 or more.
        renamed: Whether the resource gets the suffix ``.shared``.
        one_each: Whether a container may not ask for more than one shared slot.
    """

    replicas: int
    renamed: bool = False
    one_each: bool = False


Layout = WholeLayout | MigLayout | TimeSlicedLayout
"""How one GPU is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedGpu:
    """What one GPU is to be.

    Attributes:
        uuid: UUID of the GPU.
        layout: How it is to be cut.
        may_reset: Whether it may be reset when a change of its MIG mode needs that; a reset stops
            everything on it, so it is done only when nothing is.
        policy: Name of the policy that wants it, None when a person wrote it.
    """

    uuid: str
    layout: Layout
    may_reset: bool = False
    policy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNode:
    """One node. A GPU that is not in ``gpus`` stays as it stands.

    Attributes:
        name: Name of the node.
        gpus: What each of its GPUs is to be.
        generation: Number of this version of ``gpus``, None before the cluster has counted it.
        observed_generation: Number of the version that ``status`` is about, None when unknown.
        status: What the agent reports, None before it ever did.
    """

    name: str
    gpus: tuple[WantedGpu, ...] = ()
    generation: int | None = None
    observed_generation: int | None = None
    status: AgentStatus | None = None

    @property
    def is_followed(self) -> bool:
        """Whether the agent has seen what is wanted now."""
        return self.generation is not None and self.observed_generation == self.generation

    def wanted(self, uuid: str) -> WantedGpu | None:
        """Return what a GPU is to be, None when it is to stay as it stands."""
        return next((gpu for gpu in self.gpus if gpu.uuid == uuid), None)
