"""Every way in which one GPU may end up, with what it offers and what it costs.

A GPU's pinned instances stay. On what is left, each legal set of new instances (of the profiles
that somebody asks for) is one option; free instances in its way are destroyed, the others stay and
serve. GPUs in the same state share their options, so a fleet of thousands has few distinct lists.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations

from partita.catalog.gpu_model import MigCapability, Profile
from partita.catalog.legality import engine_pool

__all__ = [
    "Bench",
    "Option",
    "Standing",
    "arrangements",
    "bench",
    "completed",
    "free_pairs",
    "mig_options",
    "offered",
]

New = tuple[int, int]  # (profile number, start)


@dataclass(frozen=True, slots=True)
class Standing:
    """An instance that stands, reduced to what legality needs.

    Attributes:
        profile: Number of its profile in ``Bench.profiles``.
        mask: Memory slices that it may occupy.
        pinned: Whether it must stay.
    """

    profile: int
    mask: int
    pinned: bool


@dataclass(frozen=True, slots=True)
class Option:
    """One way a GPU may end up.

    Attributes:
        new: Instances to create: (profile number, start).
        destroyed: Positions, in the list of standing instances, of those to destroy.
        future_lost: Pairs (profile, placement) that can be created now and could not afterwards.
    """

    new: tuple[New, ...]
    destroyed: tuple[int, ...]
    future_lost: int


@dataclass(frozen=True)
class Bench:
    """A GPU model prepared for search: placements as bit masks, engines as tuples.

    Attributes:
        profiles: Profiles of the model, in catalogue order.
        masks: Per profile: (start, mask) of each placement.
        engines: Per profile: engines it takes from the pool.
        pool: Engines the GPU has.
        axis: All memory slices where a placement can be, as a mask.
        numbers: Profile number by name and alias.
        unlimited: Profiles that any arrangement without overlap may mix freely: among them neither
            instance limits nor engines can ever bind.
        pairs: Free pairs per occupied mask, as far as counted.
        rooms: Per occupied mask: memory slices that can still be covered, compute slices that can
            still be used, as far as counted.
    """

    profiles: tuple[Profile, ...]
    masks: tuple[tuple[tuple[int, int], ...], ...]
    engines: tuple[tuple[int, ...], ...]
    pool: tuple[int, ...]
    axis: int
    numbers: Mapping[str, int]
    unlimited: frozenset[int] = frozenset()
    pairs: dict[int, int] = field(default_factory=dict)
    rooms: dict[int, tuple[int, int]] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """Return the number of a profile name or alias."""
        return self.numbers[name]

    def has(self, name: str) -> bool:
        """Tell whether the model has a profile of this name or alias."""
        return name in self.numbers

    def fits_together(self, counts: Mapping[int, int]) -> bool:
        """Tell whether instance limits and engines allow these counts per profile."""
        if any(count > self.profiles[p].max_instances for p, count in counts.items()):
            return False
        used = [0] * len(self.pool)
        for number, count in counts.items():
            for engine, taken in enumerate(self.engines[number]):
                used[engine] += taken * count
        return all(taken <= there for taken, there in zip(used, self.pool, strict=True))


_BENCHES: dict[int, tuple[MigCapability, Bench]] = {}  # by identity: hashing all is slow


def bench(mig: MigCapability) -> Bench:
    """Return the prepared form of a model's MIG capability, made once per model."""
    known = _BENCHES.get(id(mig))
    if known is None or known[0] is not mig:
        plain = Bench(
            profiles=mig.profiles,
            masks=tuple(tuple((p.start, p.mask) for p in q.placements) for q in mig.profiles),
            engines=tuple(engine_pool(profile.engines) for profile in mig.profiles),
            pool=engine_pool(mig.full_profile.engines),
            axis=_axis(mig),
            numbers=_numbers(mig),
        )
        known = (mig, replace(plain, unlimited=_unlimited(plain)))
        _BENCHES[id(mig)] = known
    return known[1]


def free_pairs(table: Bench, occupied: int) -> int:
    """Count the (profile, placement) pairs that lie wholly on free memory slices.

    This is the measure of future requests that a layout still allows; ``docs/planner.md`` tells
    why this one.
    """
    count = table.pairs.get(occupied)
    if count is None:
        count = sum(1 for masks in table.masks for _, mask in masks if not mask & occupied)
        table.pairs[occupied] = count
    return count


@cache
def _arrangements(
    masks: tuple[tuple[tuple[int, int], ...], ...], free: int
) -> tuple[tuple[tuple[New, ...], int], ...]:
    """All sets of non-overlapping placements on the free slices, each with its occupied mask."""
    found: list[tuple[tuple[New, ...], int]] = [((), 0)]
    flat = sorted(
        (start, number, mask)
        for number, places in enumerate(masks)
        for start, mask in places
        if not mask & ~free
    )
    for start, number, mask in flat:
        found += [
            ((*chosen, (number, start)), taken | mask)
            for chosen, taken in found
            if not taken & mask
        ]
    return tuple(found)


