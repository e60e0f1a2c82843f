"""A GPU model prepared for search: placements as bit masks, and what can be counted on them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from partita.catalog import library
from partita.catalog.gpu_model import MigCapability, Profile
from partita.catalog.legality import engine_pool
from partita.model.gpu import Gpu

__all__ = [
    "Geometry",
    "New",
    "arrangements",
    "every_arrangement",
    "future",
    "geometry",
    "geometry_of",
]

New = tuple[int, int]  # (profile number, start)
_Masks = tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True)
class Geometry:
    """The MIG placements of a GPU model as bit masks, its engines as tuples.

    Attributes:
        profiles: Profiles of the model, in catalogue order.
        masks: Per profile: (start, mask) of each placement.
        engines: Per profile: engines it takes from the pool.
        pool: Engines the GPU has.
        axis: All memory slices where a placement can be, as a mask.
        numbers: Profile number by name and alias.
        unlimited: Profiles that any arrangement without overlap may mix freely: among them neither
            instance limits nor engines can ever bind.
        futures: Per occupied mask: its ``future``, as far as counted.
        rooms: Per occupied mask: memory slices that can still be covered, compute slices that can
            still be used, as far as counted.
    """

    profiles: tuple[Profile, ...]
    masks: _Masks
    engines: tuple[tuple[int, ...], ...]
    pool: tuple[int, ...]
    axis: int
    numbers: Mapping[str, int]
    unlimited: frozenset[int] = frozenset()
    futures: dict[int, int] = field(default_factory=dict)
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


_GEOMETRIES: dict[int, tuple[MigCapability, Geometry]] = {}  # by identity: hashing all is slow


def geometry(mig: MigCapability) -> Geometry:
    """Return the prepared form of a model's MIG capability, made once per model."""
    known = _GEOMETRIES.get(id(mig))
    if known is None or known[0] is not mig:
        plain = Geometry(
            profiles=mig.profiles,
            masks=tuple(tuple((p.start, p.mask) for p in q.placements) for q in mig.profiles),
            engines=tuple(engine_pool(profile.engines) for profile in mig.profiles),
            pool=engine_pool(mig.full_profile.engines),
            axis=_axis(mig),
            numbers=_numbers(mig),
        )
        known = (mig, replace(plain, unlimited=_unlimited(plain)))
        _GEOMETRIES[id(mig)] = known
    return known[1]


def geometry_of(gpu: Gpu) -> Geometry:
    """Return the geometry of a GPU whose model is known and has MIG."""
    model = library.get(gpu.model or gpu.product)
    assert model.mig is not None
    return geometry(model.mig)


def future(table: Geometry, occupied: int) -> int:
    """Measure the future requests that a layout still allows.

    Every pair (profile, placement) that lies wholly on free memory slices counts with its memory
    slices. ``docs/planner.md`` tells why this measure.

    Args:
        table: The GPU model.
        occupied: Memory slices that are taken, as a mask.
    """
    worth = table.futures.get(occupied)
    if worth is None:
        worth = sum(
            mask.bit_count() for masks in table.masks for _, mask in masks if not mask & occupied
        )
        table.futures[occupied] = worth
    return worth


def arrangements(
    table: Geometry, occupied: int, counts: Mapping[int, int]
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
    for new, taken in every_arrangement(masks, table.axis & ~occupied):
        made = Counter(number for number, _ in new)
        if all(made[number] <= counts[number] for number in made):
            yield new, taken


@cache
def every_arrangement(masks: _Masks, free: int) -> tuple[tuple[tuple[New, ...], int], ...]:
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


def _axis(mig: MigCapability) -> int:
    axis = 0
    for profile in mig.profiles:
        for placement in profile.placements:
            axis |= placement.mask
    return axis


def _unlimited(table: Geometry) -> frozenset[int]:
    """Return the plain profiles when every arrangement of them passes all limits."""
    plain = frozenset(
        number
        for number, profile in enumerate(table.profiles)
        if not profile.name.split("gb", 1)[1]
    )
    masks = tuple(places if n in plain else () for n, places in enumerate(table.masks))
    sound = all(
        table.fits_together(Counter(number for number, _ in new))
        for new, _ in every_arrangement(masks, table.axis)
    )
    return plain if sound else frozenset()


def _numbers(mig: MigCapability) -> Mapping[str, int]:
    numbers = {alias: n for n, profile in enumerate(mig.profiles) for alias in profile.aliases}
    numbers.update({profile.name: n for n, profile in enumerate(mig.profiles)})
    return numbers
