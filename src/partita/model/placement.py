"""Where a MIG GPU instance stands on the memory-slice axis of its GPU."""

from dataclasses import dataclass

__all__ = ["Placement"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Placement:
    """A run of memory slices, as ``nvidia-smi mig -lgi`` prints it: ``start:size``.

    Attributes:
        start: First memory slice, from 0.
        size: Number of memory slices; 1 or more.
    """

    start: int
    size: int

    @property
    def end(self) -> int:
        """The first memory slice after the run."""
        return self.start + self.size

    @property
    def mask(self) -> int:
        """The run as a bit mask: bit ``i`` is memory slice ``i``."""
        return ((1 << self.size) - 1) << self.start

    def overlaps(self, other: "Placement") -> bool:
        """Tell whether the two runs share a memory slice."""
        return self.start < other.end and other.start < self.end

    def __str__(self) -> str:
        """Return ``start:size``."""
        return f"{self.start}:{self.size}"
