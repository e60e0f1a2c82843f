"""Requests that come and go on a fleet, each placed by a rule or lost."""

import heapq
import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.future.geometry import Geometry
from bench.future.rules import RULES, Rule, Score, pairs_by_demand

__all__ = ["Cell", "Request", "Share", "requests", "serve"]

_REMEMBERED = 500  # arrivals that recent demand is counted over
_RECOUNT = 100  # arrivals between two counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What is offered to what.

    Attributes:
        name: For the reader.
        load: Memory slices asked for at a time, in the mean, over those that exist.
        fleet: Geometry and number of GPUs, per model.
        weights: Per model: how often each of its profiles is asked for, relative to the others.
    """

    name: str
    load: float
    fleet: tuple[tuple[Geometry, int], ...]
    weights: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """A slice that is wanted from ``arrives`` until ``leaves``; time in mean lifetimes."""

    arrives: float
    leaves: float
    model: int
    profile: int


@dataclass(frozen=True, slots=True)
class Share:
    """What found a place.

    Attributes:
        requests: Requests accepted over requests made, from 0 to 1.
        memory: Memory slices of those accepted over memory slices asked for.
    """

    requests: float
    memory: float


def requests(cell: Cell, count: int, seed: int) -> Iterator[Request]:
    """Yield Poisson arrivals with exponential lifetimes; equal arguments, equal requests."""
    rng = random.Random(f"{cell.name} {seed}")  # noqa: S311  # repeatable, not secret
    rates = [
        cell.load * gpus * geometry.memory_slices / geometry.mean_size(weights)
        for (geometry, gpus), weights in zip(cell.fleet, cell.weights, strict=True)
    ]
    now = 0.0
    for _ in range(count):
        now += rng.expovariate(sum(rates))
        model = rng.choices(range(len(rates)), rates)[0]
        weights = cell.weights[model]
        profile = rng.choices(range(len(weights)), weights)[0]
        yield Request(now, now + rng.expovariate(1.0), model, profile)


def serve(cell: Cell, asked: Sequence[Request], rule: str, warm_up: int) -> Share:
    """Return what found a place of the requests after the first ``warm_up``."""
    pools = [_Pool(geometry, gpus, RULES[rule]) for geometry, gpus in cell.fleet]
    leaving: list[tuple[float, int, int, int]] = []
    served: list[int] = []
    for number, request in enumerate(asked):
        while leaving and leaving[0][0] <= request.arrives:
            _, model, gpu, mask = heapq.heappop(leaving)
            pools[model].leave(gpu, mask)
        found = pools[request.model].place(request.profile)
        if found is not None:
            heapq.heappush(leaving, (request.leaves, request.model, *found))
            if number >= warm_up:
                served.append(_size(cell, request))
    sizes = [_size(cell, request) for request in asked[warm_up:]]
    return Share(len(served) / len(sizes), sum(served) / sum(sizes))


def _size(cell: Cell, request: Request) -> int:
    return cell.fleet[request.model][0].sizes[request.profile]


class _Pool:
    """The GPUs of one model, grouped by what is occupied on them."""

    def __init__(self, geometry: Geometry, gpus: int, rule: Rule) -> None:
        self._geometry = geometry
        self._rule = rule
        self._occupied = [0] * gpus
        self._members: dict[int, list[int]] = {0: list(range(gpus))}  # heaps of GPU numbers
        self._best: dict[tuple[int, int], tuple[Score, int] | None] = {}
        self._seen: deque[int] = deque(maxlen=_REMEMBERED)
        self._arrivals = 0
        self._recent: list[float] = [1.0] * len(geometry.sizes)

    def place(self, profile: int) -> tuple[int, int] | None:
        """Take a place for a profile; return (GPU, mask), None when there is none."""
        self._remember(profile)
        best: tuple[Score, int, int] | None = None
        for occupied, gpus in self._members.items():
            found = self._on(occupied, profile) if gpus else None
            if found is not None and (best is None or (found[0], gpus[0]) < best[:2]):
                best = (found[0], gpus[0], found[1])
        if best is None:
            return None
        _, gpu, mask = best
        self._move(gpu, self._occupied[gpu] | mask)
        return gpu, mask

    def leave(self, gpu: int, mask: int) -> None:
        """Give a place back."""
        self._move(gpu, self._occupied[gpu] & ~mask)

    def _move(self, gpu: int, after: int) -> None:
        gpus = self._members[self._occupied[gpu]]
        gpus.remove(gpu)
        heapq.heapify(gpus)
        heapq.heappush(self._members.setdefault(after, []), gpu)
        self._occupied[gpu] = after

    def _on(self, occupied: int, profile: int) -> tuple[Score, int] | None:
        key = (occupied, profile)
        if key not in self._best:
            scores = [
                (self._rule(self._geometry, occupied, occupied | mask, self._recent), mask)
                for mask in self._geometry.masks[profile]
                if not mask & occupied
            ]
            self._best[key] = min(scores, default=None)
        return self._best[key]

    def _remember(self, profile: int) -> None:
        self._seen.append(profile)
        self._arrivals += 1
        if self._rule is pairs_by_demand and self._arrivals % _RECOUNT == 0:
            self._recent = [self._seen.count(p) / len(self._seen) for p in range(len(self._recent))]
            self._best.clear()
