"""Pods that ask for several slices: which node each of them gets.

All slices of a pod come from one node. Few bundles on few nodes are tried in every way; more are
placed one after the other, the most important first, each on the node where it costs least.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from partita.planner.demand import Wish
from partita.planner.program import Costs, add
from partita.planner.solver import Solution, World, solve

__all__ = ["Settled", "settle"]

_TRIES = 64  # complete assignments that are all tried

Homes = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Settled:
    """A solution with the nodes of its bundles.

    Attributes:
        solution: What was chosen.
        costs: Penalties of the pods left out and costs of the outcomes, per stage.
        proven: Whether nothing better exists for the bundles that it serves.
        reduced: Whether bundles had to be left out that were to be served.
    """

    solution: Solution
    costs: Costs
    proven: bool
    reduced: bool = False


def settle(place: World, wishes: Sequence[Wish], tail: int) -> Settled:
    """Choose outcomes for all wishes, bundles included.

    Args:
        place: What can be chosen from.
        wishes: Pending pods, most important first.
        tail: Number of stages when there are no wishes.
    """
    bundles = [wish for wish in wishes if wish.slices > 1]
    finder = _Finder(place, wishes, tail)
    if not bundles:
        return finder.settled({}, exhaustive=True)
    options = [finder.nodes_for(wish) for wish in bundles]
    tries = 1
    for nodes in options:
        tries *= len(nodes) + 1
    if tries > _TRIES:
        return finder.settled(finder.greedy(bundles, options), exhaustive=False)
    candidates = [
        finder.settled(
            {w.pod.full_name: n for w, n in zip(bundles, nodes, strict=True) if n is not None},
            exhaustive=True,
        )
        for nodes in product(*[[*nodes, None] for nodes in options])
    ]
    best = min(candidates, key=lambda candidate: candidate.costs)
    proven = all(candidate.proven for candidate in candidates if not candidate.reduced)
    return Settled(best.solution, best.costs, proven)


class _Finder:
    """Tries homes for bundles."""

    def __init__(self, place: World, wishes: Sequence[Wish], tail: int) -> None:
        self.place = place
        self.wishes = wishes
        self.tail = tail
        self.local: dict[str, World] = {}
        for node in sorted({site.gpu.node for site in place.sites} | {p.node for p in place.pools}):
            self.local[node] = World(
                tuple(site for site in place.sites if site.gpu.node == node),
                tuple(pool for pool in place.pools if pool.node == node),
            )

    def settled(self, homes: Homes, *, exhaustive: bool) -> Settled:
        """Solve with these homes; bundles that come out incomplete are left out, last first."""
        homes = dict(homes)
        dropped = False
        while True:
            chosen = [w for w in self.wishes if w.slices == 1 or w.pod.full_name in homes]
            solution = solve(self.place, chosen, homes, self.tail)
            incomplete = [w for w in chosen if w.slices > 1 and not _served(solution, w)]
            if not incomplete:
                break
            dropped = True
            del homes[incomplete[-1].pod.full_name]
        costs: Costs = (*(0,) * (self.tail - len(solution.costs)), *solution.costs)
        for wish in self.wishes:
            if not _served(solution, wish):
                costs = add(costs, wish.penalty)
        return Settled(solution, costs, solution.proven and exhaustive, reduced=dropped)

    def nodes_for(self, wish: Wish) -> list[str]:
        """Return the nodes that can hold the bundle when nothing else is there."""
        found: list[str] = []
        fits: dict[object, bool] = {}
        for node in wish.nodes:
            if node not in self.local:
                continue
            look = self._look(node)
            if look not in fits:
                fits[look] = self._cost(node, [wish]) is not None
            if fits[look]:
                found.append(node)
        return found

    def greedy(self, bundles: Sequence[Wish], options: Sequence[Sequence[str]]) -> Homes:
        """Place bundles one after the other where each costs least."""
        there: dict[str, list[Wish]] = {}
        homes: dict[str, str] = {}
        for wish, nodes in zip(bundles, options, strict=True):
            costs: dict[object, Costs | None] = {}
            best: tuple[Costs, int, str] | None = None
            for node in nodes:
                present = there.get(node, [])
                look = (self._look(node), tuple(tuple(w.pod.requests.items()) for w in present))
                if look not in costs:
                    costs[look] = self._cost(node, [*present, wish])
                cost = costs[look]
                if cost is not None:
                    rank = (cost, -len(present), node)
                    best = rank if best is None else min(best, rank)
            if best is not None:
                homes[wish.pod.full_name] = best[2]
                there.setdefault(best[2], []).append(wish)
        return homes

    def _look(self, node: str) -> object:
        """What tells two nodes apart for planning."""
        local = self.local[node]
        return (
            tuple(sorted(id(site.outcomes) for site in local.sites)),
            tuple(pool.offer for pool in local.pools),
        )

    def _cost(self, node: str, wishes: Sequence[Wish]) -> Costs | None:
        """Return what serving these bundles costs on a node, None when it cannot."""
        homes = {wish.pod.full_name: node for wish in wishes}
        solution = solve(self.local[node], wishes, homes, self.tail)
        return solution.costs if all(_served(solution, wish) for wish in wishes) else None


def _served(solution: Solution, wish: Wish) -> bool:
    return wish.pod.full_name in solution.served
