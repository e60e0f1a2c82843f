"""Deleting objects: at once, when their finalizers are gone, or when the kubelet is done.

There is no garbage collector: dependents stay, and ``propagationPolicy`` changes nothing. A deleted
namespace is emptied here, which in a real cluster a controller does.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from partita.simulator.api_server import bodies, failures, kind_rules, pod_rules
from partita.simulator.api_server.cluster_state import DEFINITIONS, ClusterState, key_of
from partita.simulator.api_server.requests import Request
from partita.simulator.api_server.resource_types import ResourceType
from partita.simulator.api_server.shapes import Object

__all__ = ["Deletions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    grace_seconds: int | None
    uid: str
    version: str


class Deletions:
    """Carries out deletions."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def delete(self, request: Request) -> Object:
        """Delete the object that a request names; return the body of the answer."""
        options = _options(request)
        found = self._state.get(request).object
        _check_preconditions(request, found, options)
        left, is_gone = self._delete(request.resource, found, options, is_dry=request.is_dry_run)
        if not is_gone or kind_rules.rules_of(request.resource).returns_deleted:
            return left
        resource = request.resource
        details: Object = {"name": request.name}
        details |= {"group": resource.group} if resource.group else {}
        details |= {"kind": resource.plural, "uid": found["metadata"]["uid"]}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
        return status | {"status": "Success", "details": details}

    def delete_all(self, request: Request, found: Iterable[Object]) -> list[Object]:
        """Delete these objects of a request's resource; return how they are left."""
        options = _options(request)
        resource, is_dry = request.resource, request.is_dry_run
        return [self._delete(resource, one, options, is_dry=is_dry)[0] for one in found]

    def remove(self, resource: ResourceType, last: Object) -> None:
        """Forget an object, and what goes with it."""
        self._state.store.remove(resource.collection, key_of(last), last)
        if resource.collection == DEFINITIONS:
            self._drop_custom(last)
        self._finish_namespace(last["metadata"].get("namespace", ""))

    def _delete(
        self, resource: ResourceType, found: Object, options: _Options, *, is_dry: bool
    ) -> tuple[Object, bool]:
        """Return the object as it is left, and whether it is gone."""
        if resource.collection == "namespaces":
            return self._delete_namespace(resource, found, is_dry=is_dry), False
        grace = 0
        if resource.collection == "pods":
            grace = pod_rules.grace_seconds(found, options.grace_seconds)
        metadata = found["metadata"]
        if not grace and not metadata.get("finalizers"):
            if resource.collection == "pods":
                found = self._marked(resource, found, 0)
            if not is_dry:
                self.remove(resource, found)
            return found, True
        if metadata.get("deletionGracePeriodSeconds", grace + 1) <= grace:
            return found, False
        marked = self._marked(resource, found, grace)
        if not is_dry:
            marked = self._state.store.put(resource.collection, key_of(found), marked).object
        return marked, False

    def _marked(self, resource: ResourceType, found: Object, grace: int) -> Object:
        metadata = found["metadata"]
        changes: Object = {"deletionTimestamp": self._state.now(later_seconds=grace)}
        changes["deletionGracePeriodSeconds"] = grace
        counts = kind_rules.rules_of(resource).counts_generations
        if counts and "deletionTimestamp" not in metadata:
            changes["generation"] = metadata.get("generation", 0) + 1
        return found | {"metadata": metadata | changes}

    def _delete_namespace(self, resource: ResourceType, found: Object, *, is_dry: bool) -> Object:
        name = found["metadata"]["name"]
        if "deletionTimestamp" in found["metadata"]:
            return found
        metadata = found["metadata"] | {"deletionTimestamp": self._state.now()}
        status = {"phase": "Terminating"}
        marked = found | {"metadata": metadata, "status": status}
        if is_dry:
            return marked
        marked = self._state.store.put(resource.collection, ("", name), marked).object
        nothing = _Options(grace_seconds=None, uid="", version="")
        for inner, one in self._in_namespace(name):
            self._delete(inner, one, nothing, is_dry=False)
        self._finish_namespace(name)
        return marked

    def _in_namespace(self, name: str) -> list[tuple[ResourceType, Object]]:
        kinds = {one.collection: one for one in self._state.resources.served if one.is_namespaced}
        return [
            (self._state.resources.sharing(collection), found.object)
            for collection in kinds
            for key, found in self._state.store.collection(collection).now()
            if key[0] == name
        ]

    def _finish_namespace(self, name: str) -> None:
        namespaces = self._state.resources.sharing("namespaces")
        found = self._state.find(namespaces, ("", name))
        if found is None or "deletionTimestamp" not in found.object["metadata"]:
            return
        if not self._in_namespace(name):
            self._state.store.remove(namespaces.collection, ("", name), found.object)

    def _drop_custom(self, definition: Object) -> None:
        """Forget the objects of a CRD that is gone."""
        collection = definition["metadata"]["name"]
        for key, found in list(self._state.store.collection(collection).now()):
            self._state.store.remove(collection, key, found.object)
        self._state.refresh_resources()


def _options(request: Request) -> _Options:
    body: Any = bodies.parse_yaml(request.body) if request.body else {}
    body = body if isinstance(body, dict) else {}
    preconditions = body.get("preconditions") or {}
    grace = request.number("gracePeriodSeconds")
    return _Options(
        grace_seconds=body.get("gracePeriodSeconds") if grace is None else grace,
        uid=preconditions.get("uid", ""),
        version=preconditions.get("resourceVersion", ""),
    )


def _check_preconditions(request: Request, found: Object, options: _Options) -> None:
    metadata, kind = found["metadata"], request.resource.kind
    pairs = (
        ("UID", options.uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.version, metadata["resourceVersion"], "modified"),
    )
    for what, wanted, actual, happened in pairs:
        if wanted and wanted != actual:
            why = (
                f"the {what} in the precondition ({wanted}) does not match the {what} in record "
                f"({actual}). The object might have been {happened}"
            )
            raise failures.conflict(request.resource, request.name, why, what=kind)
