"""Creating and changing objects."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from partita.simulator.api_server import (
    bodies,
    change_rules,
    failures,
    kind_rules,
    managed_fields,
    names,
    patching,
)
from partita.simulator.api_server.cluster_state import DEFINITIONS, ClusterState, key_of
from partita.simulator.api_server.deleting import Deletions
from partita.simulator.api_server.failures import Cause
from partita.simulator.api_server.managed_fields import Manager
from partita.simulator.api_server.requests import Request
from partita.simulator.api_server.server_side_apply import TypeMismatchError
from partita.simulator.api_server.shapes import Object, Shape
from partita.simulator.api_server.store import Stored, encode

__all__ = ["Reply", "Writer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a change is answered with.

    Attributes:
        code: HTTP status.
        body: The object, or a status object.
        warnings: What the request should not have said.
    """

    body: Object
    code: int = HTTPStatus.OK
    warnings: tuple[str, ...] = ()


class Writer:
    """Carries out requests that create or change."""

    def __init__(self, state: ClusterState, deletions: Deletions) -> None:
        self._state = state
        self._deletions = deletions

    def create(self, request: Request) -> Reply:
        """Create an object."""
        if request.subresource == "binding":
            return self._bind(request)
        found, warnings = bodies.decode(request, bodies.parse_object(request))
        stored = self._create(request, found)
        return Reply(body=stored, code=HTTPStatus.CREATED, warnings=tuple(warnings))

    def update(self, request: Request) -> Reply:
        """Replace an object."""
        found, warnings = bodies.decode(request, bodies.parse_object(request))
        old = self._state.get(request)
        return Reply(body=self._change(request, old, found), warnings=tuple(warnings))

    def patch(self, request: Request) -> Reply:
        """Patch an object, or apply a configuration; this may create it."""
        patch = patching.read(request)
        if patch.applies:
            return self._apply(request, patch)
        old = self._state.get(request)
        found, warnings = patching.patched(request, old.object, patch)
        return Reply(body=self._change(request, old, found), warnings=tuple(warnings))

    def _apply(self, request: Request, patch: patching.Patch) -> Reply:
        resource = request.resource
        live = self._state.find(resource, (request.namespace, request.name))
        applied = patching.configuration(request, patch, is_new=live is None)
        start: Object = {"metadata": {}} if live is None else live.object
        try:
            merged = managed_fields.after_apply(
                self._shape(request),
                start,
                applied,
                self._manager(request, applies=True),
                force=patch.force,
                now=self._state.now(),
                ignored=_unreachable(request),
            )
        except TypeMismatchError as error:
            raise _untyped(request, applied, str(error)) from error
        found, warnings = bodies.decode(request, merged)
        if live is not None:
            changed = self._change(request, live, found, by_apply=True)
            return Reply(body=changed, warnings=tuple(warnings))
        if request.subresource:
            raise failures.not_found(resource, request.name)
        created = self._create(request, found, by_apply=True)
        return Reply(body=created, code=HTTPStatus.CREATED, warnings=tuple(warnings))

    def _shape(self, request: Request) -> Shape:
        return self._state.resources.sharing(request.resource.collection).shape

    def _manager(self, request: Request, *, applies: bool = False) -> Manager:
        return Manager(
            name=request.manager,
            applies=applies,
            api_version=request.resource.api_version,
            subresource=request.subresource,
        )

    def _create(self, request: Request, found: Object, *, by_apply: bool = False) -> Object:
        resource, rules = request.resource, kind_rules.rules_of(request.resource)
        metadata = self._new_metadata(request, found["metadata"])
        self._check_namespace(request, metadata.get("name", ""))
        causes = list(names.metadata_objections(metadata))
        if resource.has_status and not rules.keeps_status_when_created:
            found = {key: one for key, one in found.items() if key != "status"}
        found = found | {"metadata": metadata}
        if rules.counts_generations:
            metadata["generation"] = 1
        found = rules.defaulted(found)
        causes += rules.objections(found)
        if causes:
            raise failures.invalid(resource, metadata.get("name", ""), causes)
        if self._state.find(resource, key_of(found)) is not None:
            raise failures.already_exists(resource, metadata["name"])
        if not by_apply:
            found = self._with_managers(request, None, found)
        return self._keep(request, rules.created(found))

    def _new_metadata(self, request: Request, given: Object) -> Object:
        if given.get("resourceVersion"):
            message = "resourceVersion should not be set on objects to be created"
            raise failures.ApiFailure(500, failures.status(500, message))
        metadata = {key: one for key, one in given.items() if key not in change_rules.KEPT}
        if not metadata.get("name") and "generateName" in metadata:
            metadata["name"] = names.generated(metadata["generateName"], self._state.random)
        if request.name:
            metadata.setdefault("name", request.name)
        change_rules.check_place(request, metadata)
        if request.namespace:
            metadata["namespace"] = request.namespace
        metadata |= {"uid": self._state.new_uid(), "creationTimestamp": self._state.now()}
        return change_rules.ordered(metadata)

    def _check_namespace(self, request: Request, name: str) -> None:
        if not request.namespace:
            return
        namespaces = self._state.resources.sharing("namespaces")
        found = self._state.find(namespaces, ("", request.namespace))
        if found is None:
            raise failures.not_found(namespaces, request.namespace)
        if "deletionTimestamp" in found.object["metadata"]:
            where = request.namespace
            cause = Cause(
                reason="NamespaceTerminating",
                field="metadata.namespace",
                message=f"namespace {where} is being terminated",
            )
            why = (
                f"unable to create new content in namespace {where} because it is being terminated"
            )
            raise failures.forbidden(request.resource, name, why, [cause])

    def _change(
        self, request: Request, old: Stored, found: Object, *, by_apply: bool = False
    ) -> Object:
        resource, rules = request.resource, kind_rules.rules_of(request.resource)
        before = old.object
        change_rules.check_place(request, found["metadata"])
        change_rules.check_version(request, before["metadata"], found["metadata"])
        changed = rules.defaulted(change_rules.restricted(request, before, found))
        causes = [
            *names.metadata_objections(changed["metadata"]),
            *change_rules.finalizer_objections(before["metadata"], changed["metadata"]),
            *rules.objections(changed),
            *rules.change_objections(changed, before),
        ]
        if causes:
            raise failures.invalid(resource, request.name, causes)
        if rules.counts_generations and change_rules.wanted(
            request, changed
        ) != change_rules.wanted(request, before):
            generation = before["metadata"].get("generation", 0) + 1
            changed["metadata"]["generation"] = generation
        if not by_apply:
            changed = self._with_managers(request, before, changed)
        if changed == before:
            return before
        if change_rules.is_finished(changed["metadata"]):
            if not request.is_dry_run:
                self._deletions.remove(resource, changed)
            return changed
        return self._keep(request, changed)

    def _with_managers(self, request: Request, old: Object | None, new: Object) -> Object:
        manager = self._manager(request)
        shape = self._shape(request)
        return managed_fields.after_update(
            shape,
            old,
            new,
            manager,
            now=self._state.now(),
            ignored=_unreachable(request),
        )

    def _keep(self, request: Request, found: Object) -> Object:
        if request.is_dry_run:
            return found
        collection = request.resource.collection
        stored = self._state.store.put(collection, key_of(found), found)
        if collection == DEFINITIONS:
            self._state.refresh_resources()
        if collection == "namespaces":
            self._add_account(request.manager, found["metadata"]["name"])
        return stored.object

    def _add_account(self, manager: str, namespace: str) -> None:
        """Give a new namespace its account; in a real cluster a controller does that."""
        accounts = self._state.resources.sharing("serviceaccounts")
        if self._state.find(accounts, (namespace, "default")) is None:
            body = encode({"metadata": {"name": "default"}})
            self.create(
                Request(
                    method="POST",
                    resource=accounts,
                    namespace=namespace,
                    body=body,
                    agent=manager,
                )
            )

    def _bind(self, request: Request) -> Reply:
        old = self._state.get(request)
        target = bodies.parse_object(request).get("target", {}).get("name", "")
        spec = old.object["spec"]
        why = ""
        if "deletionTimestamp" in old.object["metadata"]:
            why = f"pod {request.name} is being deleted, cannot be assigned to a host"
        elif spec.get("nodeName"):
            why = f'pod {request.name} is already assigned to node "{spec["nodeName"]}"'
        if why:
            raise failures.conflict(request.resource, request.name, why, what="pods/binding")
        status = old.object["status"]
        condition = {"type": "PodScheduled", "status": "True"}
        condition |= {"lastTransitionTime": self._state.now()}
        others = [one for one in status.get("conditions", ()) if one["type"] != "PodScheduled"]
        changed = old.object | {
            "spec": spec | {"nodeName": target},
            "status": status | {"conditions": [*others, condition]},
        }
        self._keep(request, changed)
        success: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
        success |= {"status": "Success", "code": HTTPStatus.CREATED.value}
        return Reply(body=success, code=HTTPStatus.CREATED)


def _unreachable(request: Request) -> str:
    """Return the top field that a path cannot change."""
    if not request.resource.has_status:
        return ""
    return "f:spec" if request.subresource else "f:status"


def _untyped(request: Request, applied: Object, why: str) -> failures.ApiFailure:
    metadata = applied["metadata"]
    subject = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    version = request.resource.api_version
    version = version if "/" in version else f"/{version}"
    what = f"({subject}; {version}, Kind={request.resource.kind})"
    message = f"failed to create typed patch object {what}: {why}"
    return failures.ApiFailure(500, failures.status(500, message))
