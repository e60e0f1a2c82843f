"""The cells of a pod's row: what ``kubectl get pods`` shows."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from partita.simulator.api_server import ages
from partita.simulator.api_server.shapes import Object

__all__ = ["cells"]

_NONE = "<none>"


def cells(pod: Object, now: datetime) -> list[Any]:
    """Return the cells."""
    status, spec = pod.get("status", {}), pod["spec"]
    statuses = status.get("containerStatuses", ())
    ready = sum(bool(one.get("ready")) for one in statuses)
    restarts = sum(one.get("restartCount", 0) for one in statuses)
    return [
        pod["metadata"]["name"],
        f"{ready}/{len(spec.get('containers', ()))}",
        _reason(pod, statuses),
        _restarts(restarts, statuses, now),
        ages.age(pod["metadata"].get("creationTimestamp"), now),
        status.get("podIP") or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        _gates(spec, status),
    ]


def _reason(pod: Object, statuses: Sequence[Mapping[str, Any]]) -> str:
    status = pod.get("status", {})
    reason = status.get("reason") or status.get("phase", "")
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    initial = _initial_reason(pod)
    reason = initial or _container_reason(statuses, reason)
    if "deletionTimestamp" in pod["metadata"]:
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in {"Failed", "Succeeded"}:
            return "Terminating"
    return str(reason)


def _initial_reason(pod: Object) -> str:
    specified = pod["spec"].get("initContainers", ())
    sidecars = {one["name"] for one in specified if one.get("restartPolicy") == "Always"}
    for index, one in enumerate(pod.get("status", {}).get("initContainerStatuses", ())):
        state = one.get("state", {})
        ended, waiting = state.get("terminated"), state.get("waiting")
        if (ended and ended.get("exitCode") == 0) or (one["name"] in sidecars and one["started"]):
            continue
        if ended:
            return f"Init:{_ended(ended)}"
        if waiting and waiting.get("reason") not in {None, "", "PodInitializing"}:
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(specified)}"
    return ""


def _container_reason(statuses: Sequence[Mapping[str, Any]], reason: str) -> str:
    is_running = False
    for one in reversed(statuses):
        state = one.get("state", {})
        if state.get("waiting", {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif "terminated" in state:
            reason = _ended(state["terminated"])
        elif one.get("ready") and "running" in state:
            is_running = True
    return "Running" if reason == "Completed" and is_running else reason


def _ended(terminated: Mapping[str, Any]) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts(count: int, statuses: Sequence[Mapping[str, Any]], now: datetime) -> str:
    ends = [
        one["lastState"]["terminated"].get("finishedAt")
        for one in statuses
        if "terminated" in one.get("lastState", {})
    ]
    last = max(filter(None, ends), default=None)
    return f"{count} ({ages.age(last, now)} ago)" if count and last else str(count)


def _gates(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    gates = spec.get("readinessGates", ())
    if not gates:
        return _NONE
    true = {one["type"] for one in status.get("conditions", ()) if one.get("status") == "True"}
    met = sum(one["conditionType"] in true for one in gates)
    return f"{met}/{len(gates)}"
