"""Pods that tests run."""

import json
from typing import Any

from testbed import images

Object = dict[str, Any]

SHOW = "env; echo --; find /dev -type c -o -type b; echo --; "
_STAY = "trap 'exit 0' TERM; sleep 3600 & wait"


def pod(name: str, *containers: Object, first: Object | None = None, **spec: Any) -> Object:
    """Return a pod with these containers; ``first`` is an init container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": list(containers),
            "initContainers": [] if first is None else [first],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }


def container(
    resource: str = "", count: int = 1, *, name: str = "main", command: str = SHOW + _STAY
) -> Object:
    """Return a container that asks for a number of devices, shows what it got, and stays."""
    return {
        "name": name,
        "image": images.BUSYBOX,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", command],
        "resources": {"limits": {resource: str(count)} if resource else {}},
    }


def running(pod: Object) -> bool:
    """Tell whether a pod runs."""
    return bool(pod["status"].get("phase") == "Running")


def failed(pod: Object) -> bool:
    """Tell whether a pod has failed for good."""
    return bool(pod["status"].get("phase") == "Failed")


def condition(pod: Object, kind: str) -> Object:
    """Return one of a pod's conditions; empty when it has none of that kind."""
    conditions = pod["status"].get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), {})


def text(pod: Object) -> str:
    """Return a pod as text, for a search through all of it."""
    return json.dumps(pod)
