"""Every way in which one GPU may end up, with what it offers and what it costs.

A GPU's pinned instances stay. On what is left, each legal set of new instances (of the profiles
that somebody asks for) is one option; free instances in its way are destroyed, the others stay and
serve. GPUs in the same state share their options, so a fleet of thousands has few distinct lists.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from partita.planner.geometry import Geometry, New, every_arrangement, future

__all__ = ["Option", "Standing", "completed", "mig_options", "offered"]


@dataclass(frozen=True, slots=True)
class Standing:
    """An instance that stands, reduced to what legality needs.

    Attributes:
        profile: Number of its profile in ``Geometry.profiles``.
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
        future_lost: How much less ``future`` there is afterwards.
    """

    new: tuple[New, ...]
    destroyed: tuple[int, ...]
    future_lost: int


def mig_options(
    table: Geometry, standing: tuple[Standing, ...], wanted: frozenset[int], future_now: int
) -> Iterator[Option]:
    """Yield the options of a GPU in MIG mode: for each offer the cheapest, in order of cost.

    Args:
        table: The GPU model.
        standing: Instances that stand.
        wanted: Numbers of the profiles that may be created.
        future_now: ``future`` of the GPU as it stands, to tell what is lost.
    """
    pinned = 0
    for instance in standing:
        if instance.pinned:
            pinned |= instance.mask
    masks = tuple(places if number in wanted else () for number, places in enumerate(table.masks))
    simple = table.unlimited.issuperset(wanted.union(i.profile for i in standing))
    best: dict[tuple[int, ...], Option] = {}
    for new, taken in every_arrangement(masks, table.axis & ~pinned):
        if simple:
            options = [_unlimited_option(table, standing, new, taken, future_now)]
        else:
            options = list(_complete(table, standing, new, taken, future_now))
        for option in options:
            offer = offered(table, standing, option)
            known = best.get(offer)
            if known is None or _order(option) < _order(known):
                best[offer] = option
    yield from best.values()


def _unlimited_option(
    table: Geometry,
    standing: tuple[Standing, ...],
    new: tuple[New, ...],
    taken: int,
    future_now: int,
) -> Option:
    """Return the option of these creations where no limit can bind: only room is needed."""
    destroyed = []
    occupied = taken
    for position, instance in enumerate(standing):
        if instance.mask & taken and not instance.pinned:
            destroyed.append(position)
        else:
            occupied |= instance.mask
    return Option(new, tuple(destroyed), future_now - future(table, occupied))


def offered(table: Geometry, standing: tuple[Standing, ...], option: Option) -> tuple[int, ...]:
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


def completed(
    table: Geometry,
    standing: tuple[Standing, ...],
    new: tuple[New, ...],
    taken: int,
    destroyed: tuple[int, ...],
    future_now: int,
) -> Option | None:
    """Return the option of these creations and destructions, None when it is not legal."""
    if new and not _allowed(table, standing, new, destroyed):
        return None
    occupied = taken
    for position, instance in enumerate(standing):
        if position not in destroyed:
            occupied |= instance.mask
    return Option(new, destroyed, future_now - future(table, occupied))


def _complete(
    table: Geometry,
    standing: tuple[Standing, ...],
    new: tuple[New, ...],
    taken: int,
    future_now: int,
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
            option = completed(table, standing, new, taken, destroyed, future_now)
            if option is not None:
                found = True
                yield option
        if found:
            return


def _allowed(
    table: Geometry,
    standing: tuple[Standing, ...],
    new: tuple[New, ...],
    destroyed: tuple[int, ...],
) -> bool:
    numbers = [i.profile for p, i in enumerate(standing) if p not in destroyed]
    numbers += [number for number, _ in new]
    return table.unlimited.issuperset(numbers) or table.fits_together(Counter(numbers))
