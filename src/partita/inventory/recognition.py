"""Which profile a GPU instance has, from whatever a source shows of it.

``nvidia-smi -q -x`` names no profile. Memory, engines, multiprocessors and the size that the
instance id stands for narrow it down; what they leave open stays open.
"""

import re
from collections.abc import Callable, Iterable

from partita.catalog.gpu_model import MigCapability, Profile
from partita.inventory import numbering
from partita.model.report import InstanceReport

__all__ = ["recognise"]

_NAME = re.compile(r"(?P<compute>\d+)g\.(?P<gigabytes>\d+)gb(?P<attribute>.*)")
_MEMORY_TOLERANCE = 0.06  # drivers differ by up to 4 % in what they keep for themselves
_NAME_TOLERANCE = 0.15  # the number in a name differs by up to 8 % between drivers
_USABLE = 0.95  # of the memory in a name, where the catalogue has no figure

Test = Callable[[Profile], bool]


def recognise(
    mig: MigCapability, report: InstanceReport, offered: frozenset[str] = frozenset()
) -> tuple[Profile, ...]:
    """Return the profiles an instance may have, in catalogue order; empty when none fits.

    Args:
        mig: The GPU model's profiles.
        report: What is known of the instance.
        offered: Profiles that the node offers to pods, by catalogue name; empty = not known. It
            decides only between profiles that look the same.
    """
    named = _named(mig, report)
    if named is not None:
        return (named,)
    found = _by_memory(mig.profiles, report.memory_mib)
    for test in (*_engines(report), _multiprocessors(report), _extent(mig, report)):
        found = tuple(filter(test, found)) or found
    known = report.memory_mib is not None or report.instance_id is not None
    if not known and report.placement is None:
        return ()
    return tuple(profile for profile in found if profile.name in offered) or found


def _named(mig: MigCapability, report: InstanceReport) -> Profile | None:
    by_name = mig.by_name.get(report.profile or "")
    by_id = mig.by_id.get(report.profile_id) if report.profile_id is not None else None
    return by_id or by_name or _by_similar_name(mig.profiles, report.profile or "")


def _by_similar_name(profiles: Iterable[Profile], name: str) -> Profile | None:
    """Find the profile that another driver calls a little differently (1g.11gb for 1g.12gb)."""
    wanted = _NAME.fullmatch(name)
    if wanted is None:
        return None
    near = []
    for profile in profiles:
        match = _NAME.fullmatch(profile.name)
        if match and match.group("compute", "attribute") == wanted.group("compute", "attribute"):
            theirs, ours = int(wanted["gigabytes"]), int(match["gigabytes"])
            near.append((abs(theirs - ours) / ours, profile.name, profile))
    best = min(near, default=None)
    return best[2] if best is not None and best[0] <= _NAME_TOLERANCE else None


def _by_memory(profiles: tuple[Profile, ...], memory_mib: int | None) -> tuple[Profile, ...]:
    if memory_mib is None:
        return profiles
    apart = {p.name: _distance(p, memory_mib) for p in profiles}
    least = min(apart.values())
    return tuple(p for p in profiles if apart[p.name] == least)


def _distance(profile: Profile, memory_mib: int) -> float:
    """Relative distance of a memory from a profile's; infinite when it is too far."""
    own, tolerance = profile.memory_mib, _MEMORY_TOLERANCE
    if own is None:
        match = _NAME.fullmatch(profile.name)
        own = int(int(match["gigabytes"] if match else 0) * 1024 * _USABLE)
        tolerance = _NAME_TOLERANCE
    distance = abs(own - memory_mib) / max(own, 1)
    return distance if distance <= tolerance else float("inf")


def _engines(report: InstanceReport) -> tuple[Test, ...]:
    return (
        lambda p: report.decoder_count in (None, p.engines.decoder),
        lambda p: report.copy_engine_count in (None, p.engines.copy),
        lambda p: report.jpeg_count in (None, p.engines.jpeg),
        lambda p: report.ofa_count in (None, p.engines.ofa),
    )


def _multiprocessors(report: InstanceReport) -> Test:
    """A split instance may show fewer than its profile has, never more."""
    shown = sum(instance.sm_count or 0 for instance in report.compute_instances)
    return lambda p: p.sm_count is None or p.sm_count >= shown


def _extent(mig: MigCapability, report: InstanceReport) -> Test:
    if report.placement is not None:
        places = report.placement
        return lambda p: places in p.placements
    size = None
    if report.instance_id is not None:
        size = numbering.size(mig, report.instance_id)
    return lambda p: size in (None, p.memory_slices)
