"""Where instances may stand on one GPU model, as bit masks: the plain profiles of the catalogue."""

from collections.abc import Sequence
from dataclasses import dataclass

from partita.catalog import library

__all__ = ["Geometry", "of"]


@dataclass(frozen=True, slots=True)
class Geometry:
    """One GPU model without media variants, for which placements alone decide what fits.

    Attributes:
        names: Profile names, smallest first.
        sizes: Memory slices per profile.
        masks: Per profile: the mask of each placement, lowest start first.
        memory_slices: Length of the axis.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    masks: tuple[tuple[int, ...], ...]
    memory_slices: int

    def free(self, occupied: int) -> list[int]:
        """Return per profile how many of its placements lie on free slices only."""
        return [sum(1 for mask in masks if not mask & occupied) for masks in self.masks]

    def largest(self, occupied: int) -> int:
        """Return the size of the largest profile that still fits, 0 when none does."""
        fitting = zip(self.sizes, self.free(occupied), strict=True)
        return max((size for size, free in fitting if free), default=0)

    def mean_size(self, weights: Sequence[float]) -> float:
        """Return the mean memory slices of a request."""
        total = sum(weights)
        return sum(w * size for w, size in zip(weights, self.sizes, strict=True)) / total


def of(model: str) -> Geometry:
    """Return the geometry of a catalogue model."""
    mig = library.get(model).mig
    plain = [p for p in mig.profiles if "+" not in p.name] if mig is not None else []
    return Geometry(
        names=tuple(profile.name for profile in plain),
        sizes=tuple(profile.memory_slices for profile in plain),
        masks=tuple(tuple(place.mask for place in profile.placements) for profile in plain),
        memory_slices=mig.memory_slices if mig is not None else 0,
    )
