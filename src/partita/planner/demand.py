"""What pending pods want, sorted into kinds that the same slices can serve.

Pods of one kind ask for one slice of the same resource, may run on the same nodes and need the same
memory; among them the more important ones go first: priority, then age. A pod that asks for more
than one slice is a *bundle*: all of it must come from one node.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from partita.model.fleet import Fleet
from partita.model.pod import Phase, Pod
from partita.planner import eligibility
from partita.planner.program import Costs

__all__ = ["Demand", "Kind", "Wish", "demand", "wishes"]

_AGE_STEPS = 16  # age counts in this many steps between the youngest and the oldest of a class
_UNKNOWN_AGE = "~"  # sorts after every date: of unknown age is youngest


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """What can be served by the same slices.

    Attributes:
        resource: Resource name.
        nodes: Names of the nodes that will do.
        memory_mib: Memory that a shared slot must have, 0 = any.
    """

    resource: str
    nodes: tuple[str, ...]
    memory_mib: int = 0


@dataclass(frozen=True, slots=True)
class Wish:
    """A pending pod with what planning needs to know of it.

    Attributes:
        pod: The pod.
        nodes: Nodes it may run on.
        penalty: What leaving it out costs, per stage.
    """

    pod: Pod
    nodes: tuple[str, ...]
    penalty: Costs

    @property
    def slices(self) -> int:
        """How many slices it asks for."""
        return sum(self.pod.requests.values())


@dataclass(frozen=True, slots=True)
class Demand:
    """Kinds with their pods, most important first.

    Attributes:
        kinds: The kinds.
        queues: Per kind: the pods, one entry for each slice.
    """

    kinds: tuple[Kind, ...]
    queues: tuple[tuple[Wish, ...], ...]

    def penalties(self) -> tuple[tuple[Costs, ...], ...]:
        """Return per kind the cost of each unit left out, least important first."""
        return tuple(tuple(wish.penalty for wish in reversed(queue)) for queue in self.queues)


def wishes(fleet: Fleet, tail: int) -> tuple[Wish, ...]:
    """Return the pending pods, most important first.

    Stages: for each priority, highest first, the number of pods left out and their age; then
    ``tail`` more that belong to the plan.
    """
    pods = [pod for pod in fleet.pods if pod.node is None and pod.phase is Phase.PENDING]
    classes = sorted({pod.priority for pod in pods}, reverse=True)
    ages = {priority: _ages(p for p in pods if p.priority == priority) for priority in classes}
    found = []
    eligible: dict[object, tuple[str, ...]] = {}
    for pod in sorted(pods, key=_rank):
        costs = [0] * (2 * len(classes) + tail)
        position = 2 * classes.index(pod.priority)
        costs[position], costs[position + 1] = 1, ages[pod.priority].get(pod.created or "", 0)
        key = (tuple(sorted(pod.node_selector.items())), pod.node_affinity, pod.tolerations)
        if key not in eligible:
            eligible[key] = tuple(
                node.name for node in fleet.nodes if eligibility.objection(pod, node) is None
            )
        found.append(Wish(pod, eligible[key], tuple(costs)))
    return tuple(found)


def demand(chosen: Sequence[Wish], homes: Mapping[str, str]) -> Demand:
    """Sort wishes into kinds.

    Args:
        chosen: Pods to serve, most important first.
        homes: Node of each bundle among them, by pod name.
    """
    queues: dict[Kind, list[Wish]] = {}
    for wish in chosen:
        home = homes.get(wish.pod.full_name)
        for resource, count in sorted(wish.pod.requests.items()):
            nodes = (home,) if home is not None else wish.nodes
            kind = Kind(resource, nodes, wish.pod.memory_mib or 0)
            queues.setdefault(kind, []).extend([wish] * count)
    kinds = tuple(sorted(queues))
    return Demand(kinds, tuple(tuple(queues[kind]) for kind in kinds))


def _rank(pod: Pod) -> tuple[int, str, str]:
    return (-pod.priority, pod.created or _UNKNOWN_AGE, pod.full_name)


def _ages(pods: Iterable[Pod]) -> dict[str, int]:
    """Return what leaving out a pod of each creation time costs: more for the older."""
    dates = sorted({pod.created for pod in pods if pod.created is not None})
    if len(dates) <= 1:
        return {}
    return {
        date: 1 + (len(dates) - 1 - position) * _AGE_STEPS // len(dates)
        for position, date in enumerate(dates)
    }
