"""The benchmark's fleets are repeatable and worth planning, and their plans are legal."""

from collections import Counter

import pytest
from bench.planner import fleets

from partita.catalog import library
from partita.catalog.gpu_model import MigCapability
from partita.catalog.legality import Slot, is_legal
from partita.model.gpu import Gpu, MigMode
from partita.model.resource import mig_profile
from partita.planner.plan import Create, Destroy, Plan, SetMigMode
from partita.planner.planning import plan

GPUS = 40
SEEDS = range(3)


@pytest.mark.parametrize("seed", SEEDS)
def test_equal_seeds_make_equal_fleets(seed: int) -> None:
    """A figure can be reproduced from the size and the seed."""
    assert fleets.make(GPUS, seed) == fleets.make(GPUS, seed)


def test_other_seeds_make_other_fleets() -> None:
    """Several seeds are several fleets."""
    assert fleets.make(GPUS, 0) != fleets.make(GPUS, 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_fleets_are_lived_in(seed: int) -> None:
    """Some GPUs have MIG off, some instances are held and some free, and all stand legally."""
    fleet = fleets.make(GPUS, seed)
    instances = [instance for gpu in fleet.gpus for instance in gpu.instances]
    assert {gpu.mig_mode for gpu in fleet.gpus} == {MigMode.ON, MigMode.OFF}
    assert {instance.hold.pinned for instance in instances} == {True, False}
    assert [gpu.key for gpu in fleet.gpus if not is_legal(_mig(gpu), _slots(gpu))] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_plans_are_legal(seed: int) -> None:
    """Every step starts from and ends in a layout that can stand, and no held slice is touched."""
    result = plan(fleets.make(GPUS, seed))
    assert _replayed(result) == {g.gpu.key: _planned(result, g.gpu.key) for g in result.gpus}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_pod_gets_one_slice_or_a_reason(seed: int) -> None:
    """Pending pods are either assigned a slice of their own that nobody holds, or unfit."""
    result = plan(fleets.make(GPUS, seed))
    waiting = Counter(pod.full_name for pod in result.fleet.pods if pod.node is None)
    answered = [a.pod for a in result.assignments] + [u.pod.full_name for u in result.unfit]
    assert Counter(answered) == waiting
    assert _assigned_places(result) == _open_places(result)


def _mig(gpu: Gpu) -> MigCapability:
    mig = library.get(gpu.model or gpu.product).mig
    assert mig is not None
    return mig


def _slots(gpu: Gpu) -> list[Slot]:
    return [Slot(placement=i.candidates[0], profile=i.profile) for i in gpu.instances]


def _planned(result: Plan, key: tuple[str, int]) -> tuple[MigMode, Counter[Slot]]:
    gpu_plan = next(g for g in result.gpus if g.gpu.key == key)
    slots = [Slot(placement=i.candidates[0], profile=i.profile) for i in gpu_plan.instances]
    return gpu_plan.mig_mode, Counter(slots)


def _held(gpu: Gpu) -> set[Slot]:
    slots = zip(gpu.instances, _slots(gpu), strict=True)
    return {slot for instance, slot in slots if instance.hold.pinned}


def _replayed(result: Plan) -> dict[tuple[str, int], tuple[MigMode, Counter[Slot]]]:
    """Carry the steps out on paper; every state on the way must be one that can be."""
    states = {gpu.key: (gpu.mig_mode, Counter(_slots(gpu))) for gpu in result.fleet.gpus}
    gpus = {gpu.key: gpu for gpu in result.fleet.gpus}
    for step in result.steps:
        key = (step.node, step.index)
        mode, slots = states[key]
        match step:
            case SetMigMode(enable=enable):
                assert not slots
                mode = MigMode.ON if enable else MigMode.OFF
            case Destroy(profile=profile, placement=placement):
                assert placement is not None
                slot = Slot(placement=placement, profile=profile)
                assert slots[slot] == 1
                assert slot not in _held(gpus[key])
                slots = slots - Counter([slot])
            case Create(profile=profile, placement=placement):
                assert mode is MigMode.ON
                slots = slots + Counter([Slot(placement=placement, profile=profile)])
                assert is_legal(_mig(gpus[key]), list(slots.elements()))
        states[key] = (mode, slots)
    return states


def _assigned_places(result: Plan) -> Counter[tuple[str, int, Slot]]:
    """The places that assignments name, which must be among the open ones."""
    return Counter(
        (a.node, a.index, Slot(placement=a.placement, profile=mig_profile(a.resource) or ""))
        for a in result.assignments
        if a.index is not None and a.placement is not None
    )


def _open_places(result: Plan) -> Counter[tuple[str, int, Slot]]:
    """The planned instances that the plan says a pending pod gets, none of them held."""
    return Counter(
        (g.gpu.node, g.gpu.index, Slot(placement=i.candidates[0], profile=i.profile))
        for g in result.gpus
        for i in g.instances
        for _ in i.pods
        if i.standing is None or not i.standing.hold.pinned
    )
