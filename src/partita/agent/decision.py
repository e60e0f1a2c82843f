"""What the machine decides, and how it sees each GPU."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from partita.agent.holders import Holders
from partita.agent.instruction import Instruction
from partita.agent.memory import Memory
from partita.ports.slice_server import Offer

__all__ = ["Decision", "GpuState", "Phase"]


class Phase(Enum):
    """Where a GPU stands; ``agent.machine`` has the table of what is done in each."""

    READY = "Ready"
    KEPT = "Kept"
    WAITING = "Waiting"
    WITHDRAWING = "Withdrawing"
    CHANGING = "Changing"
    OFFERING = "Offering"
    FAILED = "Failed"
    SICK = "Sick"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuState:
    """How the machine sees one GPU.

    Attributes:
        phase: Where it stands.
        reason: Why it is there, None when there is nothing to say.
    """

    phase: Phase
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do after one look.

    Attributes:
        offers: What to offer to the kubelet; None = leave what is offered as it is.
        retire: Device IDs that must not be given to anybody from now on: their device has gone,
            and somebody holds them.
        settled: Promises to forget.
        instructions: What to do then, at most one thing per GPU.
        holders: Who holds what, as it was concluded for this decision.
        states: How each GPU is seen, by UUID.
        rival: Who else has the node and how to hand over, None when nobody has.
        problem: What keeps the agent from deciding anything, None when nothing does.
        memory: What to keep.
        wake_seconds: After how long to look again, if nothing happens before.
    """

    offers: tuple[Offer, ...] | None = None
    retire: frozenset[str] = frozenset()
    settled: Mapping[str, float] = field(default_factory=dict)
    instructions: tuple[Instruction, ...] = ()
    holders: Holders = field(default_factory=Holders)
    states: Mapping[str, GpuState] = field(default_factory=dict)
    rival: tuple[str, str] | None = None
    problem: str | None = None
    memory: Memory = field(default_factory=Memory)
    wake_seconds: float = 5.0
