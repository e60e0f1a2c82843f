"""Other profiles that a refused pod could ask for instead."""

from collections.abc import Iterator, Mapping, Sequence

from partita.catalog import library
from partita.catalog.gpu_model import Profile
from partita.model.gpu import Gpu, MigMode
from partita.model.placement import Placement
from partita.model.resource import mig_profile, mig_resource
from partita.planner.blocking import profiles
from partita.planner.geometry import geometry
from partita.planner.plan import Change, ChangeKind, GpuPlan
from partita.planner.solver import Site

__all__ = ["counterparts", "creatable"]

Found = tuple[str, Gpu, Placement | None]


def counterparts(
    resource: str, sites: Sequence[Site], plans: Mapping[tuple[str, int], GpuPlan]
) -> tuple[Change, ...]:
    """Return the nearest other request: one that fits after the plan, else one that exists.

    Args:
        resource: What was asked for; other than a MIG resource has no counterpart.
        sites: GPUs where the pod may run.
        plans: What was chosen for them.
    """
    wanted = mig_profile(resource)
    if wanted is None:
        return ()
    fitting = _nearest(wanted, [found for site in sites for found in _fits(site, plans, wanted)])
    if fitting is not None:
        profile, gpu, placement = fitting
        text = f"ask for {mig_resource(profile)}: fits now on {gpu.node}/{gpu.index} at {placement}"
        return (Change(kind=ChangeKind.ASK_OTHER_PROFILE, text=text),)
    strangers = [site.gpu for site in sites if wanted not in [p.name for p in profiles(site.gpu)]]
    existing = _nearest(
        wanted, [(profile.name, gpu, None) for gpu in strangers for profile in profiles(gpu)]
    )
    if existing is None:
        return ()
    text = f"ask for {mig_resource(existing[0])}, the counterpart on {existing[1].product}"
    return (Change(kind=ChangeKind.ASK_OTHER_PROFILE, text=text),)


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


def _fits(site: Site, plans: Mapping[tuple[str, int], GpuPlan], wanted: str) -> Iterator[Found]:
    permission = site.permission
    if not permission.recut or permission.layout is not None:
        return
    for profile, placement in creatable(plans[site.gpu.key]):
        allowed = permission.profiles is None or profile.name in permission.profiles
        if profile.name != wanted and allowed:
            yield profile.name, site.gpu, placement


def _nearest(wanted: str, found: Sequence[Found]) -> Found | None:
    """Choose the profile nearest in compute, then in memory; plain before attributed."""
    compute, memory = _size(wanted)

    def distance(item: Found) -> tuple[int, int, int, str, str, int]:
        other_compute, other_memory = _size(item[0])
        attributes = len(item[0].split("gb", 1)[1])
        gpu = item[1]
        return (
            abs(other_compute - compute),
            abs(other_memory - memory),
            attributes,
            item[0],
            gpu.node,
            gpu.index,
        )

    return min(found, key=distance, default=None)


def _size(profile: str) -> tuple[int, int]:
    """Return (compute slices, gigabytes) from a profile name."""
    compute, rest = profile.split("g.", 1)
    return int(compute), int(rest.split("gb", 1)[0])
