"""A plan as plain data, for JSON and YAML: everything it says, unshortened.

Unknown is null. ``schema`` names the form; keys may be added to it, never renamed.
"""

from collections.abc import Sequence

from partita.model.gpu import Gpu, GpuInstance
from partita.model.node import Node
from partita.model.placement import Placement
from partita.model.pod import Pod
from partita.planner.plan import (
    Assignment,
    Blocker,
    Change,
    Create,
    Destroy,
    GpuPlan,
    Plan,
    PlannedInstance,
    SetMigMode,
    SetReplicas,
    Step,
    Unfit,
    Unusable,
)
from partita.views import plan_summary, plan_unfit, step_words

__all__ = ["SCHEMA", "document"]

SCHEMA = "partita.plan/v1"

Data = dict[str, object]


def document(plan: Plan) -> Data:
    """Return the whole plan."""
    return {
        "schema": SCHEMA,
        "summary": _summary(plan),
        "proven": plan.proven,
        "cost": {
            "destroyed": plan.cost.destroyed,
            "created": plan.cost.created,
            "mode_changes": plan.cost.mode_changes,
            "future_lost": plan.cost.future_lost,
            "gpus_touched": plan.cost.gpus_touched,
        },
        "unfit": [_unfit(one) for one in plan.unfit],
        "steps": [_step(step) for step in plan.steps],
        "assignments": [_assignment(one) for one in plan.assignments],
        "gpus": [_gpu(gpu) for gpu in plan.gpus],
        "nodes": [_node(node) for node in plan.fleet.nodes],
        "pods": [_pod(pod) for pod in plan.fleet.pods],
        "warnings": list(plan.warnings),
        "notes": list(plan.fleet.notes),
    }


def _summary(plan: Plan) -> Data:
    return {
        "pods_fitting": len(plan_summary.fitting_pods(plan)),
        "pods_unfit": len(plan.unfit),
        "steps": len(plan.steps),
        "resets": sum(isinstance(s, SetMigMode) and s.needs_reset for s in plan.steps),
        "gpus": len(plan.gpus),
        "unusable": _total([gpu.unusable for gpu in plan.gpus if gpu.unusable is not None]),
    }


def _total(found: Sequence[Unusable]) -> Data:
    known = [one.memory_mib for one in found if one.memory_mib is not None]
    return {
        "memory_slices": sum(one.memory_slices for one in found),
        "memory_slices_total": sum(one.memory_slices_total for one in found),
        "compute_slices": sum(one.compute_slices for one in found),
        "compute_slices_total": sum(one.compute_slices_total for one in found),
        "memory_mib": sum(known) if len(known) == len(found) else None,
    }


# ---- GPUs ---------------------------------------------------------------------------------------


def _gpu(plan: GpuPlan) -> Data:
    return {
        **_standing(plan.gpu),
        "touched": plan.touched,
        "frozen": plan.frozen,
        "planned": {
            "mig_mode": plan.mig_mode.value,
            "needs_reset": plan.needs_reset,
            "replicas": plan.replicas,
            "renamed": plan.renamed,
            "sharing": plan.sharing.value if plan.sharing is not None else None,
            "budget_mib": plan.budget_mib,
            "pods": list(plan.pods),
            "instances": [_planned(instance) for instance in plan.instances],
            "unusable": None if plan.unusable is None else _total([plan.unusable]),
        },
    }


def _standing(gpu: Gpu) -> Data:
    return {
        "node": gpu.node,
        "index": gpu.index,
        "uuid": gpu.uuid,
        "product": gpu.product,
        "model": gpu.model,
        "memory_mib": gpu.memory_mib,
        "reserved_memory_mib": gpu.reserved_memory_mib,
        "problem": gpu.problem,
        "notes": list(gpu.notes),
        "standing": {
            "mig_mode": gpu.mig_mode.value,
            "pending_mig_mode": gpu.pending_mig_mode.value if gpu.pending_mig_mode else None,
            "replicas": gpu.replicas,
            "sharing": gpu.sharing.value if gpu.sharing is not None else None,
            "renamed": gpu.renamed,
            "slots_held": gpu.slots_held,
            "single_strategy": gpu.single_strategy,
            "hold": gpu.hold.value,
            "holders": list(gpu.holders),
            "instances": [_instance(instance) for instance in gpu.instances],
        },
    }


