"""Brings one GPU to a layout that a policy fixes, as near as what is pinned allows."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations

from partita.planner.geometry import Geometry, arrangements
from partita.planner.options import Option, Standing, completed

__all__ = ["best"]


def best(
    table: Geometry, standing: tuple[Standing, ...], layout: Mapping[str, int], future_now: int
) -> Option:
    """Return the option that realises most of a layout at the least cost.

    Pinned instances stay whether the layout has them or not; free instances that it does not have
    are destroyed.

    Args:
        table: The GPU model.
        standing: Instances that stand.
        layout: Profile name → count.
        future_now: ``future`` of the GPU as it stands.
    """
    goal = Counter({table.number(name): count for name, count in layout.items() if count})
    kept = _as_it_stands(table, standing, goal, future_now)
    if kept is not None:
        return kept
    found = min(
        _candidates(table, standing, goal, future_now),
        key=lambda item: (
            item[0],
            len(item[1].destroyed),
            len(item[1].new),
            item[1].future_lost,
            item[1].new,
        ),
    )
    return found[1]


def _as_it_stands(
    table: Geometry, standing: tuple[Standing, ...], goal: Counter[int], future_now: int
) -> Option | None:
    """Return the only best option when all of the layout stands and no choice is left, else None.

    An agent asks again every few seconds, and mostly it is so.
    """
    needed = goal - Counter(i.profile for i in standing if i.pinned)
    free = Counter(i.profile for i in standing if not i.pinned and needed[i.profile])
    if free != needed:
        return None
    gone = tuple(p for p, i in enumerate(standing) if not (i.pinned or needed[i.profile]))
    return completed(table, standing, (), 0, gone, future_now)


def _candidates(
    table: Geometry, standing: tuple[Standing, ...], goal: Counter[int], future_now: int
) -> Iterator[tuple[int, Option]]:
    """Yield (number of layout instances that are missing, option)."""
    pinned = Counter(i.profile for i in standing if i.pinned)
    needed = goal - pinned
    free = [p for p, i in enumerate(standing) if not i.pinned and needed[i.profile]]
    for size in range(len(free) + 1):
        for kept in combinations(free, size):
            have = Counter(standing[p].profile for p in kept)
            if have - needed:
                continue
            gone = tuple(p for p, i in enumerate(standing) if not i.pinned and p not in kept)
            missing = needed - have
            occupied = 0
            for position, instance in enumerate(standing):
                if position not in gone:
                    occupied |= instance.mask
            for new, taken in arrangements(table, occupied, missing):
                option = completed(table, standing, new, taken, gone, future_now)
                if option is not None:
                    yield missing.total() - len(new), option
