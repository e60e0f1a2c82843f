"""The choice behind a plan: who gets which slice, before it is told in steps and words."""

from collections.abc import Sequence
from dataclasses import dataclass

from partita.config.partition_policy import PartitionPolicy
from partita.model.fleet import Fleet
from partita.planner import bundles
from partita.planner.bundles import Settled
from partita.planner.demand import Wish, wishes
from partita.planner.outcome import COST_STAGES
from partita.planner.permission import permissions
from partita.planner.solver import World, world

__all__ = ["Chosen", "choose"]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was chosen from what.

    Attributes:
        place: GPUs with their outcomes, and pools.
        wishes: Pending pods, most important first.
        settled: The choice.
    """

    place: World
    wishes: tuple[Wish, ...]
    settled: Settled

    @property
    def served(self) -> frozenset[str]:
        """Names of the pods that get everything they ask for."""
        return self.settled.solution.served


def choose(fleet: Fleet, policies: Sequence[PartitionPolicy]) -> Chosen:
    """Choose the outcome of every GPU of a fleet for its pending pods."""
    wanted = wishes(fleet, COST_STAGES)
    resources = frozenset(name for wish in wanted for name in wish.pod.requests)
    place = world(fleet, permissions(fleet, policies), resources)
    tail = len(wanted[0].penalty) if wanted else COST_STAGES
    return Chosen(place, wanted, bundles.settle(place, wanted, tail))
