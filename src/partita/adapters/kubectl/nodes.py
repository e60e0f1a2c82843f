"""A Kubernetes node object to the node noun."""

from collections.abc import Mapping

from partita.config.untyped import Untyped
from partita.model import resource
from partita.model.node import Node, Taint

__all__ = ["read", "resources", "texts"]


def read(item: Untyped) -> Node:
    """Return the node of a node object.

    Raises:
        InputError: When the object has no name or a value has the wrong type.
    """
    metadata = item.need("metadata")
    spec, status = item.get("spec"), item.get("status")
    reasons = [*_cordon(spec), *_unready(status)]
    return Node(
        name=metadata.need("name").name(),
        labels=texts(metadata.get("labels")),
        annotations=texts(metadata.get("annotations")),
        capacity=resources(status.get("capacity") if status else None),
        allocatable=resources(status.get("allocatable") if status else None),
        taints=_taints(spec),
        schedulable=not reasons,
        reason="; ".join(reasons) or None,
    )


def texts(item: Untyped | None) -> Mapping[str, str]:
    """Return a mapping of texts, such as labels; empty when absent."""
    return {} if item is None else {key: value.scalar() for key, value in item.items()}


def resources(item: Untyped | None) -> Mapping[str, int]:
    """Return the counts of NVIDIA's extended resources; empty when absent."""
    if item is None:
        return {}
    return {key: value.count() for key, value in item.items() if key.startswith(resource.DOMAIN)}


def _cordon(spec: Untyped | None) -> list[str]:
    flag = spec.get("unschedulable") if spec else None
    return ["cordoned"] if flag is not None and flag.flag() else []


def _unready(status: Untyped | None) -> list[str]:
    """Return why the kubelet is not ready; no condition at all is no reason."""
    conditions = status.get("conditions") if status else None
    for condition in conditions.elements() if conditions else ():
        if condition.need("type").text() == "Ready" and condition.need("status").text() != "True":
            reason = condition.get("reason")
            return [f"not ready: {reason.name()}" if reason is not None else "not ready"]
    return []


def _taints(spec: Untyped | None) -> tuple[Taint, ...]:
    listed = spec.get("taints") if spec else None
    return tuple(
        Taint(
            key=taint.need("key").text(),
            value=value.text() if (value := taint.get("value")) is not None else "",
            effect=taint.need("effect").text(),
        )
        for taint in (listed.elements() if listed else ())
    )
