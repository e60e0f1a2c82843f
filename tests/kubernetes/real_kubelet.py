"""The kubelet of a node of the test bed, as a kubelet under test."""

import re
import signal
from collections.abc import Callable

from testbed.cluster import PODS, Cluster
from testbed.node import Folders, Node
from tests.kubernetes import pods
from tests.kubernetes.kubelet_under_test import Container, Object, Resource

_SECONDS = 30


class RealKubelet:
    """A real kubelet with a real containerd behind it."""

    def __init__(self, cluster: Cluster, node: Node) -> None:
        self._cluster = cluster
        self._node = node

    @property
    def folders(self) -> Folders:
        """Where plugins and monitors meet it."""
        return self._node.folders

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._node.kubelet.running

    def start(self) -> None:
        """Start it, and return when plugins can register."""
        self._node.start_kubelet()

    def stop(self) -> None:
        """End it as by a crash."""
        self._node.kubelet.stop(signal.SIGKILL)

    def run(self, pod: Object) -> None:
        """Bind a new pod to this node."""
        self._cluster.run(pod | {"spec": pod["spec"] | {"nodeName": self._node.name}})

    def delete(self, pod: str) -> None:
        """Delete a pod without grace."""
        self._cluster.api.delete(f"{PODS}/{pod}")

    def await_pod(self, name: str, condition: Callable[[Object], bool]) -> Object:
        """Watch a pod until the condition holds."""
        return self._cluster.await_pod(name, condition, seconds=_SECONDS)

    def await_resource(self, name: str, condition: Callable[[Resource], bool]) -> Resource:
        """Watch the node until the condition holds."""
        node = self._cluster.api.wait(
            f"/api/v1/nodes/{self._node.name}",
            lambda node: node is not None and condition(_resource(node, name)),
            seconds=_SECONDS,
        )
        assert node is not None
        return _resource(node, name)

    def look_inside(self, pod: str, container: str = "main") -> Container:
        """Read what the container printed, and its process's control group."""
        started = self.await_pod(pod, pods.running)
        log = self._cluster.api.first_lines(
            f"{PODS}/{pod}/log?container={container}&follow=true", until=_is_complete
        )
        environment, devices, _ = log.split("--\n")
        (status,) = (
            one for one in started["status"]["containerStatuses"] if one["name"] == container
        )
        return Container(
            environment=dict(line.split("=", 1) for line in environment.splitlines()),
            devices=frozenset(devices.split()),
            control_group=self._node.control_group_of(_identifier(status["containerID"])),
        )


def _is_complete(log: str) -> bool:
    return log.count("--\n") == pods.SHOW.count("echo --")


def _identifier(container: str) -> str:
    return re.sub("^containerd://", "", container)


def _resource(node: Object, name: str) -> Resource:
    capacity, allocatable = (
        node["status"].get(kind, {}).get(name) for kind in ("capacity", "allocatable")
    )
    return Resource(
        capacity=None if capacity is None else int(capacity),
        allocatable=None if allocatable is None else int(allocatable),
    )
