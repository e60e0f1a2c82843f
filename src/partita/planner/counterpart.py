"""Other profiles that a refused pod could ask for instead."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from partita.catalog import library
from partita.catalog.gpu_model import Profile
from partita.model.gpu import Gpu, MigMode
from partita.model.placement import Placement
from partita.model.resource import mig_profile
from partita.planner.blocking import profiles
from partita.planner.geometry import geometry
from partita.planner.plan import GpuPlan
from partita.planner.solver import Site

__all__ = ["Counterpart", "creatable", "existing", "fitting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterpart:
    """A profile that could be asked for instead.

    Attributes:
        profile: Its name.
        gpu: A GPU that has it.
        placement: Where it stands free or could be created there, None when unknown.
    """

    profile: str
    gpu: Gpu
    placement: Placement | None


def fitting(
    resource: str, sites: Sequence[Site], plans: Mapping[tuple[str, int], GpuPlan]
) -> list[Counterpart]:
    """Return other profiles that are free or can be created beside the plan, nearest first.

    Args:
        resource: What was asked for; other than a MIG resource has no counterpart.
        sites: GPUs where the pod may run.
        plans: What was chosen for them.
    """
    wanted = mig_profile(resource)
    if wanted is None:
        return []
    return _nearest(wanted, (found for site in sites for found in _fits(site, plans, wanted)))


def existing(resource: str, sites: Sequence[Site]) -> list[Counterpart]:
    """Return the profiles of boards that lack the wanted one, the nearest first."""
    wanted = mig_profile(resource)
    if wanted is None:
        return []
    boards = [site.gpu for site in sites if wanted not in [p.name for p in profiles(site.gpu)]]
    return _nearest(
        wanted,
        (
            Counterpart(profile=profile.name, gpu=gpu, placement=None)
            for gpu in boards
            for profile in profiles(gpu)
        ),
    )


def creatable(gpu_plan: GpuPlan) -> Iterator[tuple[Profile, Placement]]:
    """Yield each profile that can be created beside the planned layout, with a free placement."""
    model = library.find(gpu_plan.gpu.model or "")
    if gpu_plan.mig_mode is not MigMode.ON or model is None or model.mig is None:
        return
    table = geometry(model.mig)
    occupied = 0
    counts: dict[int, int] = {}
    for instance in gpu_plan.instances:
        for placement in instance.candidates:
            occupied |= placement.mask
        number = table.number(instance.profile)
        counts[number] = counts.get(number, 0) + 1
    for number, profile in enumerate(table.profiles):
        free = [p for p in profile.placements if not p.mask & occupied]
        if free and table.fits_together({**counts, number: counts.get(number, 0) + 1}):
            yield profile, free[0]


def _fits(
    site: Site, plans: Mapping[tuple[str, int], GpuPlan], wanted: str
) -> Iterator[Counterpart]:
    permission = site.permission
    for instance in plans[site.gpu.key].instances:
        free = instance.standing is not None and not instance.standing.hold.pinned
        if free and not instance.pods and instance.profile != wanted:
            place = instance.candidates[0] if len(instance.candidates) == 1 else None
            yield Counterpart(profile=instance.profile, gpu=site.gpu, placement=place)
    if not permission.recut or permission.layout is not None:
        return
    for profile, placement in creatable(plans[site.gpu.key]):
        allowed = permission.profiles is None or profile.name in permission.profiles
        if profile.name != wanted and allowed:
            yield Counterpart(profile=profile.name, gpu=site.gpu, placement=placement)


def _nearest(wanted: str, found: Iterable[Counterpart]) -> list[Counterpart]:
    """Return one counterpart per profile: nearest in compute, then in memory, then plainest."""
    compute, memory = _size(wanted)

    def distance(item: Counterpart) -> tuple[int, int, int, str, str, int]:
        other_compute, other_memory = _size(item.profile)
        return (
            abs(other_compute - compute),
            abs(other_memory - memory),
            len(item.profile.split("gb", 1)[1]),
            item.profile,
            item.gpu.node,
            item.gpu.index,
        )

    first: dict[str, Counterpart] = {}
    for item in sorted(found, key=distance):
        first.setdefault(item.profile, item)
    return list(first.values())


def _size(profile: str) -> tuple[int, int]:
    """Return (compute slices, gigabytes) from a profile name."""
    compute, rest = profile.split("g.", 1)
    return int(compute), int(rest.split("gb", 1)[0])
