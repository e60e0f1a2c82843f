"""A cluster: a control plane and nodes, for the time of a ``with`` block.

It must be started inside namespaces of its own: ``python -m testbed run PROGRAM``.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from testbed import images, isolation, programs
from testbed.api import Object
from testbed.component import Component
from testbed.control_plane import ControlPlane
from testbed.errors import TestbedError
from testbed.node import Node

PODS = "/api/v1/namespaces/default/pods"
DAEMON_SETS = "/apis/apps/v1/namespaces/default/daemonsets"
_NODES = "/api/v1/nodes"
_BUILT_IN = ("cpu", "memory", "pods", "ephemeral-storage", "hugepages-")


class Cluster:
    """Kubernetes with a number of nodes.

    ``kubelet`` are fields of every KubeletConfiguration; ``feature_gates`` are those of all
    programs. Objects of the tests belong into the namespace ``default``.
    """

    def __init__(
        self,
        *,
        nodes: int = 2,
        kubelet: Mapping[str, Any] | None = None,
        feature_gates: Mapping[str, bool] | None = None,
    ) -> None:
        isolation.control_group()  # raises outside
        self._programs = programs.find()
        self._kubelet = dict(kubelet or {})
        self._gates = dict(feature_gates or {})
        self._plane = ControlPlane(isolation.STATE / "control-plane", self._programs, self._gates)
        self._images: list[Path] = []
        self._initial_nodes = nodes
        self.api = self._plane.api
        self.nodes = {node.name: node for node in map(self._node, range(1, nodes + 1))}

    def __enter__(self) -> Self:
        """Start everything and wait until pods can be created."""
        try:
            self._start()
        except TestbedError as error:
            error.add_note(self.logs(lines=10))
            self._stop()
            raise
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything and remove its files."""
        self._stop()

    @property
    def kubeconfig(self) -> Path:
        """The file of a user with all rights."""
        return self._plane.kubeconfig("admin")

    def environment(self) -> dict[str, str]:
        """Return the environment in which ``kubectl`` means this cluster."""
        tools = self._programs["kubectl"].parent
        path = f"{tools}:{os.environ['PATH']}"
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig), "PATH": path}

    def add_node(self, **kubelet: Any) -> Node:
        """Add a node, with these fields of the KubeletConfiguration, and wait until it is ready."""
        node = self._node(len(self.nodes) + 1)
        node.settings |= kubelet
        self.nodes[node.name] = node
        node.start_runtime(self._images)
        node.start_kubelet(self._plane.kubeconfig(f"system:node:{node.name}"))
        self._await_node(node)
        return node

    def add_image(self, name: str, folder: Path, command: Sequence[str] = ()) -> None:
        """Make an image from a folder and load it on every node, present and future.

        Pods use it with ``imagePullPolicy: Never``.
        """
        target = isolation.STATE / "images" / f"{len(self._images)}.tar"
        images.archive(target, name=name, folder=folder, command=command)
        self._images.append(target)
        for node in self.nodes.values():
            node.load_image(target)

    def stop_api_server(self) -> None:
        """End the API server as by a crash; everything else goes on as well as it can."""
        self._plane.api_server.stop(signal.SIGKILL)

    def start_api_server(self) -> None:
        """Start the API server again and wait until it is ready."""
        self._plane.api_server.start()
        self._plane.await_api()

    def run(self, pod: Object) -> Object:
        """Create a pod in the namespace ``default``."""
        return self.api.create(PODS, pod)

    def await_pod(
        self, name: str, condition: Callable[[Object], bool], *, seconds: float = 30
    ) -> Object:
        """Watch a pod until the condition holds of it."""
        pod = self.api.wait(
            f"{PODS}/{name}", lambda pod: pod is not None and condition(pod), seconds=seconds
        )
        assert pod is not None
        return pod

    def await_node(
        self, name: str, condition: Callable[[Object], bool], *, seconds: float = 30
    ) -> Object:
        """Watch a node until the condition holds of it."""
        path = f"{_NODES}/{name}"
        node = self.api.wait(path, lambda it: it is not None and condition(it), seconds=seconds)
        assert node is not None
        return node

    def reset(self) -> None:
        """Bring everything back to the start: all programs run, no pods, no extended resources."""
        self.start_api_server()
        for name in list(self.nodes)[self._initial_nodes :]:
            self.nodes.pop(name).stop()
            self.api.delete(f"{_NODES}/{name}")
        for node in self.nodes.values():
            node.settings = dict(self._kubelet)
            node.start_kubelet()
        self.api.delete(DAEMON_SETS)  # first, for they would make their pods again
        self.api.delete(PODS)
        for node in self.nodes.values():
            node.await_rest()
            node.clear_folders()
            self._forget_resources(node)
        for component in self._components():
            component.mark()

    def logs(self, *, lines: int = 40) -> str:
        """Return the end of every program's log since the last reset."""
        return "\n".join(
            f"--- {component.name} ---\n{component.tail(lines)}" for component in self._components()
        )

    def _components(self) -> Iterator[Component]:
        yield from self._plane.components
        for node in self.nodes.values():
            yield from node.components

    def _node(self, number: int) -> Node:
        return Node(number, self._programs, feature_gates=self._gates, settings=self._kubelet)

    def _start(self) -> None:
        (isolation.STATE / "images").mkdir(exist_ok=True)
        self._images = images.basic_archives(isolation.STATE / "images")
        with ThreadPoolExecutor() as at_once:
            runtimes = [
                at_once.submit(node.start_runtime, self._images) for node in self.nodes.values()
            ]
            self._plane.start_store()
            self._plane.await_api()
            self._plane.start_controllers()
            for runtime in runtimes:
                runtime.result()
            kubelets = []
            for node in self.nodes.values():
                kubeconfig = self._plane.kubeconfig(f"system:node:{node.name}")
                kubelets.append(at_once.submit(node.start_kubelet, kubeconfig))
            for kubelet in kubelets:
                kubelet.result()
        for node in self.nodes.values():
            self._await_node(node)
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        self.api.wait(f"{accounts}/default", lambda account: account is not None)

    def _await_node(self, node: Node) -> None:
        self.await_node(node.name, _is_ready, seconds=60)

    def _stop(self) -> None:
        for node in self.nodes.values():
            node.stop()
        self._plane.stop()

    def _forget_resources(self, node: Node) -> None:
        """Make the kubelet and the node object forget every extended resource."""
        capacity = self.api.get(f"{_NODES}/{node.name}")["status"]["capacity"]
        extended = {name: None for name in capacity if not name.startswith(_BUILT_IN)}
        if extended:
            node.forget_devices()
            status = {"status": {"capacity": extended, "allocatable": extended}}
            self.api.patch(f"{_NODES}/{node.name}/status", status)


def _is_ready(node: Object) -> bool:
    if node["spec"].get("taints"):
        return False
    conditions = node["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
