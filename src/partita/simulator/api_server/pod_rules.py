"""What the API server does with pods: defaults, what it refuses, and how they end.

Simpler than the real one: only what pods of this world use is validated (names, images, resources,
immutability), no service account token is mounted, and priority classes are not looked up.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from partita.simulator.api_server import names, quantity
from partita.simulator.api_server.failures import Cause
from partita.simulator.api_server.shapes import Object

__all__ = ["created", "defaulted", "grace_seconds", "objections", "update_objections"]

_STANDARD = ("cpu", "memory", "ephemeral-storage", "storage", "hugepages-", "attachable-volumes-")
_EVICTION_SECONDS = 300
_SPEC: Mapping[str, Any] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}
_ADMITTED: Mapping[str, Any] = {
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "priority": 0,
    "preemptionPolicy": "PreemptLowerPriority",
}
_CONTAINER: Mapping[str, Any] = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def defaulted(pod: Object) -> Object:
    """Return a pod with what nobody needs to say."""
    spec = {**_SPEC, **pod["spec"]}
    for key in ("containers", "initContainers"):
        if key in spec:
            spec[key] = [_container(one) for one in spec[key]]
    return pod | {"spec": spec}


def created(pod: Object) -> Object:
    """Return a new pod with what admission adds, and its first status."""
    spec = {**_ADMITTED, **pod["spec"]}
    spec["tolerations"] = _tolerations(spec.get("tolerations", []))
    status = {"phase": "Pending", "qosClass": _quality(spec)}
    return pod | {"spec": spec, "status": status}


def _container(container: Object) -> Object:
    image = container.get("image", "")
    _, _, tag = image.rpartition("/")[2].partition(":")
    policy = "Always" if tag in {"", "latest"} and "@" not in image else "IfNotPresent"
    full = {**_CONTAINER, "imagePullPolicy": policy, **container}
    limits = full["resources"].get("limits")
    if limits:
        requests = {**limits, **full["resources"].get("requests", {})}
        full["resources"] = {**full["resources"], "requests": dict(sorted(requests.items()))}
    return full


def _tolerations(given: list[Object]) -> list[Object]:
    added = []
    for reason in ("not-ready", "unreachable"):
        key = f"node.kubernetes.io/{reason}"
        if not any(_tolerates(one, key) for one in given):
            one = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            added.append(one | {"tolerationSeconds": _EVICTION_SECONDS})
    return [*given, *added]


def _tolerates(toleration: Mapping[str, Any], key: str) -> bool:
    fits = toleration.get("key") == key or (
        "key" not in toleration and toleration.get("operator") == "Exists"
    )
    return fits and toleration.get("effect", "NoExecute") == "NoExecute"


def _quality(spec: Mapping[str, Any]) -> str:
    resources = [one["resources"] for one in _all_containers(spec)]
    told = [
        {key: part.get(key) for key in ("cpu", "memory")}
        for one in resources
        for part in (one.get("requests", {}), one.get("limits", {}))
    ]
    if not any(value for part in told for value in part.values()):
        return "BestEffort"
    guaranteed = all(
        one.get("limits", {}).get(key) is not None
        and one["limits"][key] == one.get("requests", {}).get(key)
        for one in resources
        for key in ("cpu", "memory")
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _all_containers(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (*spec.get("initContainers", ()), *spec.get("containers", ()))


def objections(pod: Object) -> Iterator[Cause]:
    """Yield what is wrong with a pod."""
    spec = pod["spec"]
    if not spec.get("containers"):
        yield Cause.required("spec.containers")
    for key in ("initContainers", "containers"):
        seen: set[str] = set()
        for index, container in enumerate(spec.get(key, ())):
            yield from _container_objections(container, f"spec.{key}[{index}]", seen)


def _container_objections(
    container: Mapping[str, Any], path: str, seen: set[str]
) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield Cause.required(f"{path}.name")
    elif objection := names.label_objection(f"{path}.name", name):
        yield objection
    elif name in seen:
        yield Cause.duplicate(f"{path}.name", name)
    seen.add(name)
    if not container.get("image"):
        yield Cause.required(f"{path}.image")
    yield from _resource_objections(container.get("resources", {}), f"{path}.resources")


def _resource_objections(resources: Mapping[str, Any], path: str) -> Iterator[Cause]:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _amount_objections(name, amount, f"{path}.{part}[{name}]")
            if part == "requests":
                yield from _relation_objections(name, amount, limits.get(name), path)


def _amount_objections(name: str, amount: str, path: str) -> Iterator[Cause]:
    if "/" not in name and not name.startswith(_STANDARD):
        yield Cause.invalid(path, name, "must be a standard resource type or fully qualified")
        yield Cause.invalid(path, name, "must be a standard resource for containers")
    elif quantity.parse(amount) < 0:
        yield Cause.invalid(path, amount, "must be greater than or equal to 0")
    elif "/" in name and quantity.parse(amount).denominator != 1:
        yield Cause.invalid(path, amount, "must be an integer")


def _relation_objections(name: str, amount: str, limit: str | None, path: str) -> Iterator[Cause]:
    if limit is None:
        if "/" in name:
            detail = "Limit must be set for non overcommitable resources"
            yield Cause.required(f"{path}.limits", detail)
    elif "/" in name and quantity.parse(amount) != quantity.parse(limit):
        detail = f"must be equal to {name} limit of {limit}"
        yield Cause.invalid(f"{path}.requests", amount, detail)
    elif quantity.parse(amount) > quantity.parse(limit):
        detail = f"must be less than or equal to {name} limit of {limit}"
        yield Cause.invalid(f"{path}.requests", amount, detail)


def update_objections(new: Object, old: Object) -> Iterator[Cause]:
    """Yield what is wrong with a change of a pod; the real server also shows the difference."""
    if _fixed(new["spec"], old["spec"]) != _fixed(old["spec"], old["spec"]):
        yield Cause.forbidden("spec", _MAY_CHANGE)


def _fixed(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Object:
    fixed = {key: one for key, one in spec.items() if key != "activeDeadlineSeconds"}
    for key in ("containers", "initContainers"):
        fixed[key] = [
            {field: one for field, one in container.items() if field != "image"}
            for container in spec.get(key, ())
        ]
    standing = old.get("tolerations", [])
    given = spec.get("tolerations", [])
    fixed["tolerations"] = [one for one in standing if one in given]
    return fixed


def grace_seconds(pod: Object, asked: int | None) -> int:
    """Return how long a pod may take to end; one that runs nowhere ends at once."""
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in {"Succeeded", "Failed"}:
        return 0
    wanted = pod["spec"].get("terminationGracePeriodSeconds", 30) if asked is None else asked
    return max(int(wanted), 0)
