"""A change that a refusal names makes the pod fit: made to the fleet, and planned again."""

import re
from dataclasses import replace

from hypothesis import given
from tests.planner import worlds

from partita.model.fleet import Fleet
from partita.model.gpu import Gpu, GpuInstance, Hold
from partita.model.pod import Pod
from partita.model.resource import mig_resource
from partita.planner.plan import Change, ChangeKind, Plan, Unfit
from partita.planner.planning import plan


@worlds.examples(150)
@given(fleet=worlds.fleets())
def test_ending_the_named_holders_helps(fleet: Fleet) -> None:
    """Without the holders that a refusal names, less is left out, the most important first."""
    before = plan(fleet)
    for unfit, change in _named(before, ChangeKind.END_HOLDERS):
        if change.blocker is not None and sum(unfit.pod.requests.values()) == 1:
            after = plan(_without(fleet, frozenset(change.blocker.holders)))
            assert _left_out(after) < _left_out(before), change.text


@worlds.examples(150)
@given(fleet=worlds.fleets())
def test_asking_for_what_fits_now_helps(fleet: Fleet) -> None:
    """With the other request that a refusal says fits now, less is left out."""
    before = plan(fleet)
    for unfit, change in _named(before, ChangeKind.ASK_OTHER_PROFILE):
        found = re.match(r"ask for (\S+): fits now", change.text)
        if found is not None and len(unfit.pod.requests) == 1:
            requests = {found[1]: sum(unfit.pod.requests.values())}
            pods = [replace(p, requests=requests) if p == unfit.pod else p for p in fleet.pods]
            after = plan(replace(fleet, pods=tuple(pods)))
            assert _left_out(after) < _left_out(before), change.text


def _left_out(found: Plan) -> list[int]:
    """Return how many pods of each priority are left out, the highest priority first."""
    waiting = [pod for pod in found.fleet.pods if pod.node is None]
    left = [unfit.pod.priority for unfit in found.unfit]
    return [left.count(p) for p in sorted({pod.priority for pod in waiting}, reverse=True)]


def _named(found: Plan, kind: ChangeKind) -> list[tuple[Unfit, Change]]:
    return [(unfit, c) for unfit in found.unfit for c in unfit.changes if c.kind is kind]


def _without(fleet: Fleet, holders: frozenset[str]) -> Fleet:
    """Return the fleet as it is once these holders have ended."""
    gpus = tuple(_freed(gpu, holders) for gpu in fleet.gpus)
    held = dict(fleet.held)
    for old, new in zip(fleet.gpus, gpus, strict=True):
        for before, after in zip(old.instances, new.instances, strict=True):
            if before.hold is not after.hold:
                key = (old.node, mig_resource(before.profile))
                held[key] = max(0, held.get(key, 0) - 1)
        if old.hold is not new.hold:
            key = (old.node, old.resource)
            held[key] = max(0, held.get(key, 0) - old.replicas)
    return replace(fleet, gpus=gpus, held=held, pods=tuple(p for p in fleet.pods if _waits(p)))


def _waits(pod: Pod) -> bool:
    return pod.node is None


def _freed(gpu: Gpu, holders: frozenset[str]) -> Gpu:
    instances = tuple(_free(instance, holders) for instance in gpu.instances)
    if gpu.holders and holders.issuperset(gpu.holders):
        gpu = replace(gpu, hold=Hold.FREE, holders=(), slots_held=0)
    return replace(gpu, instances=instances)


def _free(instance: GpuInstance, holders: frozenset[str]) -> GpuInstance:
    if instance.holders and holders.issuperset(instance.holders):
        return replace(instance, hold=Hold.FREE, holders=())
    return instance
