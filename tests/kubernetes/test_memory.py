"""What a kubelet remembers of devices that were given out, and when it forgets."""

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from testbed import programs, waiting
from tests.kubernetes import monitor, pods
from tests.kubernetes.kubelet_under_test import KubeletUnderTest
from tests.kubernetes.plugin import HEALTHY, UNHEALTHY, Plugin

MakePlugin = Callable[..., Plugin]
_SECONDS = 10


def _send(kubelet: KubeletUnderTest, plugin: Plugin, *devices: str) -> None:
    """Send a list of healthy devices, and wait until the checkpoint has it."""
    plugin.change(dict.fromkeys(devices, HEALTHY))
    waiting.poll(
        lambda: monitor.registered(kubelet, plugin.resource) == set(devices),
        seconds=_SECONDS,
        otherwise=f"the checkpoint does not name {devices}",
    )


def test_the_checkpoint_names_an_ended_pod_until_a_list_after_it_was_let_go(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """The end of a pod changes nothing; List lets go of it in memory; the next list writes that."""
    plugin = make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)
    kubelet.run(pods.pod("one", pods.container(resource, command="true")))
    kubelet.await_pod("one", lambda pod: bool(pod["status"].get("phase") == "Succeeded"))

    _send(kubelet, plugin, "a", "b")
    assert monitor.remembered(kubelet, resource) == {"a"}
    assert monitor.listed(kubelet) == {}
    assert monitor.remembered(kubelet, resource) == {"a"}
    _send(kubelet, plugin, "a", "b", "c")
    assert monitor.remembered(kubelet, resource) == set()


def test_the_checkpoint_names_holders_over_a_restart(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """It does so while the kubelet is down, before it knows its pods, and in what it writes next.

    Whoever wants to know whether a device is free therefore reads it, too, and not List alone.
    """
    plugin = make_plugin("a", "b").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 2)
    kubelet.run(pods.pod("one", pods.container(resource, 2)))
    kubelet.await_pod("one", pods.running)

    kubelet.stop()
    assert monitor.remembered(kubelet, resource) == {"a", "b"}
    kubelet.start()
    assert monitor.remembered(kubelet, resource) == {"a", "b"}

    plugin.leave()
    plugin.join()
    _send(kubelet, plugin, "a", "b", "c")
    assert monitor.remembered(kubelet, resource) == {"a", "b"}


def test_an_unhealthy_device_stays_with_its_holder(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """List and checkpoint name it further on; it is only no longer allocatable."""
    plugin = make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)
    kubelet.run(pods.pod("one", pods.container(resource)))
    kubelet.await_pod("one", pods.running)

    plugin.change({"a": UNHEALTHY, "b": HEALTHY})
    kubelet.await_resource(resource, lambda it: it.capacity == 2)

    assert monitor.allocatable(kubelet, resource) == {"b"}
    assert monitor.listed(kubelet) == {"one": {"a"}}
    assert monitor.remembered(kubelet, resource) == {"a"}


@pytest.mark.skipif(programs.version() < "1.37", reason="not tried before 1.37")
def test_a_device_that_leaves_while_it_is_given_ends_the_kubelet(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """A plugin must not drop a device from its list while it may be asked to Allocate it.

    The kubelet crashes, and remembers nothing of the pod. When it is back it admits it anew.
    """
    plugin = make_plugin("a")
    usual = plugin.allocate

    def allocate(devices: list[str]) -> Any:
        plugin.allocate = usual
        _send(kubelet, plugin, "b")
        return usual(devices)

    plugin.allocate = allocate
    plugin.join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)

    kubelet.run(pods.pod("one", pods.container(resource)))
    waiting.poll(lambda: not kubelet.alive, seconds=_SECONDS, otherwise="the kubelet lives on")
    assert monitor.remembered(kubelet, resource) == set()

    plugin.leave()
    kubelet.start()
    pod = kubelet.await_pod("one", lambda pod: pods.failed(pod) or pods.running(pod))
    assert pods.failed(pod)


@pytest.mark.skipif(programs.version() < "1.37", reason="before 1.37 a socket may register again")
def test_a_refused_second_registration_blinds_the_kubelet(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """After it the kubelet does not notice that the plugin leaves, and never takes its socket.

    So a plugin that comes back needs another socket.
    """
    plugin = make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)
    with pytest.raises(grpc.RpcError):
        plugin.register()

    plugin.leave()
    plugin.serve()
    with pytest.raises(grpc.RpcError) as error:
        plugin.register()
    assert "already connected" in str(error.value)
    assert kubelet.await_resource(resource, lambda _: True).allocatable == 1

    make_plugin("a", "b").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 2)
