"""What a change may do to an object, whatever its kind: its place, its version, its halves."""

from partita.simulator.api_server import failures
from partita.simulator.api_server.failures import Cause
from partita.simulator.api_server.requests import Request
from partita.simulator.api_server.shapes import Object

__all__ = [
    "KEPT",
    "check_place",
    "check_version",
    "finalizer_objections",
    "is_finished",
    "ordered",
    "restricted",
    "wanted",
]

KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
"""Metadata that only the server sets."""


def check_place(request: Request, metadata: Object) -> None:
    """Refuse an object whose name or namespace is not that of the path.

    Raises:
        ApiFailure: When it is not.
    """
    name, namespace = metadata.get("name", ""), metadata.get("namespace", "")
    if request.name and name and name != request.name:
        message = f"the name of the object ({name}) does not match the name on the URL "
        raise failures.bad_request(f"{message}({request.name})")
    if namespace and namespace != request.namespace:
        message = (
            "the namespace of the provided object does not match the namespace sent on the request"
        )
        raise failures.bad_request(message)


def check_version(request: Request, old: Object, new: Object) -> None:
    """Refuse a change that means another object, or another version of this one.

    Raises:
        ApiFailure: When it does.
    """
    resource, name = request.resource, request.name
    if (uid := new.get("uid", old["uid"])) != old["uid"]:
        key = f"/registry/{resource.collection}/{request.namespace}/{name}"
        why = (
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
            "AdditionalErrorMsg: Precondition failed: "
            f"UID in precondition: {uid}, UID in object meta: {old['uid']}"
        )
        raise failures.conflict(resource, name, why)
    version = new.get("resourceVersion", "")
    if version and version != old["resourceVersion"]:
        raise failures.modified(resource, name)


def restricted(request: Request, old: Object, new: Object) -> Object:
    """Return the new object with only those changes that this path allows."""
    resource, before = request.resource, old["metadata"]
    if request.subresource == "status":
        changed = {key: one for key, one in old.items() if key != "status"}
        changed |= {"status": new["status"]} if "status" in new else {}
        metadata = new["metadata"] if not resource.is_custom else before
        if resource.is_custom and "managedFields" in new["metadata"]:
            metadata = before | {"managedFields": new["metadata"]["managedFields"]}
    else:
        changed, metadata = dict(new), new["metadata"]
        if resource.has_status:
            changed.pop("status", None)
            changed |= {"status": old["status"]} if "status" in old else {}
    kept = {key: before[key] for key in (*KEPT, "generation") if key in before}
    free = {key: one for key, one in metadata.items() if key not in KEPT}
    place = {key: before[key] for key in ("name", "namespace") if key in before}
    version = {"resourceVersion": before["resourceVersion"]}
    return changed | {"metadata": ordered(free | kept | place | version)}


def ordered(metadata: Object) -> Object:
    """Return metadata in the order in which people expect them."""
    first = ("name", "generateName", "namespace", "uid", "generation", "creationTimestamp")
    head = {key: metadata[key] for key in first if key in metadata}
    return head | metadata


def finalizer_objections(old: Object, new: Object) -> list[Cause]:
    """Return what is wrong with the finalizers of an object that is being deleted."""
    added = [one for one in new.get("finalizers", ()) if one not in old.get("finalizers", ())]
    if "deletionTimestamp" not in old or not added:
        return []
    shown = ", ".join(f'"{one}"' for one in added)
    detail = (
        "no new finalizers can be added if the object is being deleted, found new finalizers "
        f"[]string{{{shown}}}"
    )
    return [Cause.forbidden("metadata.finalizers", detail)]


def wanted(request: Request, found: Object) -> Object:
    """Return what a generation counts."""
    ignored = {"metadata", "status"} if request.resource.has_status else {"metadata"}
    return {key: one for key, one in found.items() if key not in ignored}


def is_finished(metadata: Object) -> bool:
    """Tell whether nothing holds a deleted object any more."""
    is_deleted = metadata.get("deletionGracePeriodSeconds") == 0
    return is_deleted and not metadata.get("finalizers")
