"""Whether GPU instances can stand together on one GPU.

The rule, for every family: each placement is in its profile's list; no two overlap; no profile
exceeds its instance limit; the media engines suffice (all there are belong to the full profile, so
``+me`` fits once and beside ``+me.all`` only ``-me`` profiles fit). Counting slices is not enough.
Source: NVIDIA MIG User Guide, ``nvidia-smi mig -lgipp``, and the engine comments of ``nvml.h``.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from partita.catalog.gpu_model import Engines, MigCapability, Profile
from partita.model.placement import Placement

__all__ = ["Slot", "engine_pool", "is_legal", "objection"]

_POOLED = ("decoder", "encoder", "jpeg", "ofa")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Slot:
    """A profile at a placement: what one GPU instance is, without identity."""

    placement: Placement
    profile: str


def engine_pool(engines: Engines) -> tuple[int, ...]:
    """Return the counts of the engines that instances compete for."""
    return tuple(getattr(engines, name) for name in _POOLED)


def is_legal(mig: MigCapability, slots: Sequence[Slot]) -> bool:
    """Tell whether the slots can stand together on one GPU."""
    return objection(mig, slots) is None


def objection(mig: MigCapability, slots: Sequence[Slot]) -> str | None:
    """Return why the slots cannot stand together, in words, or None when they can."""
    profiles = []
    for slot in slots:
        profile = mig.by_name.get(slot.profile)
        if profile is None:
            return f"there is no profile {slot.profile}"
        if slot.placement not in profile.placements:
            starts = ", ".join(str(placement.start) for placement in profile.placements)
            return f"{slot.profile} cannot start at {slot.placement.start}, only at {starts}"
        profiles.append(profile)
    return _overlap(slots) or _limit(profiles) or _engines(mig, profiles)


def _overlap(slots: Sequence[Slot]) -> str | None:
    for before, after in itertools.pairwise(sorted(slots)):
        if before.placement.overlaps(after.placement):
            first = f"{before.profile} at {before.placement}"
            return f"{first} and {after.profile} at {after.placement} overlap"
    return None


def _limit(profiles: Sequence[Profile]) -> str | None:
    for profile, count in Counter(profile.name for profile in profiles).items():
        limit = next(p.max_instances for p in profiles if p.name == profile)
        if count > limit:
            return f"{count} x {profile}, at most {limit} on one GPU"
    return None


def _engines(mig: MigCapability, profiles: Sequence[Profile]) -> str | None:
    pool = engine_pool(mig.full_profile.engines)
    for number, name in enumerate(_POOLED):
        wanted = sum(engine_pool(profile.engines)[number] for profile in profiles)
        if wanted > pool[number]:
            return f"{wanted} {name} engines wanted, the GPU has {pool[number]}"
    return None
