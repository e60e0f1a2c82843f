"""What stands in the way of a slice, place by place."""

from collections.abc import Iterator, Sequence

from partita.catalog import library
from partita.catalog.gpu_model import Profile
from partita.model.gpu import Gpu, GpuInstance, MigMode
from partita.model.placement import Placement
from partita.model.resource import WHOLE_GPU, mig_profile, unshared
from partita.planner.geometry import Geometry, geometry_of
from partita.planner.plan import Blocker
from partita.planner.solver import Site

__all__ = ["blockers", "can_ever", "has", "may_serve", "profile_of", "profiles", "some"]

_UNNAMED = ("a pod of this node",)
_SHOWN = 3


def can_ever(gpu: Gpu, resource: str) -> bool:
    """Tell whether the board, being well, could serve the resource at all."""
    return gpu.problem is None and has(gpu, resource)


def has(gpu: Gpu, resource: str) -> bool:
    """Tell whether boards of this model can serve the resource."""
    profile = mig_profile(resource)
    if profile is not None:
        model = library.find(gpu.model) if gpu.model is not None else None
        return model is not None and model.mig is not None and profile in model.mig.by_name
    return unshared(resource) == WHOLE_GPU


def may_serve(site: Site, resource: str) -> bool:
    """Tell whether the GPU would serve the resource if nobody held anything on it."""
    permission = site.permission
    profile = mig_profile(resource)
    if profile is None:
        off = site.gpu.mig_mode is not MigMode.ON
        to_whole = permission.whole and permission.change_mode and permission.frozen is None
        return permission.resource == resource and (off or to_whole)
    name = profile_of(site.gpu, profile).name
    stands = any(instance.profile in (name, profile) for instance in site.gpu.instances)
    allowed = permission.profiles is None or name in permission.profiles
    mode = site.gpu.mig_mode is MigMode.ON or permission.change_mode
    fixed = permission.layout is not None and name not in permission.layout
    return stands or (permission.recut and allowed and mode and not fixed)


def blockers(site: Site, resource: str) -> Iterator[Blocker]:
    """Yield, for each place of the slice on this GPU, what is in the way; maybe nothing."""
    gpu = site.gpu
    if not may_serve(site, resource):
        return
    profile = mig_profile(resource)
    if gpu.hold.pinned:
        yield _blocker(gpu, None, (), gpu.holders or _UNNAMED)
    elif profile is None:
        pinned = tuple(i for i in gpu.instances if i.hold.pinned)
        yield _blocker(gpu, None, pinned, _holders(pinned))
    else:
        limiting = _limiting(gpu, profile)
        for placement in profile_of(gpu, profile).placements:
            over = [i for i in gpu.instances if i.hold.pinned and i.mask & placement.mask]
            pinned = tuple(dict.fromkeys([*over, *limiting]))
            yield _blocker(gpu, placement, pinned, _holders(pinned))


def profile_of(gpu: Gpu, name: str) -> Profile:
    """Return the profile of a GPU by name or alias.

    Raises:
        UnknownProfileError: When its model has none of that name.
    """
    return library.get(gpu.model or gpu.product).profile(name)


def profiles(gpu: Gpu) -> tuple[Profile, ...]:
    """Return the MIG profiles of a GPU, none when it has no MIG or is unknown."""
    model = library.find(gpu.model) if gpu.model is not None else None
    return model.mig.profiles if model is not None and model.mig is not None else ()


def some(names: Sequence[str]) -> str:
    """Join names, the first few of many."""
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _limiting(gpu: Gpu, profile: str) -> tuple[GpuInstance, ...]:
    """Held instances that use up the engines or the instance limit that the profile needs."""
    table = geometry_of(gpu)
    number = table.number(profile)
    pinned = [i for i in gpu.instances if i.hold.pinned]
    if table.fits_together(_counts(table, pinned, number)):
        return ()
    alone = [i for i in pinned if not table.fits_together(_counts(table, [i], number))]
    return tuple(alone or pinned)


def _counts(table: Geometry, instances: Sequence[GpuInstance], one_more: int) -> dict[int, int]:
    counts = {one_more: 1}
    for instance in instances:
        number = table.number(instance.profile)
        counts[number] = counts.get(number, 0) + 1
    return counts


def _blocker(
    gpu: Gpu,
    placement: Placement | None,
    instances: tuple[GpuInstance, ...],
    holders: tuple[str, ...],
) -> Blocker:
    return Blocker(
        node=gpu.node, index=gpu.index, placement=placement, instances=instances, holders=holders
    )


def _holders(instances: Sequence[GpuInstance]) -> tuple[str, ...]:
    names = dict.fromkeys(name for i in instances for name in i.holders)
    return tuple(names) if names or not instances else _UNNAMED
