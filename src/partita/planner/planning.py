"""``plan``: from what stands and what is wanted to steps, assignments and refusals."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from partita.catalog import library
from partita.config.partition_policy import PartitionPolicy
from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, MigMode
from partita.model.resource import WHOLE_GPU
from partita.planner import refusal, waste
from partita.planner.choice import choose
from partita.planner.geometry import geometry_of
from partita.planner.outcome import Outcome, budget_mib
from partita.planner.plan import (
    Assignment,
    Cost,
    Create,
    Destroy,
    GpuPlan,
    Plan,
    PlannedInstance,
    SetMigMode,
    SetReplicas,
    Step,
)
from partita.planner.solver import Grant, Site, Solution

__all__ = ["plan"]


def plan(fleet: Fleet, policies: Sequence[PartitionPolicy] = ()) -> Plan:
    """Plan how to cut the fleet's GPUs for its pending pods.

    In this order: most demand satisfied (by priority; then the older pods); nothing held is
    touched; fewest instances destroyed; fewest created; fewest mode changes; most future requests
    possible; fewest GPUs touched.

    Args:
        fleet: What stands, and the pods.
        policies: What may be done where; none = everything may be re-cut.
    """
    chosen = choose(fleet, policies)
    solution = chosen.settled.solution
    gpus, assignments = _gpu_plans(chosen.place.sites, solution)
    return Plan(
        fleet=fleet,
        gpus=gpus,
        steps=tuple(step for gpu in gpus for step in _steps(gpu)),
        assignments=assignments,
        unfit=refusal.refusals(fleet, policies, chosen, gpus, assignments),
        cost=_cost(solution),
        proven=chosen.settled.proven,
        warnings=tuple(_warnings(gpus, assignments)),
    )


def _warnings(gpus: Sequence[GpuPlan], assignments: Sequence[Assignment]) -> Iterator[str]:
    """Yield what users find out too late: a pending mode, two slots of one GPU for one pod."""
    for gpu_plan in gpus:
        gpu = gpu_plan.gpu
        if gpu.pending_mig_mode not in (None, gpu.mig_mode):
            yield (
                f"{gpu.node}/{gpu.index}: its MIG mode is to become {gpu.pending_mig_mode.value}"
                " at the next reset of the GPU; in a VM that may take a reboot"
            )
    shared = {g.gpu.key for g in gpus if g.replicas > 1}
    slots = Counter((a.pod, a.node, a.index) for a in assignments if (a.node, a.index) in shared)
    for (pod, node, index), count in slots.items():
        if count > 1:
            yield f"{pod} gets {count} slots of {node}/{index}: programs in it see one GPU"


def _cost(solution: Solution) -> Cost:
    destroyed, created, mode_changes, future_lost, touched = solution.costs
    return Cost(
        destroyed=destroyed,
        created=created,
        mode_changes=mode_changes,
        future_lost=future_lost,
        gpus_touched=touched,
    )


def _gpu_plans(
    sites: Sequence[Site], solution: Solution
) -> tuple[tuple[GpuPlan, ...], tuple[Assignment, ...]]:
    granted: dict[tuple[str, int | None], list[Grant]] = defaultdict(list)
    for grant in solution.grants:
        if grant.pod in solution.served:
            granted[grant.node, grant.index].append(grant)
    plans = []
    assignments = [
        Assignment(pod=g.pod, resource=g.resource, node=g.node, index=None, placement=None)
        for (_, index), grants in granted.items()
        if index is None
        for g in grants
    ]
    for site, outcome in zip(sites, solution.outcomes, strict=True):
        gpu_plan = _gpu_plan(site, outcome, granted[site.gpu.key])
        plans.append(gpu_plan)
        assignments += _assignments(gpu_plan, granted[site.gpu.key])
    order = {grant.pod: number for number, grant in enumerate(solution.grants)}
    assignments.sort(key=lambda a: (order[a.pod], a.resource, a.index is None, a.index or 0))
    return tuple(plans), tuple(assignments)


def _gpu_plan(site: Site, outcome: Outcome, grants: Sequence[Grant]) -> GpuPlan:
    gpu = site.gpu
    instances = _instances(gpu, outcome, grants)
    model = library.find(gpu.model) if gpu.model is not None else None
    mig = model.mig if model is not None else None
    changed = outcome.mig_mode is not gpu.mig_mode
    shared = outcome.replicas > 1
    stays = not any(outcome.costs)
    sharing = gpu.sharing if stays else site.permission.sharing
    resource = gpu.resource if stays else site.permission.resource
    return GpuPlan(
        gpu=gpu,
        mig_mode=outcome.mig_mode,
        instances=instances,
        replicas=outcome.replicas,
        sharing=sharing if shared else None,
        renamed=shared and resource != WHOLE_GPU,
        budget_mib=budget_mib(gpu, outcome.replicas) if shared else None,
        pods=tuple(grant.pod for grant in grants if grant.profile is None),
        needs_reset=changed and mig is not None and mig.mode_change_needs_reset,
        unusable=waste.unusable(gpu, mig, instances) if instances and mig is not None else None,
        frozen=site.permission.frozen,
    )


def _instances(gpu: Gpu, outcome: Outcome, grants: Sequence[Grant]) -> tuple[PlannedInstance, ...]:
    if outcome.mig_mode is not MigMode.ON:
        return ()
    if gpu.model is None or gpu.problem is not None:
        return tuple(
            PlannedInstance(profile=i.profile, candidates=i.candidates, standing=i)
            for i in gpu.instances
        )
    table = geometry_of(gpu)
    waiting: dict[str, list[str]] = defaultdict(list)
    for grant in grants:
        if grant.profile is not None:
            waiting[grant.profile].append(grant.pod)
    found = []
    for position, instance in enumerate(gpu.instances):
        if position not in outcome.option.destroyed:
            name = table.profiles[table.number(instance.profile)].name
            pods = waiting[name][:1] if not instance.hold.pinned else []
            del waiting[name][: len(pods)]
            found.append(
                PlannedInstance(
                    profile=instance.profile,
                    candidates=instance.candidates,
                    standing=instance,
                    pods=tuple(pods),
                )
            )
    for number, start in outcome.option.new:
        profile = table.profiles[number]
        placement = next(p for p in profile.placements if p.start == start)
        pods = waiting[profile.name][:1]
        del waiting[profile.name][: len(pods)]
        found.append(
            PlannedInstance(profile=profile.name, candidates=(placement,), pods=tuple(pods))
        )
    return tuple(sorted(found, key=lambda i: (len(i.candidates) > 1, i.candidates, i.profile)))


def _assignments(gpu_plan: GpuPlan, grants: Sequence[Grant]) -> Iterator[Assignment]:
    resources: dict[str, list[Grant]] = defaultdict(list)
    for grant in grants:
        resources[grant.pod].append(grant)
    for instance in gpu_plan.instances:
        for pod in instance.pods:
            grant = next(
                g for g in resources[pod] if g.profile == _catalogue_name(gpu_plan, instance)
            )
            resources[pod].remove(grant)
            placement = instance.candidates[0] if len(instance.candidates) == 1 else None
            yield Assignment(
                pod=pod,
                resource=grant.resource,
                node=grant.node,
                index=gpu_plan.gpu.index,
                placement=placement,
            )
    for grant in grants:
        if grant.profile is None:
            yield Assignment(
                pod=grant.pod,
                resource=grant.resource,
                node=grant.node,
                index=gpu_plan.gpu.index,
                placement=None,
            )


def _catalogue_name(gpu_plan: GpuPlan, instance: PlannedInstance) -> str:
    table = geometry_of(gpu_plan.gpu)
    return table.profiles[table.number(instance.profile)].name


def _steps(gpu_plan: GpuPlan) -> Iterator[Step]:
    """Yield the steps of one GPU: destroy, change the mode, create the biggest first."""
    gpu = gpu_plan.gpu
    kept = [id(i.standing) for i in gpu_plan.instances if i.standing is not None]
    for instance in gpu.instances:
        if id(instance) not in kept:
            yield Destroy(
                node=gpu.node,
                index=gpu.index,
                profile=instance.profile,
                placement=instance.placement,
                instance_id=instance.instance_id,
            )
    if gpu_plan.mig_mode is not gpu.mig_mode:
        yield SetMigMode(
            node=gpu.node,
            index=gpu.index,
            enable=gpu_plan.mig_mode is MigMode.ON,
            needs_reset=gpu_plan.needs_reset,
        )
    new = [i for i in gpu_plan.instances if i.standing is None]
    for planned in sorted(new, key=lambda i: (-i.candidates[0].size, i.candidates[0].start)):
        table = geometry_of(gpu)
        yield Create(
            node=gpu.node,
            index=gpu.index,
            profile=planned.profile,
            profile_id=table.profiles[table.number(planned.profile)].profile_id,
            placement=planned.candidates[0],
        )
    renamed = gpu_plan.replicas > 1 and gpu_plan.renamed != gpu.renamed
    if (gpu_plan.replicas != gpu.replicas or renamed) and gpu_plan.mig_mode is not MigMode.ON:
        yield SetReplicas(
            node=gpu.node,
            index=gpu.index,
            replicas=gpu_plan.replicas,
            sharing=gpu_plan.sharing,
            renamed=gpu_plan.renamed,
            budget_mib=gpu_plan.budget_mib,
            budget_exact=gpu.reserved_memory_mib is not None,
        )
