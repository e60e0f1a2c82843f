"""Several pods on one GPU, as NVIDIA's own configuration has it, through the node agent."""

import time
from collections.abc import Callable
from pathlib import Path

from testbed.cluster import Cluster
from tests.kubernetes import agent as agents
from tests.kubernetes import pods
from tests.kubernetes.agent import AgentUnderTest
from tests.kubernetes.kubelet_under_test import Container, KubeletUnderTest, Resource
from tests.nvml.world import gpu_uuid

MakeAgent = Callable[..., AgentUnderTest]

_GPU = "nvidia.com/gpu"
_FOLLOWS_SECONDS = 2
_REPORT_SECONDS = 1  # how often the tests' kubelets report their node's status
_SLACK_SECONDS = 2


def _run(kubelet: KubeletUnderTest, *names: str) -> list[Container]:
    for name in names:
        kubelet.run(pods.pod(name, pods.container(_GPU)))
    return [kubelet.look_inside(name) for name in names]


def _replace_mount(folder: Path, text: str) -> Path:
    """Write a file as a mounted ConfigMap has it, and return its path, which is always the same."""
    version = folder / f"..{time.monotonic_ns()}"
    version.mkdir(parents=True)
    (version / "config.yaml").write_text(text, encoding="utf-8")
    (folder / "..new").symlink_to(version.name)
    (folder / "..new").rename(folder / "..data")
    path = folder / "config.yaml"
    if not path.is_symlink():
        path.symlink_to("..data/config.yaml")
    return path


def test_four_pods_share_a_gpu_and_a_fifth_finds_no_room(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """With ``replicas: 4`` four pods see the same UUID; one that is bound by force is refused."""
    make_agent("T4", wanted=agents.time_sliced(4)).serve()
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 4)

    four = _run(kubelet, "one", "two", "three", "four")
    kubelet.run(pods.pod("five", pods.container(_GPU)))
    fifth = kubelet.await_pod("five", pods.failed)

    assert {one.environment["NVIDIA_VISIBLE_DEVICES"] for one in four} == {gpu_uuid(0)}
    assert fifth["status"]["reason"] == "UnexpectedAdmissionError"
    assert "Requested: 1, Available: 0" in fifth["status"]["message"]


def test_the_scheduler_lets_the_fifth_pod_wait(
    cluster: Cluster, kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """It stays Pending for lack of the resource, and runs as soon as one of the four has ended."""
    make_agent("T4", wanted=agents.time_sliced(4)).serve()
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 4)

    names = ["one", "two", "three", "four"]
    for name in names:
        cluster.run(pods.pod(name, pods.container(_GPU)))
    for name in names:
        cluster.await_pod(name, pods.running)
    cluster.run(pods.pod("five", pods.container(_GPU)))
    waiting = cluster.await_pod("five", lambda pod: bool(pods.condition(pod, "PodScheduled")))

    assert waiting["status"]["phase"] == "Pending"
    assert f"Insufficient {_GPU}" in pods.condition(waiting, "PodScheduled")["message"]
    kubelet.delete("three")
    assert kubelet.look_inside("five").environment["NVIDIA_VISIBLE_DEVICES"] == gpu_uuid(0)


def test_more_replicas_come_while_pods_run(
    kubelet: KubeletUnderTest, make_agent: MakeAgent
) -> None:
    """After an edit from 4 to 8 new pods run at once, and not a thing happens to those before."""
    agent = make_agent("T4", wanted=agents.time_sliced(4))
    agent.serve()
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 4)
    names = ["one", "two", "three", "four"]
    before = _run(kubelet, *names)

    start = time.monotonic()
    agent.want(agents.time_sliced(8))
    kubelet.await_resource(_GPU, lambda it: it == Resource(capacity=8, allocatable=8))
    seconds = time.monotonic() - start
    more = _run(kubelet, "five", "six", "seven", "eight")

    assert seconds < _FOLLOWS_SECONDS + _REPORT_SECONDS + _SLACK_SECONDS
    assert [kubelet.look_inside(name) for name in names] == before
    assert {one.environment["NVIDIA_VISIBLE_DEVICES"] for one in more} == {gpu_uuid(0)}


def test_a_config_map_is_followed_through_its_links(
    kubelet: KubeletUnderTest, make_agent: MakeAgent, tmp_path: Path
) -> None:
    """The kubelet exchanges the folder behind a mounted file in one step, and the link stays."""
    path = _replace_mount(tmp_path / "mount", agents.time_sliced(2))
    make_agent("T4", options=["--config", str(path)]).serve()
    kubelet.await_resource(_GPU, lambda it: it.allocatable == 2)

    _replace_mount(tmp_path / "mount", agents.time_sliced(3))

    kubelet.await_resource(_GPU, lambda it: it.allocatable == 3)
