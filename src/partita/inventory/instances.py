"""Which profiles and placements the instances of one GPU may have, all of them taken together.

No source but ``nvidia-smi mig -lgi`` prints placements. The others leave a few arrangements open:
one numbering of instance ids or its mirror image, and whatever is legal for instances without id.
All legal arrangements are tried; what an instance has in any of them is what it may have.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from partita.catalog import legality
from partita.catalog.gpu_model import MigCapability, Profile
from partita.catalog.legality import Slot
from partita.inventory import numbering, usage
from partita.inventory.recognition import recognise
from partita.model.placement import Placement
from partita.model.report import InstanceReport

__all__ = ["Conclusion", "Instance", "conclude"]

Options = tuple[Slot, ...]
_Group = tuple[Options, int]  # options, and how many instances have just these


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """What is concluded of one instance.

    Attributes:
        report: What was read of it.
        profiles: Names it may have, the most likely first; one = known.
        candidates: Placements it may have, by start; one = known.
        certain: Whether its profile is known and its GPU's arrangement is legal.
    """

    report: InstanceReport
    profiles: tuple[str, ...]
    candidates: tuple[Placement, ...]
    certain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What is concluded of all instances of one GPU.

    Attributes:
        instances: In the order of the reports.
        notes: What is not certain, in words for the user.
    """

    instances: tuple[Instance, ...]
    notes: tuple[str, ...] = ()


def conclude(
    mig: MigCapability,
    reports: Sequence[InstanceReport],
    *,
    offered: frozenset[str] = frozenset(),
    layout: frozenset[Slot] | None = None,
) -> Conclusion:
    """Return what the instances of a GPU may be.

    Args:
        mig: The GPU model's profiles.
        reports: The instances.
        offered: Profiles that the node offers; decides between profiles that look the same.
        layout: Where a source without instance ids says that they stand, if one does.
    """
    profiles = [recognise(mig, report, offered) for report in reports]
    notes: list[str] = []
    found = _search(mig, reports, profiles, notes) if all(profiles) else ()
    if layout is not None and found:
        agreeing = tuple(a for a in found if frozenset(itertools.chain(*a.values())) == layout)
        if not agreeing:
            notes.append("the layout that the node object tells is not the one that stands")
        found = agreeing or found
    if not found:
        return _unarranged(mig, reports, profiles)
    order = {profile.name: number for number, profile in enumerate(mig.profiles)}
    instances = tuple(
        _instance(report, options, order)
        for report, options in zip(reports, _options(reports, found), strict=True)
    )
    return Conclusion(instances=instances, notes=(*notes, *_ambiguities(instances)))


_Arrangement = Mapping[tuple[int, ...], tuple[Slot, ...]]  # members of a group → their slots


def _search(
    mig: MigCapability,
    reports: Sequence[InstanceReport],
    profiles: Sequence[tuple[Profile, ...]],
    notes: list[str],
) -> tuple[_Arrangement, ...]:
    """Return all legal arrangements under every numbering that allows one."""
    numbered = any(report.instance_id is not None for report in reports)
    schemes: tuple[bool | None, ...] = numbering.numberings(mig) if numbered else ()
    found = [a for s in schemes for a in _arrangements(mig, reports, profiles, s)]
    if not found:
        found = list(_arrangements(mig, reports, profiles, None))
        if schemes and found:
            notes.append("the instance ids follow no known numbering, so they tell no placement")
    return tuple(found)


def _arrangements(
    mig: MigCapability,
    reports: Sequence[InstanceReport],
    profiles: Sequence[tuple[Profile, ...]],
    mirrored: bool | None,  # noqa: FBT001 - private; None = ids tell nothing
) -> Iterator[_Arrangement]:
    if len(reports) > mig.max_instances:
        return
    members: dict[tuple[bool, Options], list[int]] = {}
    for number, (report, possible) in enumerate(zip(reports, profiles, strict=True)):
        options = tuple(_slots(mig, report, possible, mirrored))
        members.setdefault((_anonymous(report), options), []).append(number)
    groups = tuple((options, len(numbers)) for (_, options), numbers in members.items())
    keys = [tuple(numbers) for numbers in members.values()]
    for chosen in _legal(mig, groups):
        yield dict(zip(keys, chosen, strict=True))


