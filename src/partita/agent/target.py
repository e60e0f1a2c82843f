"""What each GPU is to become, and why not all of it can be had now. Pure; the planner decides."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from partita.agent.holders import Holders
from partita.catalog import library
from partita.catalog.gpu_model import GpuModel
from partita.config.agent_document import AgentDocument
from partita.config.partition_policy import Follow, PartitionPolicy, Strategy
from partita.model import resource
from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, GpuInstance, Hold, MigMode
from partita.model.node import Node
from partita.planner import permission, planning
from partita.planner.plan import Create, GpuPlan
from partita.ports.gpu_driver import DriverGpu, DriverInstance

__all__ = ["Target", "model_of", "profile_of", "targets"]

_NODE = "this node"
_MIBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What one GPU is to become from where it stands.

    Attributes:
        mode: MIG mode it is to have; None = whatever it has.
        surplus: Instances that are to go as soon as they are free, by id.
        create: Instances to create, in this order.
        may_reset: Whether the GPU may be reset for a change of its mode.
        policies: Policies that select it; more than one is one too many.
        unmet: Why not all that is wanted can be had; None when it can or is there.
        keeps: Whether it stays as it stands, whatever that is.
    """

    mode: MigMode | None = None
    surplus: frozenset[int] = frozenset()
    create: tuple[Create, ...] = ()
    may_reset: bool = False
    policies: tuple[PartitionPolicy, ...] = ()
    unmet: str | None = None
    keeps: bool = False


def model_of(gpu: DriverGpu) -> GpuModel | None:
    """Return the catalogue's model of a GPU; the PCI id is surer than the name."""
    return library.find(gpu.pci_device) or library.find(gpu.product)


def profile_of(gpu: DriverGpu, instance: DriverInstance) -> str | None:
    """Return the name of an instance's profile, None when the catalogue does not know it."""
    model = model_of(gpu)
    profiles = model.mig.by_id if model is not None and model.mig is not None else {}
    profile = profiles.get(instance.profile_id)
    return profile.name if profile is not None else None


def targets(
    gpus: Sequence[DriverGpu], document: AgentDocument, holders: Holders
) -> Mapping[str, Target]:
    """Return the target of every GPU that can be read, by UUID."""
    readable = [gpu for gpu in gpus if gpu.failure is None]
    if not document.policies:
        return {gpu.uuid: Target(keeps=True) for gpu in readable}
    fleet = Fleet(
        nodes=(Node(name=_NODE),), gpus=tuple(_standing(gpu, holders) for gpu in readable)
    )
    chosen = permission.selected(fleet, document.policies)
    plan = planning.plan(fleet, document.policies)
    return {
        gpu.uuid: _target(gpu, gpu_plan, chosen[gpu_plan.gpu.key])
        for gpu, gpu_plan in zip(readable, plan.gpus, strict=True)
    }


def _standing(gpu: DriverGpu, holders: Holders) -> Gpu:
    """Return a GPU as the planner knows it, with everything pinned that may be in use."""
    model = model_of(gpu)
    names = [profile_of(gpu, instance) for instance in gpu.instances]
    using = (*holders.holders(gpu.uuid), *holders.users(gpu.uuid))
    return Gpu(
        node=_NODE,
        index=gpu.index,
        product=gpu.product,
        model=model.id if model is not None else None,
        uuid=gpu.uuid,
        mig_mode=gpu.mig_mode,
        pending_mig_mode=gpu.pending_mig_mode,
        instances=tuple(
            _instance(gpu, instance, name, holders)
            for instance, name in zip(gpu.instances, names, strict=True)
            if name is not None
        ),
        hold=_hold(using, holders) if gpu.mig_mode is not MigMode.ON else Hold.FREE,
        holders=using,
        memory_mib=gpu.memory_bytes // _MIBIBYTE if gpu.memory_bytes is not None else None,
        problem="an instance has a profile that the catalogue lacks" if None in names else None,
    )


def _instance(
    gpu: DriverGpu, instance: DriverInstance, profile: str, holders: Holders
) -> GpuInstance:
    by_pods = (name for one in instance.mig_devices for name in holders.holders(one.uuid))
    using = (*by_pods, *holders.users(gpu.uuid, instance.instance_id))
    if len(instance.mig_devices) > 1:
        using = (*using, f"split into {len(instance.mig_devices)} compute instances by hand")
    return GpuInstance(
        profile=profile,
        candidates=(instance.placement,),
        instance_id=instance.instance_id,
        hold=_hold(using, holders),
        holders=using,
    )


def _hold(using: Sequence[str], holders: Holders) -> Hold:
    if using:
        return Hold.HELD
    return Hold.POSSIBLE if holders.blind is not None else Hold.FREE


