"""The node agent beside others that serve the GPUs of its node."""

import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from tests.kubernetes import agent as agents
from tests.kubernetes import pods
from tests.kubernetes.agent import AgentUnderTest, condition, time_sliced
from tests.kubernetes.kubelet_under_test import KubeletUnderTest
from tests.kubernetes.plugin import HEALTHY, Plugin
from tests.nvml.world import gpu_uuid

MakeAgent = Callable[..., AgentUnderTest]

_GPU = "nvidia.com/gpu"


def _refuses(status: agents.Status) -> bool:
    return condition(status, "SoleOwner")["holds"] is False


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _ask(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - http, see above
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def foreign(kubelet: KubeletUnderTest) -> Iterator[Plugin]:
    """Yield a device plugin of somebody else for two whole GPUs, which does not serve yet."""
    devices = {gpu_uuid(0): HEALTHY, gpu_uuid(1): HEALTHY}
    plugin = Plugin(kubelet.folders.device_plugins, _GPU, devices)
    yield plugin
    plugin.leave()


def test_of_two_agents_on_a_node_the_second_waits_for_the_first(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """It is alive and not ready, says who has the node, and takes over when that one ends."""
    first = make_agent("T4", wanted=time_sliced(4))
    first.serve()
    address = f"127.0.0.1:{_free_port()}"
    options = [f"--listen={address}"]
    second = make_agent(world=first.world, wanted=time_sliced(2), options=options)
    second.start()

    said = condition(second.wait(_refuses), "SoleOwner")

    assert f"process {first.process_id} on" in said["message"]
    assert "takes over" in said["hint"]
    code, text = _ask(f"http://{address}/readyz")
    assert (code, f"process {first.process_id} on" in text) == (503, True)
    assert _ask(f"http://{address}/healthz") == (200, "ok\n")
    assert f"process {first.process_id} on" in second.log
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 4)

    assert first.stop() == 0
    second.wait(agents.is_ready)
    assert _ask(f"http://{address}/readyz") == (200, "ok\n")
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 2)
    kubelet.run(pods.pod("one", pods.container(_GPU)))
    kubelet.await_pod("one", pods.running)


@pytest.mark.parametrize("socket_name", ["nvidia-gpu.sock", "theirs.sock"])
def test_another_device_plugin_keeps_the_agent_from_serving(
    kubelet: KubeletUnderTest, make_agent: MakeAgent, foreign: Plugin, socket_name: str
) -> None:
    """It is told by its socket, or else by its devices. When it leaves, its pods stay."""
    foreign.socket = foreign.socket.with_name(socket_name)
    foreign.join()
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 2)
    kubelet.run(pods.pod("theirs", pods.container(_GPU)))
    theirs = kubelet.look_inside("theirs")
    agent = make_agent("T4", "T4")
    agent.start()

    said = condition(agent.wait(_refuses), "SoleOwner")

    assert said["message"].startswith("another device plugin")
    assert said["message"].endswith(socket_name if socket_name.startswith("nvidia") else _GPU)
    assert "nvidia.com/gpu.deploy.device-plugin=false" in said["hint"]

    foreign.leave()
    agent.wait(agents.is_ready)
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 2)
    kubelet.run(pods.pod("ours", pods.container(_GPU)))
    ours = kubelet.look_inside("ours")
    assert kubelet.look_inside("theirs") == theirs
    told = {theirs.environment["DEVICES"], ours.environment["NVIDIA_VISIBLE_DEVICES"]}
    assert told == {gpu_uuid(0), gpu_uuid(1)}
