"""The CDI spec file: how a container runtime gives a slice to a container by name.

The file is never removed. A container that is restarted is given its devices by it again, and the
agent may be away at that moment; what it says of devices that are gone harms nobody.

A runtime refuses the whole file for one unknown field, or when a field is newer than the version
that the file names. Source: Container Device Interface, SPEC.md 1.1.0.
"""

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from partita.adapters.device_plugin.node_files import (
    DeviceNode,
    DeviceNodes,
    DriverFile,
    NodeRoots,
)
from partita.adapters.device_plugin.response import CDI_KIND

__all__ = ["FILE_NAME", "hook_on_node", "spec", "write"]

FILE_NAME = CDI_KIND.replace("/", "-") + ".json"
"""The name that NVIDIA's plugin uses too, so that no device is described twice."""

_MOUNT_OPTIONS = ["ro", "nosuid", "nodev", "rbind", "rprivate"]


def spec(
    nodes: DeviceNodes, files: Sequence[DriverFile], hook: str | None
) -> Mapping[str, object] | None:
    """Return the document, None when there is no device to describe.

    Args:
        nodes: Device nodes.
        files: Files of the driver.
        hook: Path on the node of the program that tells a container's linker of libraries.
    """
    if not nodes.by_device:
        return None
    edits: dict[str, object] = {"env": ["NVIDIA_VISIBLE_DEVICES=void"]}
    if nodes.control:
        edits["deviceNodes"] = [_node(node) for node in nodes.control]
    if files:
        edits["mounts"] = [_mount(file) for file in files]
    folders = sorted({str(PurePosixPath(one.container_path).parent) for one in _libraries(files)})
    if hook is not None and folders:
        edits["hooks"] = [_update_linker(hook, folders)]
    devices = [
        {"name": name, "containerEdits": {"deviceNodes": [_node(node) for node in own]}}
        for name, own in sorted(nodes.by_device.items())
    ]
    return {
        "cdiVersion": _version(nodes),
        "kind": CDI_KIND,
        "devices": devices,
        "containerEdits": edits,
    }


def hook_on_node(path: str, roots: NodeRoots) -> str | None:
    """Return the path of the hook program when the node has it."""
    return path if (roots.node / path.lstrip("/")).is_file() else None


def write(folder: Path, document: Mapping[str, object]) -> bool:
    """Write the file in one step, unless it says this already; return whether it was written.

    Raises:
        OSError: When the folder cannot be written to.
    """
    data = (json.dumps(document, indent=1) + "\n").encode()
    path = folder / FILE_NAME
    if path.exists() and path.read_bytes() == data:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    # Runtimes read every *.json in the folder, so the unfinished file is not called so.
    unfinished = folder / f".{FILE_NAME}.{secrets.token_hex(4)}.tmp"
    try:
        with unfinished.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return True


def _node(node: DeviceNode) -> dict[str, str]:
    """Return a device node; the path on the node only where it differs."""
    if node.host_path == node.container_path:
        return {"path": node.container_path}
    return {"path": node.container_path, "hostPath": node.host_path}


def _mount(file: DriverFile) -> dict[str, object]:
    return {
        "hostPath": file.host_path,
        "containerPath": file.container_path,
        "options": _MOUNT_OPTIONS,
    }


def _libraries(files: Sequence[DriverFile]) -> list[DriverFile]:
    return [file for file in files if ".so" in PurePosixPath(file.container_path).name]


def _update_linker(hook: str, folders: Sequence[str]) -> dict[str, object]:
    """Return the hook; ``nvidia-ctk`` has it as a command below ``hook``."""
    name = PurePosixPath(hook).name
    command = [name, "hook", "update-ldcache"] if name == "nvidia-ctk" else [name, "update-ldcache"]
    arguments = [part for folder in folders for part in ("--folder", folder)]
    return {"hookName": "createContainer", "path": hook, "args": [*command, *arguments]}


def _version(nodes: DeviceNodes) -> str:
    """Return the lowest version that has every field in use: ``hostPath`` came with 0.5.0."""
    every = (*nodes.control, *(node for own in nodes.by_device.values() for node in own))
    moved = any(node.host_path != node.container_path for node in every)
    return "0.5.0" if moved else "0.3.0"
