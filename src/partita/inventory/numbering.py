"""From GPU-instance ids to placements, as far as an id tells one.

The id of a GPU instance is a code of its place: 0 the whole, 1 and 2 the halves, 3 to 6 the
quarters, 7 to 14 the eighths. Which half comes first differs between boards of the same model:
there are two numberings, one the mirror image of the other, and nothing but a known placement tells
which one a board has. On boards that are cut into quarters at most only one numbering was ever
seen. Source: NVIDIA open-gpu-kernel-modules, ``kmigmgrSwizzIdToSpan``, and published ``-lgi`` logs.
"""

from partita.catalog.gpu_model import MigCapability
from partita.model.placement import Placement

__all__ = ["numberings", "place", "size"]

_EIGHTHS, _QUARTERS = 8, 4


def numberings(mig: MigCapability) -> tuple[bool, ...]:
    """Return the numberings that a board may have; True is the mirrored one, () = none is known."""
    if mig.axis_is_nominal:
        return ()
    return (False, True) if mig.memory_slices == _EIGHTHS else (False,)


def place(mig: MigCapability, instance_id: int, *, mirrored: bool) -> Placement | None:
    """Return the placement of an instance id under a numbering, None when there is no such id."""
    length = size(mig, instance_id)
    if length is None:
        return None
    parts = mig.memory_slices // length
    number = instance_id + 1 - parts
    if mirrored and parts > 1:
        number ^= parts // 2
    return Placement(start=number * length, size=length)


def size(mig: MigCapability, instance_id: int) -> int | None:
    """Return how many memory slices an instance with this id takes, None when it cannot be."""
    parts = 1 << ((instance_id + 1).bit_length() - 1)
    most = _EIGHTHS if mig.memory_slices == _EIGHTHS else _QUARTERS
    return mig.memory_slices // parts if parts <= most and not mig.axis_is_nominal else None
