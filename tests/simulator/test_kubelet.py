"""The simulated kubelet on sockets: what a real one would take minutes or a reboot to show."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.kubernetes import monitor, pods
from tests.kubernetes.kubelet_under_test import Resource
from tests.kubernetes.plugin import Plugin
from tests.kubernetes.simulated_kubelet import SimulatedKubeletUnderTest
from tests.simulator.conftest import StandingClock

from partita.errors import ImpossibleWorldError
from partita.simulator.kubelet.folders import Folders
from partita.simulator.kubelet.kubelet import SimulatedKubelet
from partita.simulator.kubelet.plugins import GRACE_SECONDS, Total
from partita.simulator.kubelet.process import Settings
from partita.wire import device_plugin as v1beta1

RESOURCE = "example.com/slice"
MakePlugin = Callable[..., Plugin]


@pytest.fixture
def make_plugin(kubelet: SimulatedKubeletUnderTest) -> Iterator[MakePlugin]:
    """Return a function that makes a plugin with healthy devices."""
    made: list[Plugin] = []

    def make(*devices: str, **options: Any) -> Plugin:
        listed = dict.fromkeys(devices, "Healthy")
        made.append(Plugin(kubelet.folders.device_plugins, RESOURCE, listed, **options))
        return made[-1]

    yield make
    for plugin in made:
        plugin.leave()


def test_a_plugin_that_stays_away_takes_its_resource_along(
    kubelet: SimulatedKubeletUnderTest, make_plugin: MakePlugin, clock: StandingClock
) -> None:
    """After five minutes nothing of it is counted; the node object keeps the name with 0."""
    plugin = make_plugin("a").join()
    kubelet.await_resource(RESOURCE, lambda it: it.allocatable == 1)
    plugin.leave()
    kubelet.await_resource(RESOURCE, lambda it: it == Resource(capacity=1, allocatable=0))

    clock.seconds = GRACE_SECONDS + 1

    kubelet.await_resource(RESOURCE, lambda it: it == Resource(capacity=0, allocatable=0))
    assert monitor.registered(kubelet, RESOURCE) == set()


def test_a_kubelet_that_does_not_know_its_pods_lists_none(
    kubelet: SimulatedKubeletUnderTest, make_plugin: MakePlugin
) -> None:
    """The checkpoint names the holder all the time, whatever is sent and asked meanwhile."""
    plugin = make_plugin("a").join()
    kubelet.await_resource(RESOURCE, lambda it: it.allocatable == 1)
    kubelet.run(pods.pod("one", pods.container(RESOURCE)))
    kubelet.await_pod("one", pods.running)
    kubelet.stop()
    plugin.leave()

    kubelet.start_without_pods()
    plugin.join()
    kubelet.await_resource(RESOURCE, lambda it: it.allocatable == 1)
    assert monitor.listed(kubelet) == {}
    assert monitor.remembered(kubelet, RESOURCE) == {"a"}

    kubelet.call(lambda it: it.learn_of_pods())
    assert monitor.listed(kubelet) == {"one": {"a"}}
    assert monitor.remembered(kubelet, RESOURCE) == {"a"}


def test_a_pod_that_is_bound_while_the_kubelet_is_down_is_taken_later(
    kubelet: SimulatedKubeletUnderTest, make_plugin: MakePlugin
) -> None:
    """Before its plugin is back it fails, as every pod does that is new to a started kubelet."""
    make_plugin("a").join()
    kubelet.await_resource(RESOURCE, lambda it: it.allocatable == 1)
    kubelet.stop()
    kubelet.run(pods.pod("one", pods.container(RESOURCE)))

    kubelet.start()

    pod = kubelet.await_pod("one", pods.failed)
    assert "no healthy devices present" in pod["status"]["message"]


def test_a_cdi_device_that_nobody_described_keeps_the_container_from_starting(
    kubelet: SimulatedKubeletUnderTest, make_plugin: MakePlugin
) -> None:
    """The pod holds its device, and waits."""
    answer = v1beta1.ContainerAllocateResponse(
        cdi_devices=[v1beta1.CDIDevice(name="example.com/slice=a")]
    )
    make_plugin("a", allocate=lambda _: answer).join()
    kubelet.await_resource(RESOURCE, lambda it: it.allocatable == 1)

    kubelet.run(pods.pod("one", pods.container(RESOURCE)))

    pod = kubelet.await_pod("one", lambda pod: "waiting" in pods.text(pod))
    (status,) = pod["status"]["containerStatuses"]
    assert status["state"]["waiting"]["reason"] == "CreateContainerError"
    assert "unresolvable CDI devices example.com/slice=a" in status["state"]["waiting"]["message"]
    assert monitor.listed(kubelet) == {"one": {"a"}}


def test_a_plugin_that_objects_keeps_the_container_from_starting(
    kubelet: SimulatedKubeletUnderTest, make_plugin: MakePlugin
) -> None:
    """The words of PreStartContainer's refusal are in the container's status."""
    plugin = make_plugin("a", pre_start_required=True)
    plugin.calls = _Refusing("PreStartContainer")
    plugin.join()
    kubelet.await_resource(RESOURCE, lambda it: it.allocatable == 1)

    kubelet.run(pods.pod("one", pods.container(RESOURCE)))

    pod = kubelet.await_pod("one", lambda pod: "waiting" in pods.text(pod))
    (status,) = pod["status"]["containerStatuses"]
    assert status["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    assert "not ready for it" in status["state"]["waiting"]["message"]


class _Refusing(list[tuple[str, Any]]):
    """The calls of a plugin which fails one method."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self._method = method

    def append(self, call: tuple[str, Any]) -> None:
        """Fail the method."""
        if call[0] == self._method:
            raise ValueError("not ready for it")
        super().append(call)


def test_the_node_is_reported_by_itself(clock: StandingClock) -> None:
    """With an interval nobody has to ask; a name that was there stays in the report."""

    async def scenario(folder: Path) -> None:
        settings = Settings(folders=Folders(base=folder), clock=clock)
        kubelet = SimulatedKubelet(settings, report_seconds=0.01)
        await kubelet.start()
        plugin = Plugin(kubelet.folders.device_plugins, RESOURCE, {"a": "Healthy"})
        await asyncio.to_thread(plugin.join)
        one = Total(capacity=1, allocatable=1)
        await kubelet.until(lambda: kubelet.status == {RESOURCE: one})
        await asyncio.to_thread(plugin.leave)
        none = Total(capacity=1, allocatable=0)
        await kubelet.until(lambda: kubelet.status == {RESOURCE: none})
        await kubelet.stop()

    with TemporaryDirectory(prefix="kubelet-") as folder:
        asyncio.run(scenario(Path(folder)))


def test_a_deleted_pod_leaves_its_name(kubelet: SimulatedKubeletUnderTest) -> None:
    """A pod of the same name can follow, and not before."""
    kubelet.run(pods.pod("one", pods.container()))
    first = kubelet.await_pod("one", pods.running)
    with pytest.raises(ImpossibleWorldError):
        kubelet.run(pods.pod("one", pods.container()))

    kubelet.call(lambda it: it.delete("one"))

    kubelet.run(pods.pod("one", pods.container()))
    second = kubelet.await_pod("one", pods.running)
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
