"""Chooses the outcome of every GPU and the pods that its slices go to.

Translates GPUs and wishes into a ``Program``, has ``search`` solve it, and translates back. What
makes it fast: GPUs with the same outcomes form one group, and slices that are standing and held by
an unknown subset of pods form a pool of their own.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from partita.catalog import library
from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, Hold, MigMode
from partita.model.resource import mig_resource
from partita.planner import search
from partita.planner.demand import Demand, Kind, Wish, demand
from partita.planner.outcome import COST_STAGES, Offer, Outcome, budget_mib, of_pool, outcomes
from partita.planner.permission import Permission
from partita.planner.program import Choice, Column, Costs, Group, Program, add

__all__ = ["Grant", "Pool", "Site", "Solution", "World", "solve", "world"]

_SPLITS = 400  # ways to divide equal slices among kinds before only the simplest are considered

Split = tuple[tuple[int, int, int], ...]  # (offer number, kind, count)


@dataclass(frozen=True, slots=True)
class Pool:
    """Free slices of a node that stand, without saying which of the equal ones are held.

    Attributes:
        node: Node name.
        offer: What they are; ``count`` of them are free.
    """

    node: str
    offer: Offer


@dataclass(frozen=True, slots=True)
class Site:
    """One GPU with its outcomes."""

    gpu: Gpu
    permission: Permission
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class World:
    """What can be chosen from: GPUs with outcomes, and pools."""

    sites: tuple[Site, ...]
    pools: tuple[Pool, ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """One slice for one pod.

    Attributes:
        pod: ``namespace/name``.
        resource: Resource name it asked for.
        node: Node name.
        index: NVML index, None for a slice of a pool.
        profile: MIG profile, None for whole and shared GPUs.
    """

    pod: str
    resource: str
    node: str
    index: int | None
    profile: str | None


@dataclass(frozen=True, slots=True)
class Solution:
    """What was chosen.

    Attributes:
        outcomes: Chosen outcome per GPU, in the order of ``World.sites``.
        grants: Slices given to pods.
        served: Names of the pods that get everything they asked for.
        costs: Cost of the outcomes, per stage of the plan.
        proven: Whether nothing better exists for the same wishes and homes.
    """

    outcomes: tuple[Outcome, ...]
    grants: tuple[Grant, ...]
    served: frozenset[str]
    costs: Costs
    proven: bool


def world(
    fleet: Fleet, permissions: Mapping[tuple[str, int], Permission], wanted: frozenset[str]
) -> World:
    """Return every GPU with its outcomes, and the pools."""
    known: dict[object, tuple[Outcome, ...]] = {}
    sites = []
    for gpu in fleet.gpus:
        permission = permissions[gpu.key]
        state = _state(gpu, permission)
        if state not in known:
            known[state] = outcomes(gpu, permission, wanted)
        sites.append(Site(gpu, permission, known[state]))
    return World(tuple(sites), tuple(_pools(fleet)))


def solve(place: World, chosen: Sequence[Wish], homes: Mapping[str, str], tail: int) -> Solution:
    """Choose outcomes for the wishes.

    Args:
        place: What can be chosen from.
        chosen: Pods to serve, most important first.
        homes: Node of each bundle among them, by pod name.
        tail: Length of the penalties of ``chosen`` when there are none.
    """
    asked = demand(chosen, homes)
    stages = len(chosen[0].penalty) if chosen else tail
    builder = _Builder(asked, stages)
    for site in place.sites:
        builder.add_site(site)
    for pool in place.pools:
        builder.add_pool(pool)
    program = Program(stages, asked.penalties(), builder.groups())
    choice = search.solve(program)
    return builder.solution(place, choice, proven=choice.proven and builder.exact)


def _state(gpu: Gpu, permission: Permission) -> object:
    """What the outcomes of a GPU depend on, and nothing else."""
    instances = tuple((i.profile, i.candidates, i.hold.pinned) for i in gpu.instances)
    layout = tuple(sorted(permission.layout.items())) if permission.layout is not None else None
    return (
        gpu.model,
        gpu.mig_mode,
        instances,
        gpu.hold,
        gpu.replicas,
        gpu.renamed,
        gpu.single_strategy,
        gpu.memory_mib,
        gpu.reserved_memory_mib,
        gpu.problem is None,
        permission.recut,
        permission.profiles,
        layout,
        permission.whole,
        permission.change_mode,
        permission.replicas,
        permission.resource,
        permission.frozen is None,
    )


def _pools(fleet: Fleet) -> Iterator[Pool]:
    """Slices that stand and may be free although none of them is known to be.

    Where they differ in memory, the smallest count as the free ones.
    """
    pinned: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for gpu in fleet.gpus:
        if gpu.problem is None:
            for resource, profile, memory in _pinned(gpu):
                pinned.setdefault((gpu.node, resource), []).append((memory or 0, profile or ""))
    for (node, resource), slices in sorted(pinned.items()):
        free = len(slices) - fleet.held.get((node, resource), len(slices))
        for (memory, profile), count in Counter(sorted(slices)[: max(0, free)]).items():
            yield Pool(node, Offer(resource, memory or None, count, profile or None))


def _pinned(gpu: Gpu) -> Iterator[tuple[str, str | None, int | None]]:
    """Yield (resource, profile, memory) of each slice that must stay."""
    if gpu.hold is not Hold.FREE and gpu.mig_mode is not MigMode.ON:
        yield from [(gpu.resource, None, budget_mib(gpu, gpu.replicas))] * gpu.replicas
    for instance in gpu.instances:
        if instance.hold.pinned:
            known = library.profile(gpu.model, instance.profile)
            name = known.name if known is not None else instance.profile
            resource = gpu.resource if gpu.single_strategy else mig_resource(name)
            yield resource, name, known.memory_mib if known is not None else None


@dataclass(frozen=True, slots=True)
class _Built:
    """The columns of one state of GPUs or pools, and what each of them means.

    Attributes:
        columns: The columns.
        meanings: Per column: number of the outcome, and which of its slices go to which kind.
    """

    columns: tuple[Column, ...]
    meanings: tuple[tuple[int, Split], ...]


class _Builder:
    """Collects groups, and remembers what each of their columns means."""

    def __init__(self, asked: Demand, stages: int) -> None:
        self.asked = asked
        self.stages = stages
        self.exact = True
        self._kinds: dict[str, list[tuple[int, Kind, frozenset[str]]]] = {}
        for number, kind in enumerate(asked.kinds):
            self._kinds.setdefault(kind.resource, []).append((number, kind, frozenset(kind.nodes)))
        self._built: dict[object, _Built] = {}
        self._members: dict[object, tuple[_Built, list[Site | Pool]]] = {}

    def add_site(self, site: Site) -> None:
        """Add a GPU."""
        served = self._served(site.gpu.node, site.outcomes)
        key = (id(site.outcomes), served)
        if key not in self._built:
            self._built[key] = self._columns(site.outcomes, served)
        self._members.setdefault(key, (self._built[key], []))[1].append(site)

    def add_pool(self, pool: Pool) -> None:
        """Add a pool, slice by slice."""
        single = of_pool(replace(pool.offer, count=1))
        built = self._columns((single,), self._served(pool.node, (single,)))
        self._members[id(pool)] = (built, [pool] * pool.offer.count)

    def groups(self) -> tuple[Group, ...]:
        """Return the groups of the program."""
        return tuple(Group(len(sources), b.columns) for b, sources in self._members.values())

    def solution(self, place: World, choice: Choice, *, proven: bool) -> Solution:
        """Translate a choice back."""
        chosen: dict[tuple[str, int], Outcome] = {}
        slices: list[list[tuple[int, int, _Slice]]] = [[] for _ in self.asked.kinds]
        total: Costs = (0,) * COST_STAGES
        for (built, sources), counts in zip(self._members.values(), choice.counts, strict=True):
            picks = [n for n, count in enumerate(counts) for _ in range(count)]
            for source, pick in zip(sources, picks, strict=True):
                number, split = built.meanings[pick]
                if isinstance(source, Site):
                    outcome = source.outcomes[number]
                    chosen[source.gpu.key] = outcome
                    total = add(total, outcome.costs)
                else:
                    outcome = of_pool(source.offer)
                for kind, rank, one in _slices(source, outcome, split):
                    slices[kind].append((rank, len(slices[kind]), one))
        grants = list(self._grants(slices))
        return Solution(
            outcomes=tuple(chosen[site.gpu.key] for site in place.sites),
            grants=tuple(grants),
            served=self._complete(grants),
            costs=total,
            proven=proven,
        )

    def _served(
        self, node: str, several: Sequence[Outcome]
    ) -> tuple[tuple[str, int | None, tuple[int, ...]], ...]:
        """Per offer that may occur: the kinds it can serve on this node."""
        offers = {(o.resource, o.memory_mib) for outcome in several for o in outcome.offers}
        found = []
        for resource, memory in sorted(offers, key=str):
            kinds = tuple(
                number
                for number, kind, nodes in self._kinds.get(resource, ())
                if node in nodes and (memory is None or kind.memory_mib <= memory)
            )
            if kinds:
                found.append((resource, memory, kinds))
        return tuple(found)

    def _columns(
        self,
        several: Sequence[Outcome],
        served: tuple[tuple[str, int | None, tuple[int, ...]], ...],
    ) -> _Built:
        kinds_of = {(resource, memory): kinds for resource, memory, kinds in served}
        best: dict[tuple[tuple[int, int], ...], tuple[Costs, int, Split]] = {}
        for number, outcome in enumerate(several):
            costs = (*(0,) * (self.stages - COST_STAGES), *outcome.costs)
            for split in self._splits(outcome, kinds_of):
                supply: dict[int, int] = {}
                for _, kind, count in split:
                    supply[kind] = supply.get(kind, 0) + count
                key = tuple(sorted(supply.items()))
                if key not in best or costs < best[key][0]:
                    best[key] = (costs, number, split)
        order = sorted(best, key=lambda key: (best[key][0], key))
        return _Built(
            tuple(Column(key, best[key][0]) for key in order),
            tuple((best[key][1], best[key][2]) for key in order),
        )

    def _splits(
        self, outcome: Outcome, kinds_of: Mapping[tuple[str, int | None], tuple[int, ...]]
    ) -> Iterator[Split]:
        """Yield the ways to divide an outcome's slices among the kinds they can serve."""
        parts: list[list[Split]] = []
        ways = 1
        for number, offer in enumerate(outcome.offers):
            kinds = kinds_of.get((offer.resource, offer.memory_mib), ())
            if kinds:
                divisions = [
                    tuple((number, kind, n) for kind, n in zip(kinds, counts, strict=True) if n)
                    for counts in _compositions(offer.count, len(kinds))
                ]
                if ways * len(divisions) > _SPLITS:
                    self.exact = False
                    divisions = [((number, kind, offer.count),) for kind in kinds]
                ways *= len(divisions)
                parts.append(divisions)
        for combination in product(*parts):
            yield tuple(entry for part in combination for entry in part)

    def _grants(self, slices: Sequence[list[tuple[int, int, "_Slice"]]]) -> Iterator[Grant]:
        """Give the slices of each kind to its pods; the slots of one GPU last to the same pod."""
        for queue, ready in zip(self.asked.queues, slices, strict=True):
            ordered = sorted(ready, key=lambda item: item[:2])
            for wish, (_, _, one) in zip(queue, ordered, strict=False):
                yield Grant(wish.pod.full_name, one.resource, one.node, one.index, one.profile)

    def _complete(self, grants: Sequence[Grant]) -> frozenset[str]:
        got: dict[str, int] = {}
        for grant in grants:
            got[grant.pod] = got.get(grant.pod, 0) + 1
        return frozenset(
            wish.pod.full_name
            for queue in self.asked.queues
            for wish in queue
            if got.get(wish.pod.full_name, 0) == wish.slices
        )


@dataclass(frozen=True, slots=True)
class _Slice:
    """One slice that the choice serves."""

    resource: str
    node: str
    index: int | None
    profile: str | None


def _slices(
    source: Site | Pool, outcome: Outcome, split: Split
) -> Iterator[tuple[int, int, _Slice]]:
    """Yield (kind, number within its source, slice)."""
    node = source.gpu.node if isinstance(source, Site) else source.node
    index = source.gpu.index if isinstance(source, Site) else None
    for number, kind, count in split:
        offer = outcome.offers[number]
        for rank in range(count):
            yield kind, rank, _Slice(offer.resource, node, index, offer.profile)


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to write ``total`` as an ordered sum of ``parts`` counts."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total, -1, -1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)
