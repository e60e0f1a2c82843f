"""What every plan keeps to, whatever stands and whatever is asked for.

The steps are replayed on a small model of a GPU that refuses what the driver refuses. Where the
input leaves placements open, they are replayed in every world that the input allows.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st
from tests.planner import oracle, worlds

from partita.catalog import legality
from partita.catalog.legality import Slot
from partita.config.partition_policy import Follow, PartitionPolicy, Strategy
from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, GpuInstance, MigMode
from partita.model.resource import mig_profile, mig_resource
from partita.planner.permission import permissions
from partita.planner.plan import (
    Assignment,
    Create,
    Destroy,
    GpuPlan,
    Plan,
    Reason,
    SetMigMode,
    SetReplicas,
    Step,
)
from partita.planner.planning import plan

FLEETS = worlds.large_fleets()
POLICIES = worlds.policies()


# ---- Safety -------------------------------------------------------------------------------------


@worlds.examples(100)
@given(fleet=FLEETS, policies=POLICIES)
def test_nothing_held_is_touched(fleet: Fleet, policies: tuple[PartitionPolicy, ...]) -> None:
    """What is held, or may be, stays in the layout as it is, and no step names it."""
    found = plan(fleet, policies)
    for gpu_plan in found.gpus:
        gpu = gpu_plan.gpu
        steps = _steps_of(found, gpu)
        pinned = [one for one in gpu.instances if one.hold.pinned]
        kept = [one.standing for one in gpu_plan.instances]
        assert all(any(one is other for other in kept) for one in pinned)
        if gpu.hold.pinned:
            assert steps == []
        if pinned:
            assert not any(isinstance(step, SetMigMode) for step in steps)


@worlds.examples(100)
@given(fleet=FLEETS, policies=POLICIES)
def test_every_step_is_legal_where_it_stands(
    fleet: Fleet, policies: tuple[PartitionPolicy, ...]
) -> None:
    """Each step is one that the GPU accepts after those before it; the last leaves the layout."""
    found = plan(fleet, policies)
    for gpu_plan in found.gpus:
        steps = _steps_of(found, gpu_plan.gpu)
        for places in worlds.consistent(gpu_plan.gpu):
            _replay(gpu_plan, places, steps)


@worlds.examples(100)
@given(fleet=FLEETS, policies=POLICIES)
def test_the_steps_are_the_layouts(fleet: Fleet, policies: tuple[PartitionPolicy, ...]) -> None:
    """GPU by GPU in fleet order, the steps are the difference between before and after."""
    found = plan(fleet, policies)
    assert [gpu_plan.gpu for gpu_plan in found.gpus] == list(fleet.gpus)
    keys = [(step.node, step.index) for step in found.steps]
    assert list(dict.fromkeys(keys)) == [one.gpu.key for one in found.gpus if one.touched]
    assert keys == sorted(keys, key=[gpu.key for gpu in fleet.gpus].index)


@worlds.examples(100)
@given(fleet=FLEETS, policies=POLICIES)
def test_the_cost_counts_the_steps(fleet: Fleet, policies: tuple[PartitionPolicy, ...]) -> None:
    """The cost of a plan says what its steps do."""
    found = plan(fleet, policies)
    kinds = Counter(type(step) for step in found.steps)
    assert found.cost.destroyed == kinds[Destroy]
    assert found.cost.created == kinds[Create]
    assert found.cost.mode_changes == kinds[SetMigMode]
    assert found.cost.gpus_touched == len({(step.node, step.index) for step in found.steps})


# ---- Policies -----------------------------------------------------------------------------------


@worlds.examples(100)
@given(fleet=FLEETS, policies=POLICIES.filter(bool))
def test_unselected_gpus_stay(fleet: Fleet, policies: tuple[PartitionPolicy, ...]) -> None:
    """With policies, a GPU that none of them selects, or two, is left as it is."""
    found = plan(fleet, policies)
    for gpu_plan in found.gpus:
        if len(_selecting(fleet, gpu_plan.gpu, policies)) != 1:
            assert not gpu_plan.touched
            assert gpu_plan.frozen is not None


@worlds.examples(100)
@given(fleet=FLEETS, policies=POLICIES.filter(bool))
def test_a_policy_is_kept_to(fleet: Fleet, policies: tuple[PartitionPolicy, ...]) -> None:
    """Resets, profiles and ways of sharing that a policy does not give are not used."""
    found = plan(fleet, policies)
    gpus = {gpu_plan.gpu.key: gpu_plan.gpu for gpu_plan in found.gpus}
    for step in found.steps:
        (policy,) = _selecting(fleet, gpus[step.node, step.index], policies)
        match step:
            case SetMigMode():
                assert policy.mig.allow_reset or not step.needs_reset
            case Create():
                assert policy.strategy in (Strategy.MIG, Strategy.AUTO)
                follows = policy.follow is Follow.DEMAND
                allowed = policy.mig.profiles if follows else policy.mig.layout
                assert not (allowed or not follows) or step.profile in (allowed or ())
            case Destroy():
                assert policy.strategy is not Strategy.WHOLE or _goes_whole(found, step)
            case SetReplicas():
                assert policy.strategy in (Strategy.TIME_SLICING, Strategy.MPS) or (
                    step.replicas == 1
                )


# ---- What pods get ------------------------------------------------------------------------------


@worlds.examples(100)
@given(fleet=FLEETS, policies=POLICIES)
def test_a_pod_gets_all_or_nothing(fleet: Fleet, policies: tuple[PartitionPolicy, ...]) -> None:
    """A pending pod gets all it asks for, on one node where it may run, or is named as unfit."""
    found = plan(fleet, policies)
    nodes = {node.name: node for node in fleet.nodes}
    unfit = [one.pod.full_name for one in found.unfit]
    pending = {pod.full_name: pod for pod in oracle.pending(fleet)}
    served = _served(found)
    assert sorted([*unfit, *served]) == sorted(pending)
    for name in served:
        given_to = [one for one in found.assignments if one.pod == name]
        (node,) = {one.node for one in given_to}
        assert Counter(one.resource for one in given_to) == Counter(pending[name].requests)
        assert oracle.may_run(pending[name], nodes[node])


@worlds.examples(100)
@given(fleet=FLEETS, policies=POLICIES)
def test_no_slice_is_given_twice(fleet: Fleet, policies: tuple[PartitionPolicy, ...]) -> None:
    """Every assignment is of a slice that the plan has, that nobody holds, to one pod."""
    found = plan(fleet, policies)
    allowed = permissions(fleet, policies)
    for gpu_plan in found.gpus:
        here = [a for a in found.assignments if (a.node, a.index) == gpu_plan.gpu.key]
        _check_slices(gpu_plan, here, allowed[gpu_plan.gpu.key].resource)
    anywhere = Counter((a.node, a.resource) for a in found.assignments if a.index is None)
    for (node, resource), count in anywhere.items():
        assert count <= _spare(fleet, node, resource)


@worlds.examples(100)
@given(fleet=FLEETS, policies=POLICIES)
def test_a_slice_has_the_memory_that_its_pod_needs(
    fleet: Fleet, policies: tuple[PartitionPolicy, ...]
) -> None:
    """A pod that says how much memory it needs gets no slice that has less."""
    found = plan(fleet, policies)
    plans = {gpu_plan.gpu.key: gpu_plan for gpu_plan in found.gpus}
    needs = {pod.full_name: pod.memory_mib or 0 for pod in fleet.pods}
    for one in found.assignments:
        if one.index is not None:
            gpu_plan = plans[one.node, one.index]
            profile = mig_profile(one.resource)
            has = (gpu_plan.gpu.memory_mib or 0) // gpu_plan.replicas
            if profile is not None:
                has = worlds.mig_of(gpu_plan.gpu).by_name[profile].memory_mib or 0
            assert has >= needs[one.pod]


@worlds.examples(100)
@given(fleet=FLEETS, policies=POLICIES)
def test_the_layout_names_the_same_pods(
    fleet: Fleet, policies: tuple[PartitionPolicy, ...]
) -> None:
    """The pods of the planned layouts are those of the assignments."""
    found = plan(fleet, policies)
    for gpu_plan in found.gpus:
        here = [a.pod for a in found.assignments if (a.node, a.index) == gpu_plan.gpu.key]
        cut = [pod for one in gpu_plan.instances for pod in one.pods]
        assert sorted([*gpu_plan.pods, *cut]) == sorted(here)


@worlds.examples(100)
@given(fleet=FLEETS, policies=POLICIES)
def test_every_refusal_is_explained(fleet: Fleet, policies: tuple[PartitionPolicy, ...]) -> None:
    """A refusal has a reason in one line, and a change that helps unless the request is odd."""
    for unfit in plan(fleet, policies).unfit:
        assert unfit.detail
        assert "\n" not in unfit.detail
        assert unfit.changes or unfit.reason is Reason.NO_SUCH_RESOURCE
        assert all(change.text and "\n" not in change.text for change in unfit.changes)


# ---- Steadiness ---------------------------------------------------------------------------------


@worlds.examples(100)
@given(fleet=FLEETS, policies=POLICIES)
def test_a_plan_is_carried_out_once(fleet: Fleet, policies: tuple[PartitionPolicy, ...]) -> None:
    """Planning again on what a plan leaves behind changes nothing and serves the same pods."""
    first = plan(fleet, policies)
    second = plan(_carried_out(first), policies)
    assert second.steps == ()
    assert _served(second) == _served(first)


@worlds.examples(60)
@given(data=st.data(), fleet=FLEETS, policies=POLICIES)
def test_the_order_of_pods_is_irrelevant(
    data: st.DataObject, fleet: Fleet, policies: tuple[PartitionPolicy, ...]
) -> None:
    """The same fleet gives the same plan, in whatever order its pods are listed."""
    first = plan(fleet, policies)
    pods = data.draw(worlds.orders(fleet.pods))
    second = plan(dataclasses.replace(fleet, pods=pods), policies)
    assert dataclasses.replace(second, fleet=fleet) == first


# ---- A GPU that says no -------------------------------------------------------------------------


@dataclasses.dataclass(kw_only=True)
class _Device:
    """One GPU in one world that the input allows: every instance has its placement.

    Attributes:
        gpu: What the input says of it.
        mig_mode: Its mode now.
        standing: Its instances now, with what the input says of them; None = created since.
    """

    gpu: Gpu
    mig_mode: MigMode
    standing: list[tuple[Slot, GpuInstance | None]]

    def accept(self, step: Step) -> None:
        """Do a step, or fail as the driver would."""
        assert not self.gpu.hold.pinned, "somebody uses the whole GPU"
        match step:
            case SetMigMode():
                self._switch(step)
            case Create():
                self._create(step)
            case Destroy():
                self._destroy(step)
            case SetReplicas():
                assert self.mig_mode is not MigMode.ON, "instances are not shared this way"

    def _switch(self, step: SetMigMode) -> None:
        assert self.standing == [], "instances stand"
        assert step.enable is not (self.mig_mode is MigMode.ON), "it is in that mode"
        assert step.needs_reset is worlds.mig_of(self.gpu).mode_change_needs_reset
        self.mig_mode = MigMode.ON if step.enable else MigMode.OFF

    def _create(self, step: Create) -> None:
        assert self.mig_mode is MigMode.ON, "MIG is off"
        mig = worlds.mig_of(self.gpu)
        new = Slot(placement=step.placement, profile=step.profile)
        assert legality.objection(mig, [*(slot for slot, _ in self.standing), new]) is None
        assert step.profile_id == mig.by_name[step.profile].profile_id
        self.standing.append((new, None))

    def _destroy(self, step: Destroy) -> None:
        assert self.mig_mode is MigMode.ON, "MIG is off"
        meant = [
            (slot, one)
            for slot, one in self.standing
            if one is not None
            and (one.profile, one.placement, one.instance_id)
            == (step.profile, step.placement, step.instance_id)
        ]
        assert meant, "there is no such instance"
        assert not any(one.hold.pinned for _, one in meant), "it may be a held one"
        self.standing.remove(meant[0])


def _replay(gpu_plan: GpuPlan, places: Sequence[Slot], steps: Sequence[Step]) -> None:
    gpu = gpu_plan.gpu
    standing = list(zip(places, gpu.instances, strict=True))
    device = _Device(gpu=gpu, mig_mode=gpu.mig_mode, standing=list(standing))
    for step in steps:
        device.accept(step)
    assert device.mig_mode is gpu_plan.mig_mode
    planned = [(one.profile, one.candidates) for one in gpu_plan.instances]
    left = [
        (slot.profile, one.candidates if one is not None else (slot.placement,))
        for slot, one in device.standing
    ]
    assert Counter(left) == Counter(planned)
    if device.mig_mode is not MigMode.ON:
        served = [(s.replicas, s.sharing, s.renamed) for s in steps if isinstance(s, SetReplicas)]
        before = (gpu.replicas, gpu.sharing, gpu.renamed)
        planned_shares = (gpu_plan.replicas, gpu_plan.sharing, gpu_plan.renamed)
        assert (served or [before])[-1] == planned_shares


# ---- Facts about a plan -------------------------------------------------------------------------


def _steps_of(found: Plan, gpu: Gpu) -> list[Step]:
    return [step for step in found.steps if (step.node, step.index) == gpu.key]


def _goes_whole(found: Plan, step: Destroy) -> bool:
    return SetMigMode in {
        type(other) for other in found.steps if (other.node, other.index) == (step.node, step.index)
    }


def _served(found: Plan) -> frozenset[str]:
    return frozenset(one.pod for one in found.assignments)


def _selecting(
    fleet: Fleet, gpu: Gpu, policies: Sequence[PartitionPolicy]
) -> tuple[PartitionPolicy, ...]:
    labels = next(node.labels for node in fleet.nodes if node.name == gpu.node)
    return tuple(
        policy
        for policy in policies
        if policy.node_selector.items() <= labels.items()
        and gpu.index in (policy.gpu_selector.indices or (gpu.index,))
        and gpu.model in (policy.gpu_selector.models or (gpu.model,))
    )


def _check_slices(gpu_plan: GpuPlan, here: Sequence[Assignment], whole: str) -> None:
    """Check that the slices of one GPU suffice for what is assigned of them."""
    gpu = gpu_plan.gpu
    slots = [a for a in here if mig_profile(a.resource) is None]
    if slots:
        assert gpu_plan.mig_mode is not MigMode.ON
        assert gpu.problem is None
        assert {a.resource for a in slots} == {whole}
        held = gpu.slots_held if gpu.replicas > 1 else gpu_plan.replicas * gpu.hold.pinned
        assert len(slots) <= gpu_plan.replicas - held
    free = Counter(
        (mig_resource(one.profile), one.candidates[0] if len(one.candidates) == 1 else None)
        for one in gpu_plan.instances
        if one.standing is None or not one.standing.hold.pinned
    )
    cut = Counter((a.resource, a.placement) for a in here if mig_profile(a.resource) is not None)
    assert cut <= free
    assert not cut or gpu.problem is None


def _spare(fleet: Fleet, node: str, resource: str) -> int:
    """Return how many slots of a node may be held and are not, shared ones included."""
    slots = [
        gpu.replicas
        for gpu in fleet.gpus
        if gpu.node == node and gpu.hold.pinned and gpu.resource == resource
    ]
    if mig_profile(resource) is not None:
        return oracle.spare(fleet, node, resource)
    return sum(slots) - fleet.held[node, resource]


def _carried_out(found: Plan) -> Fleet:
    """Return the fleet that stands once the steps of a plan are done; its pods still wait."""
    gpus = tuple(_after(one) if one.touched else one.gpu for one in found.gpus)
    held = dict(found.fleet.held)
    for gpu in gpus:
        for resource in _resources(gpu):
            held.setdefault((gpu.node, resource), 0)
    return dataclasses.replace(found.fleet, gpus=gpus, held=held)


def _resources(gpu: Gpu) -> Iterator[str]:
    if gpu.mig_mode is not MigMode.ON:
        yield gpu.resource
    for one in gpu.instances:
        yield mig_resource(one.profile)


def _after(gpu_plan: GpuPlan) -> Gpu:
    instances = tuple(
        one.standing or GpuInstance(profile=one.profile, candidates=one.candidates)
        for one in gpu_plan.instances
    )
    return dataclasses.replace(
        gpu_plan.gpu,
        mig_mode=gpu_plan.mig_mode,
        instances=instances,
        replicas=gpu_plan.replicas,
        sharing=gpu_plan.sharing,
        renamed=gpu_plan.renamed,
    )
