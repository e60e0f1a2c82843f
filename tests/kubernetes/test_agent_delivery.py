"""What is in a container that the node agent has given a slice to."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kubernetes import pods
from tests.kubernetes.agent import A100, SEVENTHS, AgentUnderTest, time_sliced
from tests.kubernetes.kubelet_under_test import Container, KubeletUnderTest
from tests.kubernetes.simulated_kubelet import SimulatedKubeletUnderTest
from tests.nvml.world import gpu_uuid

MakeAgent = Callable[..., AgentUnderTest]

_GPU = "nvidia.com/gpu"
_SEVENTH = "nvidia.com/mig-1g.5gb"
_DRIVER_MAJOR, _CAPABILITY_MAJOR = 195, 239
_CONTROL = {"/dev/nvidiactl", "/dev/nvidia-uvm"}


def _give(kubelet: KubeletUnderTest, resource: str, name: str) -> Container:
    kubelet.run(pods.pod(name, pods.container(resource)))
    return kubelet.look_inside(name)


def _nvidia(container: Container) -> set[str]:
    """Return the device nodes that are not every container's."""
    return {path for path in container.devices if path.startswith("/dev/nvidia")}


class _Node:
    """A node with device nodes of NVIDIA's driver; below a folder of its own for our own sake."""

    def __init__(self, folder: Path, *, real: bool) -> None:
        self.root = folder / "node"
        self._outside = folder / "devices"  # as the container runtime finds them
        self._real = real
        inside = self.root / str(self._outside).lstrip("/")
        inside.parent.mkdir(parents=True)
        inside.symlink_to(self._outside)

    @property
    def options(self) -> list[str]:
        """The options by which an agent finds them."""
        return [f"--host-root={self.root}", f"--dev-root={self._outside}"]

    def add_device(self, name: str, major: int, minor: int) -> None:
        """Add a device node; only its number counts, for nobody opens it."""
        path = self._outside / "dev" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if self._real:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        else:
            path.touch()  # who is not root cannot make one

    def add_gpu(self, minor: int) -> None:
        """Add a GPU and what may stand on it in MIG mode."""
        self.add_device(f"nvidia{minor}", _DRIVER_MAJOR, minor)
        for instance in range(7, 14):  # eighths, as the driver numbers them
            self._add_capability(f"gpu{minor}/mig/gi{instance}", 2 * instance)
            self._add_capability(f"gpu{minor}/mig/gi{instance}/ci0", 2 * instance + 1)

    def _add_capability(self, name: str, minor: int) -> None:
        folder = self.root / "proc/driver/nvidia/capabilities" / name
        folder.mkdir(parents=True)
        text = f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\n"
        (folder / "access").write_text(text, encoding="ascii")
        self.add_device(f"nvidia-caps/nvidia-cap{minor}", _CAPABILITY_MAJOR, minor)


@pytest.fixture
def node(tmp_path: Path, kubelet: KubeletUnderTest) -> _Node:
    """Return a node with one GPU and the control nodes of the driver."""
    node = _Node(tmp_path, real=not isinstance(kubelet, SimulatedKubeletUnderTest))
    node.add_device("nvidiactl", _DRIVER_MAJOR, 255)
    node.add_device("nvidia-uvm", 510, 0)
    node.add_gpu(0)
    return node


def test_by_environment_a_container_is_told_of_its_slice_alone(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """Each pod's variable names another MIG device, which stands, and it gets no device nodes."""
    agent = make_agent(A100, wanted=SEVENTHS)
    agent.serve()
    kubelet.await_resource(_SEVENTH, lambda it: it.allocatable == 7)

    found = [_give(kubelet, _SEVENTH, name) for name in ("one", "two")]

    told = {one.environment["NVIDIA_VISIBLE_DEVICES"] for one in found}
    assert len(told) == 2
    assert told < {row[7] for row in agent.world.rows("compute-instance")}
    assert [_nvidia(one) for one in found] == [set(), set()]


def test_by_environment_device_nodes_come_when_asked_for(
    kubelet: KubeletUnderTest, make_agent: MakeAgent, node: _Node
) -> None:
    """With ``--pass-device-specs`` a container has the nodes of its GPU and the control nodes."""
    options = [*node.options, "--pass-device-specs"]
    make_agent("T4", wanted=time_sliced(2), options=options).serve()
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 2)

    found = _give(kubelet, _GPU, "one")

    assert found.environment["NVIDIA_VISIBLE_DEVICES"] == gpu_uuid(0)
    assert _nvidia(found) == {"/dev/nvidia0", *_CONTROL}


def test_by_cdi_a_container_has_the_nodes_of_its_slice_alone(
    kubelet: KubeletUnderTest, make_agent: MakeAgent, node: _Node
) -> None:
    """They are those of the GPU and of its two capabilities; another slice has others."""
    _check_cdi(kubelet, make_agent, node, "cdi-cri")


@pytest.mark.usefixtures("cluster")  # the simulated one reads no annotations
def test_by_annotations_for_cdi_it_is_the_same(
    kubelet: KubeletUnderTest, make_agent: MakeAgent, node: _Node
) -> None:
    """The runtime finds the names of the devices in annotations of the container."""
    _check_cdi(kubelet, make_agent, node, "cdi-annotations")


def _check_cdi(
    kubelet: KubeletUnderTest, make_agent: MakeAgent, node: _Node, strategy: str
) -> None:
    options = [*node.options, f"--device-list-strategy={strategy}"]
    make_agent(A100, wanted=SEVENTHS, options=options).serve()
    kubelet.await_resource(_SEVENTH, lambda it: it.allocatable == 7)

    found = [_give(kubelet, _SEVENTH, name) for name in ("one", "two")]

    assert {one.environment["NVIDIA_VISIBLE_DEVICES"] for one in found} == {"void"}
    capabilities = []
    for one in found:
        assert _nvidia(one) > {"/dev/nvidia0", *_CONTROL}
        names = _nvidia(one) - {"/dev/nvidia0", *_CONTROL}
        low, high = sorted(int(name.removeprefix("/dev/nvidia-caps/nvidia-cap")) for name in names)
        assert (low % 2, high) == (0, low + 1)
        capabilities.append(low)
    assert len(set(capabilities)) == 2