def mig_options(
    table: Bench, standing: tuple[Standing, ...], wanted: frozenset[int], free_now: int
) -> Iterator[Option]:
    """Yield the options of a GPU in MIG mode: for each offer the cheapest, in order of cost.

    Args:
        table: The GPU model.
        standing: Instances that stand.
        wanted: Numbers of the profiles that may be created.
        free_now: ``free_pairs`` as it stands, to count what is lost.
    """
    pinned = 0
    for instance in standing:
        if instance.pinned:
            pinned |= instance.mask
    masks = tuple(places if number in wanted else () for number, places in enumerate(table.masks))
    best: dict[tuple[int, ...], Option] = {}
    for new, taken in _arrangements(masks, table.axis & ~pinned):
        for option in _complete(table, standing, new, taken, free_now):
            offer = offered(table, standing, option)
            known = best.get(offer)
            if known is None or _order(option) < _order(known):
                best[offer] = option
    yield from best.values()


def offered(table: Bench, standing: tuple[Standing, ...], option: Option) -> tuple[int, ...]:
    """Return how many unheld instances of each profile the option leaves, per profile number."""
    counts = [0] * len(table.profiles)
    for position, instance in enumerate(standing):
        if not instance.pinned and position not in option.destroyed:
            counts[instance.profile] += 1
    for number, _ in option.new:
        counts[number] += 1
    return tuple(counts)


def _order(option: Option) -> tuple[int, int, int, tuple[New, ...]]:
    return (len(option.destroyed), len(option.new), option.future_lost, option.new)


def _axis(mig: MigCapability) -> int:
    axis = 0
    for profile in mig.profiles:
        for placement in profile.placements:
            axis |= placement.mask
    return axis


def _unlimited(table: Bench) -> frozenset[int]:
    """Return the plain profiles when every arrangement of them passes all limits."""
    plain = frozenset(
        number
        for number, profile in enumerate(table.profiles)
        if not profile.name.split("gb", 1)[1]
    )
    masks = tuple(places if n in plain else () for n, places in enumerate(table.masks))
    sound = all(
        table.fits_together(Counter(number for number, _ in new))
        for new, _ in _arrangements(masks, table.axis)
    )
    return plain if sound else frozenset()


def _numbers(mig: MigCapability) -> Mapping[str, int]:
    numbers = {alias: n for n, profile in enumerate(mig.profiles) for alias in profile.aliases}
    numbers.update({profile.name: n for n, profile in enumerate(mig.profiles)})
    return numbers


def arrangements(
    table: Bench, occupied: int, counts: Mapping[int, int]
) -> Iterator[tuple[tuple[New, ...], int]]:
    """Yield sets of new instances on the free slices, at most ``counts`` of each, with their mask.

    Args:
        table: The GPU model.
        occupied: Memory slices that are taken, as a mask.
        counts: Profile number → most new instances.
    """
    masks = tuple(
        places if counts.get(number, 0) else () for number, places in enumerate(table.masks)
    )
    for new, taken in _arrangements(masks, table.axis & ~occupied):
        made = Counter(number for number, _ in new)
        if all(made[number] <= counts[number] for number in made):
            yield new, taken


def completed(
    table: Bench,
    standing: tuple[Standing, ...],
    new: tuple[New, ...],
    taken: int,
    destroyed: tuple[int, ...],
    free_now: int,
) -> Option | None:
    """Return the option of these creations and destructions, None when it is not legal."""
    if new and not _allowed(table, standing, new, destroyed):
        return None
    occupied = taken
    for position, instance in enumerate(standing):
        if position not in destroyed:
            occupied |= instance.mask
    return Option(new, destroyed, free_now - free_pairs(table, occupied))


def _complete(
    table: Bench, standing: tuple[Standing, ...], new: tuple[New, ...], taken: int, free_now: int
) -> Iterator[Option]:
    """Add the destructions that a set of new instances makes necessary; none if impossible."""
    forced = tuple(
        position for position, i in enumerate(standing) if not i.pinned and i.mask & taken
    )
    rest = [p for p, i in enumerate(standing) if not i.pinned and p not in forced]
    for extra_count in range(len(rest) + 1):
        found = False
        for extra in combinations(rest, extra_count):
            destroyed = tuple(sorted(forced + extra))
            option = completed(table, standing, new, taken, destroyed, free_now)
            if option is not None:
                found = True
                yield option
        if found:
            return


def _allowed(
    table: Bench, standing: tuple[Standing, ...], new: tuple[New, ...], destroyed: tuple[int, ...]
) -> bool:
    numbers = [i.profile for p, i in enumerate(standing) if p not in destroyed]
    numbers += [number for number, _ in new]
    return table.unlimited.issuperset(numbers) or table.fits_together(Counter(numbers))
