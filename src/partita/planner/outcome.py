"""What one GPU can become: its outcomes, each with what it offers and what it costs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from partita.catalog import library
from partita.catalog.gpu_model import MigCapability
from partita.model.gpu import Gpu, Hold, MigMode
from partita.model.resource import mig_profile, mig_resource
from partita.planner import fixed_layout
from partita.planner.geometry import Geometry, future, geometry
from partita.planner.options import Option, Standing, mig_options, offered
from partita.planner.permission import Permission

__all__ = ["COST_STAGES", "Offer", "Outcome", "budget_mib", "of_pool", "outcomes"]

COST_STAGES = 5  # destroyed, created, mode changes, future lost, touched


@dataclass(frozen=True, slots=True)
class Offer:
    """Equal slices that an outcome serves and nobody holds.

    Attributes:
        resource: Resource name.
        memory_mib: Memory that each may use, None when unknown.
        count: How many.
        profile: MIG profile, None for whole and shared GPUs.
    """

    resource: str
    memory_mib: int | None
    count: int
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way a GPU may end up.

    Attributes:
        mig_mode: MIG mode afterwards.
        option: Instances created and destroyed.
        replicas: Time-sliced replicas afterwards.
        offers: What it serves.
        costs: Destroyed, created, mode changes, future lost, touched.
    """

    mig_mode: MigMode
    option: Option
    replicas: int
    offers: tuple[Offer, ...]
    costs: tuple[int, int, int, int, int]


def budget_mib(gpu: Gpu, replicas: int) -> int | None:
    """Memory budget of one of ``replicas`` shares: total less the driver's own, divided."""
    if gpu.memory_mib is None:
        return None
    return (gpu.memory_mib - (gpu.reserved_memory_mib or 0)) // replicas


def outcomes(gpu: Gpu, permission: Permission, wanted: frozenset[str]) -> tuple[Outcome, ...]:
    """Return every outcome of a GPU; the first leaves it as it is.

    Args:
        gpu: The GPU.
        permission: What may be done with it.
        wanted: Resource names that pending pods ask for.
    """
    model = library.find(gpu.model) if gpu.model is not None else None
    if gpu.problem is not None:
        return (_nothing(gpu),)
    if model is None or model.mig is None or gpu.mig_mode is MigMode.UNSUPPORTED:
        return tuple(_whole_outcomes(gpu, permission))
    return tuple(_mig_capable(gpu, model.mig, permission, wanted))


def of_pool(offer: Offer) -> Outcome:
    """Return the only outcome of slices that stand and are left alone."""
    return Outcome(MigMode.OFF, Option((), (), 0), 1, (offer,), (0, 0, 0, 0, 0))


def standing(gpu: Gpu, table: Geometry) -> tuple[Standing, ...]:
    """Return the instances of a GPU in the form the search works on."""
    return tuple(
        Standing(table.number(instance.profile), instance.mask, instance.hold.pinned)
        for instance in gpu.instances
    )


def _nothing(gpu: Gpu) -> Outcome:
    return Outcome(gpu.mig_mode, Option((), (), 0), gpu.replicas, (), (0, 0, 0, 0, 0))


def _whole_outcomes(gpu: Gpu, permission: Permission) -> Iterator[Outcome]:
    """Outcomes of a GPU outside of MIG mode that stays there."""
    stays = _nothing(gpu)
    if gpu.hold is not Hold.FREE:
        yield stays
    elif permission.frozen is None and (permission.replicas, permission.resource) != (
        gpu.replicas,
        gpu.resource,
    ):
        yield replace(
            stays,
            replicas=permission.replicas,
            offers=(_whole_offer(gpu, permission),),
            costs=(0, 0, 0, 0, 1),
        )
    else:
        yield replace(stays, offers=(_whole_offer(gpu, permission),))


def _whole_offer(gpu: Gpu, permission: Permission) -> Offer:
    replicas = permission.replicas
    return Offer(permission.resource, budget_mib(gpu, replicas), replicas)


