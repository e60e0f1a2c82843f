"""What a kubelet makes of a plugin's list of devices."""

from collections.abc import Callable

import pytest
from testbed import programs
from tests.kubernetes import pods
from tests.kubernetes.kubelet_under_test import KubeletUnderTest, Resource
from tests.kubernetes.plugin import HEALTHY, UNHEALTHY, Plugin

MakePlugin = Callable[..., Plugin]


def test_every_list_is_the_whole_truth(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """A message of ListAndWatch replaces the one before: what it does not name is gone."""
    plugin = make_plugin("a", "b", "c").join()
    kubelet.await_resource(resource, lambda it: it.capacity == 3)

    plugin.change({"d": HEALTHY})

    found = kubelet.await_resource(resource, lambda it: it.capacity == 1)
    assert found == Resource(capacity=1, allocatable=1)


def test_only_healthy_devices_are_allocatable(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """Capacity counts every device, allocatable and pods get the healthy ones."""
    plugin = make_plugin("b", health={"a": UNHEALTHY, "c": UNHEALTHY}).join()
    found = kubelet.await_resource(resource, lambda it: it.capacity is not None)
    assert found == Resource(capacity=3, allocatable=1)

    kubelet.run(pods.pod("one", pods.container(resource)))
    kubelet.await_pod("one", pods.running)

    (request,) = plugin.named("Allocate")
    assert list(request.container_requests[0].devices_ids) == ["b"]


def test_a_device_that_recovers_can_be_allocated(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """Health may change either way at any time."""
    plugin = make_plugin(health={"a": UNHEALTHY}).join()
    kubelet.await_resource(resource, lambda it: it == Resource(capacity=1, allocatable=0))

    plugin.change({"a": HEALTHY})

    kubelet.await_resource(resource, lambda it: it == Resource(capacity=1, allocatable=1))


@pytest.mark.skipif(programs.version() < "1.36", reason="off by default before 1.36")
def test_the_health_of_a_device_is_in_the_pod_that_holds_it(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """A running pod stays when its device falls ill, and its status says so."""
    plugin = make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)
    kubelet.run(pods.pod("one", pods.container(resource)))
    kubelet.await_pod("one", pods.running)

    plugin.change({"a": UNHEALTHY})

    def is_ill(pod: dict[str, object]) -> bool:
        return '"health": "Unhealthy"' in pods.text(pod)

    pod = kubelet.await_pod("one", is_ill)
    (status,) = pod["status"]["containerStatuses"]
    assert pods.running(pod)
    assert status["allocatedResourcesStatus"] == [
        {"name": resource, "resources": [{"health": "Unhealthy", "resourceID": "a"}]}
    ]


def test_a_plugin_that_leaves_takes_what_is_allocatable(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """Its resource stays in the node's capacity and has 0 allocatable."""
    plugin = make_plugin("a", "b").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 2)

    plugin.leave()

    found = kubelet.await_resource(resource, lambda it: it.allocatable == 0)
    assert found == Resource(capacity=2, allocatable=0)


def test_two_kubelets_know_nothing_of_each_other(
    kubelet: KubeletUnderTest,
    other_kubelet: KubeletUnderTest,
    make_plugin: MakePlugin,
    resource: str,
) -> None:
    """Each node of one machine has its own folders, plugins and devices."""
    make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)
    nothing = Resource(capacity=None, allocatable=None)
    assert other_kubelet.await_resource(resource, lambda _: True) == nothing

    make_plugin("a", "b", at=other_kubelet).join()

    other_kubelet.await_resource(resource, lambda it: it.allocatable == 2)
    assert kubelet.await_resource(resource, lambda _: True).allocatable == 1
