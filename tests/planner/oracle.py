"""The best plan of a small fleet, found by trying everything.

It shares nothing with the planner but the catalogue's rule of which instances may stand together
(checked against NVIDIA's tables in ``tests/catalog``), so the two can only agree by both being
right. It is slow and meant for up to three GPUs and five pods, without policies, shared GPUs or
instances of unknown placement.
"""

import functools
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from partita.catalog import legality, library
from partita.catalog.gpu_model import MigCapability
from partita.catalog.legality import Slot
from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, GpuInstance, Hold, MigMode
from partita.model.node import Node
from partita.model.pod import Phase, Pod
from partita.model.resource import WHOLE_GPU, mig_profile
from partita.planner.plan import Cost

__all__ = ["Best", "best", "may_run", "penalties", "pending", "spare"]

Offer = tuple[int, ...]  # slices that pods can get, in the order of the asked resources
Price = tuple[int, ...]  # the fields of a cost, in their order
_NOTHING: Price = (0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """What the best plan of a fleet costs.

    Attributes:
        penalties: What the pods that get nothing cost, as ``penalties`` counts it.
        cost: What the changes cost.
    """

    penalties: tuple[int, ...]
    cost: Cost


def best(fleet: Fleet) -> Best:
    """Return what no plan can beat: every pod on every node or left out, every final state."""
    pods = pending(fleet)
    asked: dict[str, int] = {}
    for pod in pods:
        for resource, count in pod.requests.items():
            asked[resource] = asked.get(resource, 0) + count
    offers = {node.name: _node_offers(fleet, node.name, asked) for node in fleet.nodes}

    @functools.cache
    def cheapest(node: str, need: Offer) -> Price | None:
        prices = [price for offer, price in offers[node].items() if _covers(offer, need)]
        return min(prices, default=None)

    found: list[tuple[tuple[int, ...], Price]] = []
    places = [[None, *(n.name for n in fleet.nodes if may_run(pod, n))] for pod in pods]
    for chosen in itertools.product(*places):
        prices = []
        for node in offers:
            here = [pod for pod, place in zip(pods, chosen, strict=True) if place == node]
            need = tuple(sum(pod.requests.get(name, 0) for pod in here) for name in asked)
            prices.append(cheapest(node, need))
        if None not in prices:
            out = [p.full_name for p, place in zip(pods, chosen, strict=True) if place is None]
            found.append((penalties(pods, out), _sum(p for p in prices if p is not None)))
    left_out, price = min(found)
    destroyed, created, mode_changes, future_lost, touched = price
    cost = Cost(
        destroyed=destroyed,
        created=created,
        mode_changes=mode_changes,
        future_lost=future_lost,
        gpus_touched=touched,
    )
    return Best(penalties=left_out, cost=cost)


def pending(fleet: Fleet) -> tuple[Pod, ...]:
    """Return the pods that wait."""
    return tuple(pod for pod in fleet.pods if pod.phase is Phase.PENDING and pod.node is None)


def penalties(pods: Sequence[Pod], left_out: Collection[str]) -> tuple[int, ...]:
    """Return, priority by priority from the highest, how many pods go without and their age cost.

    Of D different dates the i-th oldest costs ``1 + (D-1-i)*16//D``; an unknown date costs nothing,
    and so does every pod of a priority with fewer than two dates.
    """
    found = []
    for priority in sorted({pod.priority for pod in pods}, reverse=True):
        peers = [pod for pod in pods if pod.priority == priority]
        out = [pod for pod in peers if pod.full_name in left_out]
        dates = sorted({pod.created for pod in peers if pod.created is not None})
        ages = [dates.index(pod.created) for pod in out if pod.created is not None]
        count = len(dates)
        age = sum(1 + (count - 1 - i) * 16 // count for i in ages) if count > 1 else 0
        found += [len(out), age]
    return tuple(found)


def may_run(pod: Pod, node: Node) -> bool:
    """Tell whether a pod may run on a node, as far as selector, taints and cordon go."""
    selected = all(node.labels.get(key) == value for key, value in pod.node_selector.items())
    tolerated = {toleration.key for toleration in pod.tolerations}
    kept_away = any(
        taint.effect != "PreferNoSchedule" and taint.key not in tolerated for taint in node.taints
    )
    return node.schedulable and selected and not kept_away


def spare(fleet: Fleet, node: str, resource: str) -> int:
    """Return how many of the slices that may be held are free, without it being known which."""
    holds = [
        hold
        for gpu in fleet.gpus
        if gpu.node == node and gpu.problem is None
        for name, hold in _slices(gpu)
        if name == resource and hold.pinned
    ]
    return max(0, len(holds) - fleet.held.get((node, resource), 0))


def _slices(gpu: Gpu) -> Iterator[tuple[str, Hold]]:
    if gpu.mig_mode is not MigMode.ON:
        yield WHOLE_GPU, gpu.hold
    for instance in gpu.instances:
        yield "nvidia.com/mig-" + instance.profile.replace("+", "."), instance.hold


def _node_offers(fleet: Fleet, node: str, asked: Mapping[str, int]) -> dict[Offer, Price]:
    """Return everything that the GPUs of a node can offer together, each with its least price.

    Prices add up over GPUs and are compared from left to right, so of two states of a GPU with the
    same offer the dearer one is never needed. More than is asked is as good as what is asked.
    """
    most = tuple(asked.values())
    offers: dict[Offer, Price] = {tuple(spare(fleet, node, name) for name in asked): _NOTHING}
    for gpu in fleet.gpus:
        if gpu.node == node:
            own = _cheapest(_states(gpu, asked), most)
            pairs = itertools.product(offers.items(), own.items())
            offers = _cheapest(
                (
                    (_sum((one, other)), _sum((price, more)))
                    for (one, price), (other, more) in pairs
                ),
                most,
            )
    return offers


def _cheapest(states: Iterator[tuple[Offer, Price]], most: Offer) -> dict[Offer, Price]:
    found: dict[Offer, Price] = {}
    for offer, price in states:
        capped = tuple(map(min, offer, most))
        found[capped] = min(price, found.get(capped, price))
    return found


def _states(gpu: Gpu, asked: Mapping[str, int]) -> Iterator[tuple[Offer, Price]]:
    """Yield what the GPU offers and costs in every state that it can be brought to."""
    nothing = tuple(0 for _ in asked)
    if gpu.problem is not None or gpu.hold.pinned:
        yield nothing, _NOTHING
        return
    whole = tuple(int(name == WHOLE_GPU) for name in asked)
    model = library.get(gpu.product)
    if model.mig is None or gpu.mig_mode is MigMode.UNSUPPORTED:
        yield whole, _NOTHING
        return
    future = _future(model.mig, [_slot(instance) for instance in gpu.instances])
    if gpu.mig_mode is MigMode.OFF:
        yield whole, _NOTHING
    elif not any(instance.hold.pinned for instance in gpu.instances):
        yield whole, (len(gpu.instances), 0, 1, future, 1)
    yield from _mig_states(gpu, model.mig, asked, future)


def _mig_states(
    gpu: Gpu, mig: MigCapability, asked: Mapping[str, int], future: int
) -> Iterator[tuple[Offer, Price]]:
    switched = int(gpu.mig_mode is MigMode.OFF)
    pinned = [instance for instance in gpu.instances if instance.hold.pinned]
    free = [instance for instance in gpu.instances if not instance.hold.pinned]
    for flags in itertools.product((True, False), repeat=len(free)):
        kept = [instance for instance, keep in zip(free, flags, strict=True) if keep]
        standing = [_slot(instance) for instance in (*pinned, *kept)]
        destroyed = len(free) - len(kept)
        for new in _additions(mig, standing, asked):
            usable = [*(instance.profile for instance in kept), *(slot.profile for slot in new)]
            offer = tuple(usable.count(_profile(mig, name)) for name in asked)
            lost = future - _future(mig, [*standing, *new])
            touched = int(bool(switched or destroyed or new))
            yield offer, (destroyed, len(new), switched, lost, touched)


def _additions(
    mig: MigCapability, standing: Sequence[Slot], asked: Mapping[str, int]
) -> Iterator[tuple[Slot, ...]]:
    """Yield every set of new instances that can stand beside the standing ones.

    Only profiles that pods ask for, and no more of each than they ask for: an instance that nobody
    gets can be left out of a plan, which stays legal, serves the same pods and creates one fewer.
    """
    wanted = {_profile(mig, name): count for name, count in asked.items()}
    slots = [
        Slot(placement=placement, profile=profile.name)
        for profile in mig.profiles
        for placement in profile.placements
        if profile.name in wanted
    ]

    def grow(start: int, new: tuple[Slot, ...]) -> Iterator[tuple[Slot, ...]]:
        yield new
        names = [slot.profile for slot in new]
        for number in range(start, len(slots)):
            slot = slots[number]
            enough = names.count(slot.profile) >= wanted[slot.profile]
            if not enough and legality.is_legal(mig, (*standing, *new, slot)):
                yield from grow(number + 1, (*new, slot))

    return grow(0, ())


def _profile(mig: MigCapability, resource: str) -> str | None:
    """Return the profile of this model that serves a resource, by its catalogue name."""
    found = mig.by_name.get(mig_profile(resource) or "")
    return found.name if found is not None else None


def _slot(instance: GpuInstance) -> Slot:
    assert instance.placement is not None, "the oracle needs known placements"
    return Slot(placement=instance.placement, profile=instance.profile)


def _future(mig: MigCapability, slots: Sequence[Slot]) -> int:
    """Add up the sizes of the (profile, placement) pairs that lie wholly on free memory slices."""
    return sum(
        placement.size
        for profile in mig.profiles
        for placement in profile.placements
        if not any(placement.overlaps(slot.placement) for slot in slots)
    )


def _covers(offer: Offer, need: Offer) -> bool:
    return all(have >= want for have, want in zip(offer, need, strict=True))


def _sum(vectors: Iterable[Price]) -> Price:
    return tuple(map(sum, zip(*vectors, strict=True)))