def _mig_capable(
    gpu: Gpu, mig: MigCapability, permission: Permission, wanted: frozenset[str]
) -> Iterator[Outcome]:
    off = gpu.mig_mode is MigMode.OFF
    table = geometry(mig)
    stands = standing(gpu, table)
    occupied = 0
    for instance in stands:
        occupied |= instance.mask
    future_now = future(table, occupied)
    if off and gpu.hold is Hold.FREE and _must_be_cut(permission):
        option = fixed_layout.best(table, stands, permission.layout or {}, future_now)
        yield _cut(table, stands, option, _aliases(table, wanted), mode_change=True)
        return
    if off:
        yield from _whole_outcomes(gpu, permission)
        if gpu.hold.pinned or permission.replicas > 1:
            return
    if not off or (permission.recut and permission.change_mode):
        names = _aliases(table, wanted)
        for option in _options(table, stands, permission, frozenset(names), future_now):
            if not off or option.new:
                cut = _cut(table, stands, option, names, mode_change=off)
                yield _as_whole(cut, gpu) if gpu.single_strategy else cut
    if not off and _may_be_whole(stands, permission):
        lost = Option((), tuple(range(len(stands))), future_now)
        yield Outcome(
            MigMode.OFF,
            lost,
            permission.replicas,
            (_whole_offer(gpu, permission),),
            (len(stands), 0, 1, future_now, 1),
        )


def _must_be_cut(permission: Permission) -> bool:
    """Whether a policy fixes a layout, whoever waits, and lets MIG be switched on for it."""
    return permission.layout is not None and permission.recut and permission.change_mode


def _as_whole(outcome: Outcome, gpu: Gpu) -> Outcome:
    """Under the strategy *single* MIG slices are served under the name of whole GPUs."""
    offers = tuple(replace(offer, resource=gpu.resource) for offer in outcome.offers)
    return replace(outcome, offers=offers)


def _may_be_whole(stands: tuple[Standing, ...], permission: Permission) -> bool:
    return (
        permission.whole
        and permission.change_mode
        and permission.layout is None
        and not any(instance.pinned for instance in stands)
    )


def _options(
    table: Geometry,
    stands: tuple[Standing, ...],
    permission: Permission,
    wanted: frozenset[int],
    future_now: int,
) -> Iterator[Option]:
    if permission.layout is not None:
        yield fixed_layout.best(table, stands, permission.layout, future_now)
        return
    if not permission.recut:
        yield Option((), (), 0)
        return
    if permission.profiles is not None:
        allowed = {table.number(p) for p in permission.profiles if table.has(p)}
        wanted = frozenset(wanted & allowed)
    yield from mig_options(table, stands, wanted, future_now)


def _aliases(table: Geometry, wanted: frozenset[str]) -> Mapping[int, tuple[str, ...]]:
    """Per wanted profile number: the resource names under which it is asked for."""
    found: dict[int, tuple[str, ...]] = {}
    for resource in sorted(wanted):
        profile = mig_profile(resource)
        if profile is not None and table.has(profile):
            number = table.number(profile)
            found[number] = (*found.get(number, ()), resource)
    return found


def _cut(
    table: Geometry,
    stands: tuple[Standing, ...],
    option: Option,
    names: Mapping[int, tuple[str, ...]],
    *,
    mode_change: bool,
) -> Outcome:
    offers = tuple(
        Offer(
            names.get(number, (mig_resource(table.profiles[number].name),))[0],
            table.profiles[number].memory_mib,
            count,
            table.profiles[number].name,
        )
        for number, count in enumerate(offered(table, stands, option))
        if count
    )
    destroyed, created = len(option.destroyed), len(option.new)
    touched = mode_change or destroyed + created > 0  # an empty layout is a change of mode alone
    costs = (destroyed, created, int(mode_change), option.future_lost, int(touched))
    return Outcome(MigMode.ON, option, 1, offers, costs)
