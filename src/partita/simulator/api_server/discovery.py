"""What clients read to learn what is served: both forms of discovery, and the version."""

from collections.abc import Iterable, Mapping
from typing import Any

from partita.simulator.api_server.resource_types import Resources, ResourceType
from partita.simulator.api_server.shapes import Object

__all__ = ["AGGREGATED", "VERSION", "aggregated", "groups", "resource_list", "versions"]

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERSION: Mapping[str, str] = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.2+partita",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
"""The version whose behaviour is imitated, marked as ours."""

_KINDS = {"binding": "Binding"}
_SUBRESOURCE_VERBS = {"binding": ("create",), "status": ("get", "patch", "update")}


def versions(address: str) -> Object:
    """Return the versions of the core group."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def groups(resources: Resources) -> list[Object]:
    """Return all named groups."""
    found: dict[str, list[str]] = {}
    for one in resources.served:
        if one.group and one.version not in found.setdefault(one.group, []):
            found[one.group].append(one.version)
    return [_group(name, versions_) for name, versions_ in found.items()]


def _group(name: str, served: Iterable[str]) -> Object:
    listed = [{"groupVersion": f"{name}/{one}", "version": one} for one in served]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(resources: Resources, group: str, version: str) -> Object | None:
    """Return the resources of one version of a group, None when nothing is served there."""
    found = [one for one in resources.in_group(group) if one.version == version]
    if not found:
        return None
    listed = [entry for one in found for entry in _entries(one)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": found[0].api_version,
        "resources": listed,
    }


def _entries(resource: ResourceType) -> Iterable[Object]:
    entry: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.is_namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    yield entry | _further_names(resource)
    for subresource in resource.subresources:
        yield {
            "name": f"{resource.plural}/{subresource}",
            "singularName": "",
            "namespaced": resource.is_namespaced,
            "kind": _KINDS.get(subresource, resource.kind),
            "verbs": list(_SUBRESOURCE_VERBS[subresource]),
        }


def _further_names(resource: ResourceType) -> Object:
    found: Object = {}
    if resource.short_names:
        found["shortNames"] = list(resource.short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    return found


def aggregated(resources: Resources, *, core: bool) -> Object:
    """Return everything about the core group, or about all others, in one document."""
    names = [""] if core else [one["name"] for one in groups(resources)]
    items = [_aggregated_group(resources, name) for name in names]
    api_version = "apidiscovery.k8s.io/v2"
    head = {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}}
    return head | {"items": items}


def _aggregated_group(resources: Resources, name: str) -> Object:
    by_version: dict[str, list[Any]] = {}
    for one in resources.in_group(name):
        by_version.setdefault(one.version, []).append(_aggregated_resource(one))
    listed = [
        {"version": version, "resources": found, "freshness": "Current"}
        for version, found in by_version.items()
    ]
    return {"metadata": {"name": name} if name else {}, "versions": listed}


def _aggregated_resource(resource: ResourceType) -> Object:
    subresources = [
        {
            "subresource": one,
            "responseKind": _kind(resource, _KINDS.get(one, resource.kind)),
            "verbs": list(_SUBRESOURCE_VERBS[one]),
        }
        for one in resource.subresources
    ]
    found: Object = {
        "resource": resource.plural,
        "responseKind": _kind(resource, resource.kind),
        "scope": "Namespaced" if resource.is_namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    found |= _further_names(resource)
    return found | ({"subresources": subresources} if subresources else {})


def _kind(resource: ResourceType, kind: str) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": kind}
