"""Whether a pod may run on a node: selector, required affinity, taints, cordon.

The same rules as kube-scheduler's NodeUnschedulable, NodeAffinity and TaintToleration filters, so
that a plan never cuts a GPU for a pod that the scheduler would keep away.
"""

from partita.model.node import Node, Taint
from partita.model.pod import NodeRequirement, Pod, Toleration

__all__ = ["objection"]

_KEEPS_AWAY = ("NoSchedule", "NoExecute")


def objection(pod: Pod, node: Node) -> str | None:
    """Return why the pod may not run on the node, in words, or None when it may."""
    if not node.schedulable:
        return node.reason or "the node is not schedulable"
    for key, value in pod.node_selector.items():
        if node.labels.get(key) != value:
            return f"its nodeSelector wants {key}={value}"
    if pod.node_affinity and not any(_holds(term, node) for term in pod.node_affinity):
        return "its required node affinity does not match"
    for taint in node.taints:
        if taint.effect in _KEEPS_AWAY and not _tolerated(taint, pod.tolerations):
            return f"it does not tolerate the taint {taint.key}"
    return None


def _holds(term: tuple[NodeRequirement, ...], node: Node) -> bool:
    """All expressions of a term must hold; an empty term matches nothing."""
    return bool(term) and all(_matches(requirement, node) for requirement in term)


def _matches(requirement: NodeRequirement, node: Node) -> bool:
    value = node.name if requirement.key == "metadata.name" else node.labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compare(requirement, value)
        case _:
            return False


def _compare(requirement: NodeRequirement, value: str | None) -> bool:
    try:
        have, bound = int(value or ""), int(requirement.values[0])
    except (ValueError, IndexError):
        return False
    return have > bound if requirement.operator == "Gt" else have < bound


def _tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    return any(
        (not t.effect or t.effect == taint.effect)
        and (not t.key or t.key == taint.key)
        and (t.operator == "Exists" or (t.key != "" and t.value == taint.value))
        for t in tolerations
    )
