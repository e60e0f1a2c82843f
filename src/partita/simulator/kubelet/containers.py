"""Containers of a simulated node, made of what plugins answered and of CDI files."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partita.wire import device_plugin as v1beta1

__all__ = ["RunningContainer", "StartFailedError", "make"]

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningContainer:
    """A container that runs, seen from within, as far as it was said what is in it.

    Attributes:
        container_id: 64 hexadecimal digits.
        environment: Environment variables: those of the pod, of plugins and of CDI.
        devices: Paths of device nodes: those of plugins and of CDI.
        mounts: Path inside → path on the node.
        control_group: ``/kubepods/besteffort/pod<uid>/<container id>``.
    """

    container_id: str
    environment: Mapping[str, str]
    devices: frozenset[str]
    mounts: Mapping[str, str]
    control_group: str


class StartFailedError(Exception):
    """When a container cannot be started.

    Attributes:
        reason: What the container's status says: ``CreateContainerError`` and the like.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def make(
    specification: Object, answers: Iterable[bytes], *, pod_uid: str, container_id: str, cdi: Path
) -> RunningContainer:
    """Return the container of a specification and of the plugins' answers for it.

    Raises:
        StartFailedError: When a CDI device is not in the files of the node.
    """
    responses = [v1beta1.ContainerAllocateResponse.FromString(answer) for answer in answers]
    names = dict.fromkeys(one.name for response in responses for one in response.cdi_devices)
    edits = _edits(tuple(names), cdi) if names else []
    environment = {one["name"]: one.get("value", "") for one in specification.get("env", ())}
    for response in responses:
        environment |= response.envs
    for edit in edits:
        environment |= dict(one.split("=", 1) for one in edit.get("env", ()))
    return RunningContainer(
        container_id=container_id,
        environment=environment,
        devices=frozenset(_devices(responses, edits)),
        mounts={one.container_path: one.host_path for it in responses for one in it.mounts}
        | {one["containerPath"]: one["hostPath"] for it in edits for one in it.get("mounts", ())},
        control_group=f"/kubepods/besteffort/pod{pod_uid}/{container_id}",
    )


def _devices(
    responses: Iterable[v1beta1.ContainerAllocateResponse], edits: Iterable[Object]
) -> Iterator[str]:
    for response in responses:
        yield from (device.container_path for device in response.devices)
    for edit in edits:
        yield from (device["path"] for device in edit.get("deviceNodes", ()))


def _edits(names: Sequence[str], folder: Path) -> list[Object]:
    """Return what the CDI devices of these names change in a container."""
    general: dict[str, Object] = {}
    special: dict[str, tuple[str, Object]] = {}
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        general[document["kind"]] = document.get("containerEdits", {})
        for device in document.get("devices", ()):
            name = f"{document['kind']}={device['name']}"
            special[name] = (document["kind"], device.get("containerEdits", {}))
    if unknown := [name for name in names if name not in special]:
        text = f"CDI device injection failed: unresolvable CDI devices {', '.join(unknown)}"
        raise StartFailedError("CreateContainerError", text)
    kinds = dict.fromkeys(special[name][0] for name in names)
    return [general[kind] for kind in kinds] + [special[name][1] for name in names]
