"""What differs from kind to kind when an object is created or changed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from partita.simulator.api_server import pod_rules, structural
from partita.simulator.api_server.failures import Cause
from partita.simulator.api_server.resource_types import ResourceType
from partita.simulator.api_server.shapes import Object

__all__ = ["KindRules", "rules_of"]


def _same(found: Object) -> Object:
    return found


def _nothing(_: Object) -> Iterator[Cause]:
    return iter(())


def _no_change(_new: Object, _old: Object) -> Iterator[Cause]:
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRules:
    """The rules of a kind.

    Attributes:
        defaulted: Completes an object with what whoever wrote it could have said.
        created: Adds to a new object what the server decides, such as its first status.
        objections: What is wrong with an object.
        change_objections: What is wrong with a new object in place of an old one.
        counts_generations: Whether the wanted state has a generation.
        returns_deleted: Whether deletion answers with the object.
        keeps_status_when_created: Whether a new object may bring its status.
    """

    created: Callable[[Object], Object] = _same
    defaulted: Callable[[Object], Object] = _same
    objections: Callable[[Object], Iterator[Cause]] = _nothing
    change_objections: Callable[[Object, Object], Iterator[Cause]] = _no_change
    counts_generations: bool = False
    returns_deleted: bool = False
    keeps_status_when_created: bool = False


def _namespace(found: Object) -> Object:
    metadata = found["metadata"]
    labels = {**metadata.get("labels", {}), "kubernetes.io/metadata.name": metadata["name"]}
    spec = {"finalizers": ["kubernetes"]}
    return found | {
        "metadata": metadata | {"labels": labels},
        "spec": spec,
        "status": {"phase": "Active"},
    }


def _node(found: Object) -> Object:
    status = found.get("status", {})
    if "capacity" in status and "allocatable" not in status:
        found = found | {"status": status | {"allocatable": status["capacity"]}}
    return found


def _taint_objections(found: Object) -> Iterator[Cause]:
    effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
    for index, taint in enumerate(found["spec"].get("taints", ())):
        path = f"metadata.taints[{index}]"
        if not taint.get("key"):
            yield Cause.required(f"{path}.key")
        if taint.get("effect") not in effects:
            yield Cause.unsupported(f"{path}.effect", taint.get("effect", ""), effects)


def _definition(found: Object) -> Object:
    spec = found["spec"]
    names_ = dict(spec["names"])
    names_.setdefault("singular", names_["kind"].lower())
    names_.setdefault("listKind", f"{names_['kind']}List")
    return found | {"spec": {"conversion": {"strategy": "None"}, **spec, "names": names_}}


def _new_definition(found: Object) -> Object:
    full = found
    at = full["metadata"]["creationTimestamp"]
    conditions = [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", at),
        _condition(
            "Established", "InitialNamesAccepted", "the initial names have been accepted", at
        ),
    ]
    versions = full["spec"]["versions"]
    status = {
        "conditions": conditions,
        "acceptedNames": full["spec"]["names"],
        "storedVersions": [one["name"] for one in versions if one.get("storage")],
    }
    return full | {"status": status}


def _condition(kind: str, reason: str, message: str, at: str) -> Object:
    return {
        "type": kind,
        "status": "True",
        "lastTransitionTime": at,
        "reason": reason,
        "message": message,
    }


def _definition_objections(found: Object) -> Iterator[Cause]:
    spec = found["spec"]
    expected = f"{spec['names']['plural']}.{spec['group']}"
    name = found["metadata"]["name"]
    if name != expected:
        detail = 'must be spec.names.plural+"."+spec.group'
        yield Cause.invalid("metadata.name", name, detail)
    if sum(bool(one.get("storage")) for one in spec.get("versions", ())) != 1:
        detail = "must have exactly one version marked as storage version"
        yield Cause.invalid("spec.versions", "[]", detail)


def _data_objections(found: Object) -> Iterator[Cause]:
    both = found.get("data", {}).keys() & found.get("binaryData", {}).keys()
    for key in sorted(both):
        yield Cause.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")


def _immutable_data(new: Object, old: Object) -> Iterator[Cause]:
    if old.get("immutable"):
        for key in ("immutable", "data", "binaryData"):
            if new.get(key) != old.get(key):
                yield Cause.forbidden(key, "field is immutable when `immutable` is set")


def _lease_objections(found: Object) -> Iterator[Cause]:
    seconds = found.get("spec", {}).get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield Cause.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")


_RULES: Mapping[str, KindRules] = {
    "configmaps": KindRules(objections=_data_objections, change_objections=_immutable_data),
    "namespaces": KindRules(created=_namespace, returns_deleted=True),
    "nodes": KindRules(created=_node, objections=_taint_objections, keeps_status_when_created=True),
    "pods": KindRules(
        created=pod_rules.created,
        defaulted=pod_rules.defaulted,
        objections=pod_rules.objections,
        change_objections=pod_rules.update_objections,
        counts_generations=True,
        returns_deleted=True,
    ),
    "serviceaccounts": KindRules(returns_deleted=True),
    "resourcequotas": KindRules(returns_deleted=True),
    "leases.coordination.k8s.io": KindRules(objections=_lease_objections),
    "daemonsets.apps": KindRules(counts_generations=True),
    "deployments.apps": KindRules(counts_generations=True),
    "customresourcedefinitions.apiextensions.k8s.io": KindRules(
        created=_new_definition,
        defaulted=_definition,
        objections=_definition_objections,
        counts_generations=True,
    ),
}
_PLAIN = KindRules()


def rules_of(resource: ResourceType) -> KindRules:
    """Return the rules of a resource."""
    if not resource.is_custom:
        return _RULES.get(resource.collection, _PLAIN)
    shape = resource.shape

    def completed(found: Object) -> Object:
        filled: Any = structural.with_defaults(shape, found)
        return dict(filled)

    return KindRules(
        defaulted=completed,
        objections=lambda found: structural.objections(shape, found),
        counts_generations=True,
    )
