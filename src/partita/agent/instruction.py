"""What the machine tells the loop to do, one thing at a time, and what became of it."""

from dataclasses import dataclass

from partita.model.gpu import MigMode
from partita.model.placement import Placement
from partita.ports.gpu_driver import ModeChange

__all__ = [
    "Announce",
    "CreateInstance",
    "DestroyInstance",
    "Instruction",
    "Outcome",
    "Reconnect",
    "ResetGpu",
    "SetMode",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Announce:
    """Send the kubelet the present lists again, so that it writes its checkpoint."""

    def __str__(self) -> str:
        """Say it in words."""
        return "ask the kubelet to write its checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnect:
    """Register a resource anew: the kubelet does not show what it was sent.

    Attributes:
        resource: The resource.
    """

    resource: str

    def __str__(self) -> str:
        """Say it in words."""
        return f"register {self.resource} anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class DestroyInstance:
    """Destroy a GPU instance.

    Attributes:
        uuid: The GPU.
        instance_id: The instance.
        profile: Its profile, for messages.
        placement: Where it stands.
        device_ids: What must be retired first; is one of them promised, nothing is done.
        devices: UUIDs of its MIG devices as they were seen.
    """

    uuid: str
    instance_id: int
    profile: str
    placement: Placement
    device_ids: frozenset[str] = frozenset()
    devices: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Say it in words."""
        return f"destroy {self.profile} at {self.placement}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMode:
    """Ask for a MIG mode.

    Attributes:
        uuid: The GPU.
        mode: The mode.
        device_ids: What must be retired first.
    """

    uuid: str
    mode: MigMode
    device_ids: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """Say it in words."""
        return f"switch MIG {self.mode.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetGpu:
    """Reset one GPU, so that the pending MIG mode comes into force.

    Attributes:
        uuid: The GPU.
        mode: The mode that is to be in force then.
        device_ids: What must be retired first.
    """

    uuid: str
    mode: MigMode
    device_ids: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """Say it in words."""
        return f"reset the GPU to switch MIG {self.mode.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateInstance:
    """Create a GPU instance.

    Attributes:
        uuid: The GPU.
        profile: Name of the profile.
        profile_id: Its id.
        placement: Where.
    """

    uuid: str
    profile: str
    profile_id: int
    placement: Placement

    def __str__(self) -> str:
        """Say it in words."""
        return f"create {self.profile} at {self.placement}"


Instruction = Announce | Reconnect | DestroyInstance | SetMode | ResetGpu | CreateInstance
"""Everything that the loop can be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an instruction.

    Attributes:
        instruction: The instruction.
        error: Why it failed, None when it did not.
        withheld: Whether nothing was tried because a slice had just been given to a pod.
        change: What became of a mode change.
    """

    instruction: Instruction
    error: str | None = None
    withheld: bool = False
    change: ModeChange | None = None
