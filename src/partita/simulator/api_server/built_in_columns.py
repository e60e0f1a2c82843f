"""The columns of the built-in kinds, and the cells under them.

Descriptions of columns are left out: kubectl does not show them.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from partita.simulator.api_server import ages, pod_cells
from partita.simulator.api_server.shapes import Object

__all__ = ["CELLS", "COLUMNS", "Cells"]

Cells = Callable[[Object, datetime], list[Any]]
_NONE = "<none>"
_ROLE = "node-role.kubernetes.io/"


def _name(found: Object) -> str:
    return str(found["metadata"]["name"])


def _age(found: Object, now: datetime) -> str:
    return ages.age(found["metadata"].get("creationTimestamp"), now)


def _named(found: Object, now: datetime) -> list[Any]:
    return [_name(found), _age(found, now)]


def _node(found: Object, now: datetime) -> list[Any]:
    status = found.get("status", {})
    info = status.get("nodeInfo", {})
    addresses = {one["type"]: one["address"] for one in status.get("addresses", ())}
    return [
        _name(found),
        _node_status(found),
        _roles(found),
        _age(found, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", _NONE),
        addresses.get("ExternalIP", _NONE),
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _node_status(found: Object) -> str:
    conditions = found.get("status", {}).get("conditions", ())
    ready = [one["status"] for one in conditions if one["type"] == "Ready"]
    word = "Unknown" if not ready else "Ready" if ready[0] == "True" else "NotReady"
    held = found.get("spec", {}).get("unschedulable")
    return f"{word},SchedulingDisabled" if held else word


def _roles(found: Object) -> str:
    labels = found["metadata"].get("labels", {})
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    roles |= {labels["kubernetes.io/role"]} if "kubernetes.io/role" in labels else set()
    return ",".join(sorted(roles)) or _NONE


def _config_map(found: Object, now: datetime) -> list[Any]:
    count = len(found.get("data", {})) + len(found.get("binaryData", {}))
    return [_name(found), count, _age(found, now)]


def _event(found: Object, now: datetime) -> list[Any]:
    involved = found.get("involvedObject", {})
    about = f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"
    series, source = found.get("series") or {}, found.get("source", {})
    first = found.get("firstTimestamp") or found.get("eventTime")
    last = series.get("lastObservedTime") or found.get("lastTimestamp") or first
    parts = [source.get("component"), source.get("host")]
    if not parts[0]:
        parts = [found.get("reportingComponent"), found.get("reportingInstance")]
    count = series.get("count") or found.get("count") or 1
    return [
        ages.age(last, now),
        found.get("type", ""),
        found.get("reason", ""),
        about,
        involved.get("fieldPath", ""),
        ", ".join(filter(None, parts)),
        found.get("message", "").strip(),
        ages.age(first, now),
        count,
        _name(found),
    ]


def _namespace(found: Object, now: datetime) -> list[Any]:
    return [_name(found), found.get("status", {}).get("phase", ""), _age(found, now)]


def _lease(found: Object, now: datetime) -> list[Any]:
    return [_name(found), found.get("spec", {}).get("holderIdentity", ""), _age(found, now)]


def _quota(found: Object, now: datetime) -> list[Any]:
    status = found.get("status", {})
    hard, used = status.get("hard", {}), status.get("used", {})
    sides: dict[bool, list[str]] = {True: [], False: []}
    for name in sorted(hard):
        is_limit = name.startswith("limits")
        sides[is_limit].append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [_name(found), ", ".join(sides[False]), ", ".join(sides[True]), _age(found, now)]


def _selector(selector: Mapping[str, Any]) -> str:
    pairs = (selector.get("matchLabels") or {}).items()
    return ",".join(f"{key}={value}" for key, value in sorted(pairs)) or _NONE


def _template(found: Object) -> list[str]:
    spec = found["spec"]
    containers = spec["template"].get("spec", {}).get("containers", ())
    names = ",".join(one["name"] for one in containers)
    images = ",".join(one.get("image", "") for one in containers)
    return [names, images, _selector(spec.get("selector") or {})]


def _daemon_set(found: Object, now: datetime) -> list[Any]:
    status, template = found.get("status", {}), found["spec"]["template"]
    counts = (
        *("desiredNumberScheduled", "currentNumberScheduled", "numberReady"),
        *("updatedNumberScheduled", "numberAvailable"),
    )
    chosen = template.get("spec", {}).get("nodeSelector", {})
    numbers = [status.get(key, 0) for key in counts]
    where = _selector({"matchLabels": chosen})
    return [_name(found), *numbers, where, _age(found, now), *_template(found)]


def _deployment(found: Object, now: datetime) -> list[Any]:
    status = found.get("status", {})
    ready = f"{status.get('readyReplicas', 0)}/{found['spec'].get('replicas', 1)}"
    numbers = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [_name(found), ready, *numbers, _age(found, now), *_template(found)]


def _definition(found: Object, _: datetime) -> list[Any]:
    spec, names = found["spec"], found["spec"]["names"]
    versions = ",".join(
        one["name"] + ("(storage)" if one.get("storage") else "") for one in spec["versions"]
    )
    conditions = found.get("status", {}).get("conditions", ())
    is_established = any(
        one["type"] == "Established" and one["status"] == "True" for one in conditions
    )
    short = ",".join(names.get("shortNames", ()))
    head = [_name(found), spec["scope"], versions, found["metadata"]["creationTimestamp"]]
    return [*head, spec["group"], names["kind"], short, is_established]


def _limit_range(found: Object, _: datetime) -> list[Any]:
    return [_name(found), found["metadata"]["creationTimestamp"]]


def _columns(text: str) -> list[Object]:
    """Return columns: ``Name``, ``Name:integer`` for a type, ``Name+`` for wide output only."""
    columns = []
    for index, word in enumerate(text.split("|")):
        name, _, kind = word.rstrip("+").partition(":")
        is_name = name == "Name" and (index == 0 or word.endswith("+"))
        columns.append(
            {
                "name": name,
                "type": kind or "string",
                "format": "name" if is_name else "",
                "description": "",
                "priority": int(word.endswith("+")),
            }
        )
    return columns


COLUMNS: Mapping[str, list[Object]] = {
    "pods": _columns("Name|Ready|Status|Restarts|Age|IP+|Node+|Nominated Node+|Readiness Gates+"),
    "nodes": _columns(
        "Name|Status|Roles|Age|Version|Internal-IP+|External-IP+|OS-Image+|Kernel-Version+"
        "|Container-Runtime+"
    ),
    "configmaps": _columns("Name|Data|Age"),
    "events": _columns(
        "Last Seen|Type|Reason|Object|Subobject+|Source+|Message|First Seen+|Count+|Name+"
    ),
    "namespaces": _columns("Name|Status|Age"),
    "serviceaccounts": _columns("Name|Age"),
    "resourcequotas": _columns("Name|Request|Limit|Age"),
    "limitranges": _columns("Name|Created At:date"),
    "leases.coordination.k8s.io": _columns("Name|Holder|Age"),
    "daemonsets.apps": _columns(
        "Name|Desired:integer|Current:integer|Ready:integer|Up-to-date:integer"
        "|Available:integer|Node Selector|Age|Containers+|Images+|Selector+"
    ),
    "deployments.apps": _columns(
        "Name|Ready|Up-to-date|Available|Age|Containers+|Images+|Selector+"
    ),
    "customresourcedefinitions.apiextensions.k8s.io": _columns(
        "Name|Scope|Versions|Created At:date|Group+|Kind+|ShortNames+|Established:boolean+"
    ),
}
"""Collection → its columns."""

CELLS: Mapping[str, Cells] = {
    "pods": pod_cells.cells,
    "nodes": _node,
    "configmaps": _config_map,
    "events": _event,
    "namespaces": _namespace,
    "serviceaccounts": _named,
    "resourcequotas": _quota,
    "limitranges": _limit_range,
    "leases.coordination.k8s.io": _lease,
    "daemonsets.apps": _daemon_set,
    "deployments.apps": _deployment,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
}
"""Collection → the cells of an object."""
