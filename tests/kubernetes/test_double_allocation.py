"""A device that a kubelet gives to two pods at once, without anybody having done wrong."""

import threading
from collections.abc import Callable
from typing import Any

from testbed import waiting
from testbed.cluster import PODS, Cluster
from tests.kubernetes import monitor, pods
from tests.kubernetes.kubelet_under_test import KubeletUnderTest
from tests.kubernetes.plugin import Plugin

MakePlugin = Callable[..., Plugin]
_GRACE_SECONDS = 3


def test_list_during_allocate_can_give_a_device_twice(
    cluster: Cluster, kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """List lets go of ended pods, and counts what is taken without the pod on its way in.

    So a pod that ends, a pod that is admitted meanwhile, and a monitor that calls List between the
    two are enough. The next pod gets the device of the second. Whoever serves devices must look
    at every Allocate whether the device is held.
    """
    begun, go_on = threading.Event(), threading.Event()
    plugin = make_plugin("a", "b", "c", get_preferred_allocation_available=True).join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 3)
    stays = pods.container(resource, command="trap '' TERM; sleep 3600 & wait")
    kubelet.run(pods.pod("one", stays, terminationGracePeriodSeconds=_GRACE_SECONDS))
    kubelet.await_pod("one", pods.running)
    usual = plugin.allocate

    def allocate(devices: list[str]) -> Any:
        begun.set()
        assert go_on.wait(20)
        return usual(devices)

    plugin.allocate = allocate
    cluster.api.delete(f"{PODS}/one", grace_seconds=_GRACE_SECONDS)
    kubelet.await_pod("one", lambda pod: "deletionTimestamp" in pod["metadata"])
    kubelet.run(pods.pod("two", pods.container(resource)))
    assert begun.wait(10)
    waiting.poll(lambda: "one" not in monitor.listed(kubelet), seconds=15, otherwise="one stays")
    go_on.set()
    kubelet.await_pod("two", pods.running)
    for name in ("three", "four"):
        kubelet.run(pods.pod(name, pods.container(resource)))
        kubelet.await_pod(name, pods.running)

    assert monitor.listed(kubelet) == {"two": {"b"}, "three": {"c"}, "four": {"b"}}