def _instance(instance: GpuInstance) -> Data:
    return {
        "profile": instance.profile,
        "placement": _placement(instance.placement),
        "candidates": [_placement(placement) for placement in instance.candidates],
        "instance_id": instance.instance_id,
        "hold": instance.hold.value,
        "holders": list(instance.holders),
        "compute_instances": [
            {"id": one.instance_id, "uuid": one.uuid, "sm_count": one.sm_count}
            for one in instance.compute_instances
        ],
    }


def _planned(instance: PlannedInstance) -> Data:
    known = instance.candidates[0] if len(instance.candidates) == 1 else None
    return {
        "profile": instance.profile,
        "placement": _placement(known),
        "candidates": [_placement(placement) for placement in instance.candidates],
        "created": instance.standing is None,
        "standing": None if instance.standing is None else _instance(instance.standing),
        "pods": list(instance.pods),
    }


def _placement(placement: Placement | None) -> Data | None:
    return None if placement is None else {"start": placement.start, "size": placement.size}


# ---- Steps, assignments, pods -------------------------------------------------------------------


def _step(step: Step) -> Data:
    found: Data = {"kind": step_words.kind(step), "node": step.node, "index": step.index}
    match step:
        case SetMigMode():
            return found | {"enable": step.enable, "needs_reset": step.needs_reset}
        case Destroy():
            return found | {
                "profile": step.profile,
                "placement": _placement(step.placement),
                "instance_id": step.instance_id,
            }
        case Create():
            return found | {
                "profile": step.profile,
                "profile_id": step.profile_id,
                "placement": _placement(step.placement),
            }
        case SetReplicas():
            return found | {
                "budget_exact": step.budget_exact,
                "replicas": step.replicas,
                "renamed": step.renamed,
                "sharing": step.sharing.value if step.sharing is not None else None,
                "budget_mib": step.budget_mib,
            }


def _assignment(one: Assignment) -> Data:
    return {
        "pod": one.pod,
        "resource": one.resource,
        "node": one.node,
        "index": one.index,
        "placement": _placement(one.placement),
    }


def _unfit(one: Unfit) -> Data:
    return {
        "pod": one.pod.full_name,
        "requests": dict(one.pod.requests),
        "reason": plan_unfit.reason_code(one.reason),
        "meaning": one.reason.value,
        "detail": one.detail,
        "changes": [_change(change) for change in one.changes],
    }


def _change(change: Change) -> Data:
    return {
        "kind": change.kind.value,
        "text": change.text,
        "blocker": None if change.blocker is None else _blocker(change.blocker),
    }


def _blocker(blocker: Blocker) -> Data:
    return {
        "node": blocker.node,
        "index": blocker.index,
        "placement": _placement(blocker.placement),
        "instances": [_instance(instance) for instance in blocker.instances],
        "holders": list(blocker.holders),
    }


def _pod(pod: Pod) -> Data:
    return {
        "pod": pod.full_name,
        "uid": pod.uid,
        "phase": pod.phase.value,
        "requests": dict(pod.requests),
        "memory_mib": pod.memory_mib,
        "node": pod.node,
        "index": pod.gpu_index,
        "placement_start": pod.placement_start,
        "priority": pod.priority,
        "created": pod.created,
    }


def _node(node: Node) -> Data:
    return {
        "name": node.name,
        "schedulable": node.schedulable,
        "reason": node.reason,
        "capacity": dict(node.capacity),
        "allocatable": dict(node.allocatable),
    }
