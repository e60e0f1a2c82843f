"""What the machine keeps from one decision to the next. All of it may be lost at any time."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from partita.agent.health import Sickness
from partita.ports.slice_server import OfferedSlice

__all__ = ["Failure", "Memory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A step that failed.

    Attributes:
        step: What was tried, in words.
        reason: Why it failed.
        count: How often in a row.
        retry_at: Monotonic time in seconds at which it is tried again.
    """

    step: str
    reason: str
    count: int
    retry_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What is kept. A new agent begins with an empty one, and comes to the same end.

    Attributes:
        begun: Whether this agent has taken the node on.
        sick: XIDs that are not over.
        offered: GPU UUID → what was last offered of it while it was well.
        unseen: Device ID → when it was offered as usable, of those that the kubelet has not been
            seen to know as such since.
        one_each: Resources of which a container gets no more than one.
        seen_at: When the driver last answered, None = never.
        reconnected: Resource → when it was last registered anew.
        quiet_since: Device UUID → since when nothing of it that is to go can be in use.
        failures: GPU UUID → the step that failed last.
        confirmed: Promises that the kubelet has known of, as (device ID, time).
        announced_at: When the kubelet was last made to write its checkpoint.
        announcements: How often in a row that was in vain.
    """

    begun: bool = False
    sick: tuple[Sickness, ...] = ()
    offered: Mapping[str, tuple[OfferedSlice, ...]] = field(default_factory=dict)
    unseen: Mapping[str, float] = field(default_factory=dict)
    one_each: frozenset[str] = frozenset()
    seen_at: float | None = None
    reconnected: Mapping[str, float] = field(default_factory=dict)
    quiet_since: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, Failure] = field(default_factory=dict)
    confirmed: frozenset[tuple[str, float]] = frozenset()
    announced_at: float | None = None
    announcements: int = 0
