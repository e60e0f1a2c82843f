"""What the PodResources API tells a monitor on the node."""

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from testbed import waiting
from tests.kubernetes import plugin, pods
from tests.kubernetes.kubelet_under_test import KubeletUnderTest
from tests.kubernetes.plugin import UNHEALTHY, Plugin

from partita.wire import pod_resources as v1

MakePlugin = Callable[..., Plugin]
_SERVICE = "/v1.PodResourcesLister"


def _list(kubelet: KubeletUnderTest) -> dict[str, dict[str, list[str]]]:
    """Return per pod and container the devices of every resource."""
    answer = _ask(kubelet, "List", v1.ListPodResourcesRequest(), v1.ListPodResourcesResponse)
    return {pod.name: _devices(pod) for pod in answer.pod_resources}


def _devices(pod: Any) -> dict[str, list[str]]:
    return {
        one.name: sorted(name for devices in one.devices for name in devices.device_ids)
        for one in pod.containers
    }


def _allocatable(kubelet: KubeletUnderTest) -> list[Any]:
    request, answer = v1.AllocatableResourcesRequest(), v1.AllocatableResourcesResponse
    return list(_ask(kubelet, "GetAllocatableResources", request, answer).devices)


def _ask(kubelet: KubeletUnderTest, method: str, request: Any, answer: Any) -> Any:
    return plugin.call(kubelet.folders.pod_resources, f"{_SERVICE}/{method}", request, answer)


def test_list_names_every_container_and_its_devices(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """Containers without devices are listed too; neither pod UID nor container ID is told."""
    make_plugin("a", "b").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 2)

    kubelet.run(pods.pod("one", pods.container(resource, 2), pods.container(name="plain")))
    kubelet.await_pod("one", pods.running)

    assert _list(kubelet) == {"one": {"main": ["a", "b"], "plain": []}}


def test_get_tells_of_one_pod(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """Get wants name and namespace; of a pod it does not know it says so."""
    make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)
    kubelet.run(pods.pod("one", pods.container(resource)))
    kubelet.await_pod("one", pods.running)

    request = v1.GetPodResourcesRequest(pod_name="one", pod_namespace="default")
    answer = _ask(kubelet, "Get", request, v1.GetPodResourcesResponse)
    assert _devices(answer.pod_resources) == {"main": ["a"]}

    unknown = v1.GetPodResourcesRequest(pod_name="two", pod_namespace="default")
    with pytest.raises(grpc.RpcError) as error:
        _ask(kubelet, "Get", unknown, v1.GetPodResourcesResponse)
    assert "not found" in str(error.value)


def test_allocatable_are_the_healthy_devices_given_out_or_not(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """GetAllocatableResources does not subtract what pods hold, and leaves out the unhealthy."""
    make_plugin("a", "b", health={"c": UNHEALTHY}).join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 2)
    kubelet.run(pods.pod("one", pods.container(resource)))
    kubelet.await_pod("one", pods.running)

    ours = [devices for devices in _allocatable(kubelet) if devices.resource_name == resource]
    assert sorted(name for devices in ours for name in devices.device_ids) == ["a", "b"]


def test_a_finished_pod_is_not_listed(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """List tells of active pods: one that has succeeded holds nothing, and the next gets it."""
    make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)
    kubelet.run(pods.pod("one", pods.container(resource, command="true")))
    kubelet.await_pod("one", lambda pod: bool(pod["status"].get("phase") == "Succeeded"))
    assert _list(kubelet) == {}

    kubelet.run(pods.pod("two", pods.container(resource)))
    kubelet.await_pod("two", pods.running)
    assert _list(kubelet) == {"two": {"main": ["a"]}}


def test_devices_are_known_over_a_restart(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """A restarted kubelet tells who holds what before the plugin is back, but not at once.

    Until it has heard of its pods from the API server, List is empty: that proves nothing.
    What is allocatable is unknown until the plugin is back.
    """
    make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)
    kubelet.run(pods.pod("one", pods.container(resource)))
    kubelet.await_pod("one", pods.running)

    kubelet.stop()
    kubelet.start()
    waiting.poll(
        lambda: _list(kubelet) == {"one": {"main": ["a"]}},
        seconds=10,
        otherwise="the kubelet does not tell of its pod",
    )

    assert resource not in {devices.resource_name for devices in _allocatable(kubelet)}


def test_who_asks_too_often_is_refused(kubelet: KubeletUnderTest) -> None:
    """All clients together have 100 calls a second, 10 at once; more is RESOURCE_EXHAUSTED."""
    with grpc.insecure_channel(f"unix://{kubelet.folders.pod_resources}") as channel:
        ask = plugin.method(channel, f"{_SERVICE}/List", v1.ListPodResourcesResponse)
        calls = [ask.future(v1.ListPodResourcesRequest()) for _ in range(60)]
        codes = [one.code() for one in calls]

    assert set(codes) == {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert codes.count(grpc.StatusCode.OK) >= 10