def _slots(
    mig: MigCapability,
    report: InstanceReport,
    profiles: tuple[Profile, ...],
    mirrored: bool | None,  # noqa: FBT001
) -> list[Slot]:
    known = {report.placement} - {None}
    if mirrored is not None and report.instance_id is not None:
        known.add(numbering.place(mig, report.instance_id, mirrored=mirrored))
    return sorted(
        Slot(placement=placement, profile=profile.name)
        for profile in profiles
        for placement in profile.placements
        if known <= {placement}
    )


def _anonymous(report: InstanceReport) -> bool:
    """Whether nothing tells the instance from another one of its profile."""
    named = any(instance.uuid is not None for instance in report.compute_instances)
    used = bool(report.process_ids) or bool(usage.signs(report))
    return report.instance_id is None and not named and not used


@lru_cache(maxsize=4096)
def _legal(
    mig: MigCapability, groups: tuple[_Group, ...]
) -> tuple[tuple[tuple[Slot, ...], ...], ...]:
    """Return every legal choice; members of a group are not told apart, so they come sorted."""
    return tuple(
        chosen
        for chosen in _apart(groups, 0)
        if legality.is_legal(mig, tuple(itertools.chain(*chosen)))
    )


def _apart(groups: Sequence[_Group], taken: int) -> Iterator[tuple[tuple[Slot, ...], ...]]:
    """Yield every choice in which no two instances overlap."""
    if not groups:
        yield ()
        return
    options, count = groups[0]
    for chosen in itertools.combinations(options, count):
        together, overlap = taken, False
        for slot in chosen:
            overlap = overlap or bool(together & slot.placement.mask)
            together |= slot.placement.mask
        if not overlap:
            for others in _apart(groups[1:], together):
                yield (chosen, *others)


def _options(
    reports: Sequence[InstanceReport], found: Sequence[_Arrangement]
) -> tuple[frozenset[Slot], ...]:
    """Return per instance what it is in any arrangement.

    Those that cannot be told apart are numbered by placement; any other may be any of its group.
    """
    options: list[set[Slot]] = [set() for _ in reports]
    for arrangement in found:
        for members, slots in arrangement.items():
            for position, number in enumerate(members):
                own = _anonymous(reports[number])
                options[number].update(slots[position : position + 1] if own else slots)
    return tuple(map(frozenset, options))


def _instance(
    report: InstanceReport, options: frozenset[Slot], order: Mapping[str, int]
) -> Instance:
    profiles = sorted({slot.profile for slot in options}, key=lambda name: order[name])
    return Instance(
        report=report,
        profiles=tuple(profiles),
        candidates=tuple(sorted({slot.placement for slot in options})),
        certain=len(profiles) == 1,
    )


def _ambiguities(instances: Sequence[Instance]) -> Iterator[str]:
    seen = dict.fromkeys(i.profiles for i in instances if not i.certain)
    for profiles in seen:
        count = sum(1 for instance in instances if instance.profiles == profiles)
        yield (
            f"{count} of its instances may be {' or '.join(profiles)} and are left alone;"
            " `nvidia-smi mig -lgi` tells which"
        )


def _unarranged(
    mig: MigCapability,
    reports: Sequence[InstanceReport],
    profiles: Sequence[tuple[Profile, ...]],
) -> Conclusion:
    """Say all that can be said when the instances cannot stand together as they were read."""
    instances = []
    for report, possible in zip(reports, profiles, strict=True):
        own = possible or mig.profiles
        places = {placement for profile in own for placement in profile.placements}
        instances.append(
            Instance(
                report=report,
                profiles=tuple(p.name for p in possible) or (report.profile or "unknown",),
                candidates=(report.placement,) if report.placement else tuple(sorted(places)),
                certain=False,
            )
        )
    known = [f"{i.profiles[0]} at {i.candidates[0]}" for i in instances if i.report.placement]
    named = ", ".join(known or [instance.profiles[0] for instance in instances])
    note = f"these instances cannot stand together on this model, so all are left alone: {named}"
    return Conclusion(instances=tuple(instances), notes=(note,))
