"""The rest of a simulated node: its time, its processes, its neighbours."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from partita.ports.neighbours import Signs
from partita.ports.process_table import Process

__all__ = ["SimulatedNeighbours", "SimulatedProcesses", "VirtualClock"]

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class VirtualClock:
    """A clock that goes when it is told to.

    Attributes:
        seconds: Seconds since its start.
    """

    seconds: float = 0.0

    def monotonic(self) -> float:
        """Return seconds since its start."""
        return self.seconds

    def now(self) -> datetime:
        """Return a time of day that goes with it."""
        return _BEGIN + timedelta(seconds=self.seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds


@dataclass(slots=True)
class SimulatedProcesses:
    """A ``ports.process_table.ProcessTable`` of processes that were told to it.

    Attributes:
        running: Processes by PID.
    """

    running: dict[int, Process] = field(default_factory=dict)

    def find(self, process_ids: Collection[int]) -> Mapping[int, Process]:
        """Return the processes with these PIDs, as far as they exist."""
        return {one: self.running[one] for one in process_ids if one in self.running}

    def programs(self, names: Collection[str]) -> Sequence[Process]:
        """Return the processes whose program has one of these names, by PID."""
        found = (one for one in self.running.values() if one.name in names)
        return sorted(found, key=lambda one: one.process_id)


@dataclass(slots=True)
class SimulatedNeighbours:
    """A ``ports.neighbours.Neighbours`` that shows what it was told.

    Attributes:
        signs: What is seen.
    """

    signs: Signs = field(default_factory=Signs)

    def look(self) -> Signs:
        """Return what is there now; the node is ours unless something was told against it."""
        return replace(self.signs, claimed=self.take())

    def take(self) -> bool:
        """Claim the node; it is free unless another agent, or a problem, was told to be there."""
        return self.signs.rival_agent is None and self.signs.claim_problem is None
