"""A kubelet as the facts of this folder need it: the real one, and every imitation of it.

Pods are objects as in the Kubernetes API. Whatever is awaited is awaited for a limited time; too
late is an exception.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

Object = dict[str, Any]


class Folders(Protocol):
    """Where plugins and monitors meet a kubelet."""

    @property
    def device_plugins(self) -> Path:
        """The folder of ``kubelet.sock`` and of the plugins' sockets."""
        ...

    @property
    def plugin_registry(self) -> Path:
        """The folder that the kubelet searches for plugins."""
        ...

    @property
    def pod_resources(self) -> Path:
        """The socket of the PodResources API."""
        ...

    @property
    def cdi(self) -> Path:
        """A folder of CDI files that this node's containers can refer to."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """What a node object says of one resource; None when it does not name it."""

    capacity: int | None
    allocatable: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A running container, seen from within."""

    environment: dict[str, str]
    devices: frozenset[str]
    """Paths of device nodes."""
    control_group: str
    """Its control group in the hierarchy of memory, below that of the node."""


class KubeletUnderTest(Protocol):
    """One node's kubelet."""

    @property
    def folders(self) -> Folders:
        """Where plugins and monitors meet it."""
        ...

    @property
    def alive(self) -> bool:
        """Whether its process runs; it may have ended by itself."""
        ...

    def start(self) -> None:
        """Start it, and return when plugins can register."""
        ...

    def stop(self) -> None:
        """End it as by a crash; containers go on."""
        ...

    def run(self, pod: Object) -> None:
        """Bind a new pod to this node, whatever a scheduler would say."""
        ...

    def delete(self, pod: str) -> None:
        """End a pod of the namespace ``default`` at once, and forget it."""
        ...

    def await_pod(self, name: str, condition: Callable[[Object], bool]) -> Object:
        """Wait until a condition holds of a pod in the namespace ``default``."""
        ...

    def await_resource(self, name: str, condition: Callable[[Resource], bool]) -> Resource:
        """Wait until a condition holds of what the node object says of a resource."""
        ...

    def look_inside(self, pod: str, container: str = "main") -> Container:
        """Wait until a container runs that began with ``pods.SHOW``, and look into it."""
        ...
