"""Rules that choose a place for one request: each scores a GPU before and after, lower is better.

Where a rule leaves two places equal, the fullest GPU goes first, then the GPU of the lowest number,
then the lowest start: so only the measures differ. First fit alone looks at nothing but numbers.
"""

from collections.abc import Callable, Mapping, Sequence

from bench.future.geometry import Geometry

__all__ = ["RULES", "Rule", "Score", "pairs_by_demand"]

Score = tuple[float, ...]
Rule = Callable[[Geometry, int, int, Sequence[float]], Score]
"""(geometry, occupied mask before, occupied mask after, share of each profile in recent demand)."""


def _fewest_pairs(geometry: Geometry, before: int, after: int, _: Sequence[float]) -> Score:
    lost = sum(geometry.free(before)) - sum(geometry.free(after))
    return (lost, _fullest(before))


def _pairs_by_size(geometry: Geometry, before: int, after: int, _: Sequence[float]) -> Score:
    return (_weighted(geometry, before, after, geometry.sizes), _fullest(before))


def pairs_by_demand(geometry: Geometry, before: int, after: int, recent: Sequence[float]) -> Score:
    """The one rule that looks beyond the GPU: at what was asked for lately."""
    return (_weighted(geometry, before, after, recent), _fullest(before))


def _first_fit(_: Geometry, __: int, ___: int, ____: Sequence[float]) -> Score:
    return ()


def _best_fit(_: Geometry, before: int, __: int, ___: Sequence[float]) -> Score:
    return (_fullest(before),)


def _fragmentation(geometry: Geometry, before: int, after: int, _: Sequence[float]) -> Score:
    return (_blocked(geometry, after) - _blocked(geometry, before), _fullest(before))


def _largest(geometry: Geometry, before: int, after: int, _: Sequence[float]) -> Score:
    return (geometry.largest(before) - geometry.largest(after), _fullest(before))


def _fullest(occupied: int) -> int:
    return -occupied.bit_count()


def _weighted(geometry: Geometry, before: int, after: int, weights: Sequence[float]) -> float:
    pairs = zip(geometry.free(before), geometry.free(after), weights, strict=True)
    return sum((now - then) * weight for now, then, weight in pairs)


def _blocked(geometry: Geometry, occupied: int) -> int:
    """Size of the placements that are not free, over the profiles that the free memory would hold.

    As the abstract and formula of MFI (arXiv 2511.18906) read; its code is not public.
    """
    room = geometry.memory_slices - occupied.bit_count()
    return sum(
        size * (len(masks) - free)
        for size, masks, free in zip(
            geometry.sizes, geometry.masks, geometry.free(occupied), strict=True
        )
        if size <= room
    )


RULES: Mapping[str, Rule] = {
    "fewest lost pairs": _fewest_pairs,
    "lost pairs x size": _pairs_by_size,
    "lost pairs x recent demand": pairs_by_demand,
    "first fit": _first_fit,
    "best fit": _best_fit,
    "MFI-like": _fragmentation,
    "keep the largest": _largest,
}