def _target(gpu: DriverGpu, plan: GpuPlan, policies: tuple[PartitionPolicy, ...]) -> Target:
    if len(policies) == 1 and _wants_whole(policies[0]) and gpu.mig_mode is MigMode.UNSUPPORTED:
        return Target(policies=policies)
    if plan.frozen is not None or len(policies) != 1:
        return Target(keeps=True, policies=policies, unmet=plan.frozen)
    (policy,) = policies
    if _wants_whole(policy):
        return _whole(gpu, plan.gpu, policy)
    if policy.strategy is not Strategy.MIG or policy.follow is not Follow.FIXED:
        return Target(keeps=True, policies=policies, unmet=_undirected(policy))
    refused = _mode_refused(gpu, policy, MigMode.ON)
    if refused is not None:
        return Target(keeps=True, policies=policies, unmet=refused)
    layout = _layout(plan.gpu, policy)
    kept = {i.standing.instance_id for i in plan.instances if i.standing is not None}
    gone = {i.instance_id for i in gpu.instances if i.instance_id not in kept}
    return Target(
        mode=MigMode.ON,
        surplus=frozenset(gone | set(_beyond(plan.gpu.instances, layout))),
        create=_creations(plan),
        may_reset=policy.mig.allow_reset,
        policies=policies,
        unmet=_missing(plan, layout),
    )


def _layout(gpu: Gpu, policy: PartitionPolicy) -> Mapping[str, int]:
    """Return the layout that a policy fixes, with the catalogue's names of the profiles."""
    layout: Counter[str] = Counter()
    for name, count in (policy.mig.layout or {}).items():
        profile = library.profile(gpu.model, name)
        layout[profile.name if profile is not None else name] += count
    return layout


def _wants_whole(policy: PartitionPolicy) -> bool:
    """Tell whether a policy wants GPUs uncut; one that shares MIG devices does not."""
    if policy.strategy is Strategy.TIME_SLICING and policy.time_slicing is not None:
        return any(one.name == resource.WHOLE_GPU for one in policy.time_slicing.resources)
    return policy.strategy is Strategy.WHOLE


def _whole(gpu: DriverGpu, standing: Gpu, policy: PartitionPolicy) -> Target:
    refused = _mode_refused(gpu, policy, MigMode.OFF)
    if refused is not None:
        return Target(keeps=True, policies=(policy,), unmet=refused)
    held = [one for one in standing.instances if one.hold.pinned]
    return Target(
        mode=MigMode.OFF,
        surplus=frozenset(instance.instance_id for instance in gpu.instances),
        may_reset=policy.mig.allow_reset,
        policies=(policy,),
        unmet=f"to be whole it must be empty: {_users(held)}" if held else None,
    )


def _mode_refused(gpu: DriverGpu, policy: PartitionPolicy, wanted: MigMode) -> str | None:
    """Return why the mode may not be changed, None when it may or need not be."""
    model = model_of(gpu)
    needs_reset = model is not None and model.mig is not None and model.mig.mode_change_needs_reset
    if gpu.mig_mode is wanted or policy.mig.allow_reset or not needs_reset:
        return None
    return (
        f"to switch MIG {wanted.value} this GPU must be reset, which policy {policy.name} does not"
        " allow (spec.mig.allowReset; for a mig-parted config --allow-reset)"
    )


def _undirected(policy: PartitionPolicy) -> str | None:
    """Return why a policy does not say how this GPU is cut, None when that is not its matter."""
    if policy.strategy is Strategy.TIME_SLICING:
        return None
    if policy.strategy is Strategy.AUTO:
        return f"policy {policy.name} leaves the cut to the controller (strategy: Auto)"
    return f"policy {policy.name} follows demand, which only the controller sees"


def _creations(plan: GpuPlan) -> tuple[Create, ...]:
    """Return what to create, the biggest first, as the planner orders it."""
    new = [instance for instance in plan.instances if instance.standing is None]
    new.sort(key=lambda i: (-i.candidates[0].size, i.candidates[0].start))
    return tuple(
        Create(
            node=_NODE,
            index=plan.gpu.index,
            profile=instance.profile,
            profile_id=_profile_id(plan.gpu, instance.profile),
            placement=instance.candidates[0],
        )
        for instance in new
    )


def _profile_id(gpu: Gpu, name: str) -> int | None:
    profile = library.profile(gpu.model, name)
    return profile.profile_id if profile is not None else None


def _beyond(instances: Sequence[GpuInstance], layout: Mapping[str, int]) -> Iterator[int]:
    """Yield held instances that a layout does not have room for: they go when they are free."""
    left = Counter(layout)
    for instance in sorted(instances, key=lambda i: i.hold is Hold.FREE):
        if left[instance.profile] > 0:
            left[instance.profile] -= 1
        elif instance.hold.pinned and instance.instance_id is not None:
            yield instance.instance_id


def _missing(plan: GpuPlan, layout: Mapping[str, int]) -> str | None:
    """Return which instances of the layout have no place, and who is in the way."""
    there = Counter(instance.profile for instance in plan.instances)
    lacking = {name: count - there[name] for name, count in layout.items() if count > there[name]}
    if not lacking:
        return None
    text = ", ".join(f"{count} x {name}" for name, count in sorted(lacking.items()))
    surplus = set(_beyond(plan.gpu.instances, layout))
    held = [i for i in plan.gpu.instances if i.instance_id in surplus]
    if plan.gpu.hold.pinned:
        return f"{text} must wait: {', '.join(plan.gpu.holders) or 'the GPU may be in use'}"
    return f"{text} must wait: {_users(held)}" if held else f"there is no room for {text}"


def _users(instances: Sequence[GpuInstance]) -> str:
    return "; ".join(
        f"{i.profile} at {i.placement} is held by {', '.join(i.holders) or 'somebody unknown'}"
        for i in instances
    )
