"""How the stock scheduler and the node object treat resources that come and go.

These are facts of a whole cluster, not of a kubelet, so they need the test bed itself.
"""

import time
from collections.abc import Callable

from testbed import waiting
from testbed.cluster import PODS, Cluster
from testbed.node import Node
from tests.kubernetes import pods
from tests.kubernetes.kubelet_under_test import KubeletUnderTest, Object, Resource
from tests.kubernetes.plugin import HEALTHY, Plugin, call

from partita.wire import pod_resources as v1

MakePlugin = Callable[..., Plugin]

# Kubelet's default. The tests' own kubelets report every second, to save waiting.
_USUAL_SECONDS = 10


def _is_refused(pod: Object) -> bool:
    return pods.condition(pod, "PodScheduled").get("reason") == "Unschedulable"


def _patch_status(cluster: Cluster, node: Node, resource: str, count: int) -> None:
    """Say in the node object how many devices there are, before the kubelet does."""
    counts = {resource: str(count)}
    status = {"status": {"capacity": counts, "allocatable": counts}}
    cluster.api.patch(f"/api/v1/nodes/{node.name}/status", status)


def _await_devices(node: Node, resource: str, count: int) -> None:
    """Wait until the kubelet itself has so many allocatable devices of the resource."""

    def has() -> bool:
        answer = call(
            node.folders.pod_resources,
            "/v1.PodResourcesLister/GetAllocatableResources",
            v1.AllocatableResourcesRequest(),
            v1.AllocatableResourcesResponse,
        )
        found = [one for one in answer.devices if one.resource_name == resource]
        return sum(len(one.device_ids) for one in found) == count

    waiting.poll(has, seconds=10, otherwise=f"the kubelet has not {count} of {resource}")


def test_the_fifth_pod_of_four_slots_waits(
    cluster: Cluster, kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """It stays Pending, the condition and the event name the resource, and nothing else happens."""
    make_plugin("a", "b", "c", "d").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 4)

    for number in range(5):
        cluster.run(pods.pod(f"pod-{number}", pods.container(resource)))
    waiting = cluster.api.wait_any(PODS, _is_refused)

    condition = pods.condition(waiting, "PodScheduled")
    assert waiting["status"]["phase"] == "Pending"
    assert condition["message"].startswith(f"0/2 nodes are available: 2 Insufficient {resource}.")
    event = cluster.api.wait_any(
        "/apis/events.k8s.io/v1/namespaces/default/events",
        lambda event: bool(event["regarding"].get("uid") == waiting["metadata"]["uid"]),
    )
    assert event["reason"] == "FailedScheduling"
    assert event["type"] == "Warning"
    assert event["note"] == condition["message"]


def test_a_freed_slot_goes_to_the_pod_that_waits(
    cluster: Cluster, kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """The end of a pod wakes the scheduler; nobody has to touch the pod that waits."""
    make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)
    cluster.run(pods.pod("first", pods.container(resource)))
    cluster.await_pod("first", pods.running)
    cluster.run(pods.pod("second", pods.container(resource)))
    cluster.await_pod("second", _is_refused)

    cluster.api.delete("/api/v1/namespaces/default/pods/first")

    cluster.await_pod("second", pods.running)


def test_a_change_waits_for_the_next_node_status(
    cluster: Cluster, make_plugin: MakePlugin, resource: str
) -> None:
    """The kubelet knows new devices at once; the node object counts them at its next report."""
    seconds = 4
    node = cluster.nodes["node-1"]
    node.restart_kubelet(nodeStatusUpdateFrequency=f"{seconds}s")
    plugin = make_plugin("a").join()
    cluster.await_node(node.name, lambda it: it["status"]["allocatable"].get(resource) == "1")

    start = time.monotonic()  # a report has just been made
    plugin.change({"a": HEALTHY, "b": HEALTHY})
    _await_devices(node, resource, 2)
    known = time.monotonic() - start
    cluster.await_node(node.name, lambda it: it["status"]["allocatable"].get(resource) == "2")
    told = time.monotonic() - start

    assert known < seconds / 4
    assert seconds / 2 < told < 2 * seconds


def test_a_patch_makes_a_new_resource_usable_at_once(
    cluster: Cluster, make_plugin: MakePlugin, resource: str
) -> None:
    """A pod that waits runs soon after the node's status is patched, not after the next report."""
    node = cluster.nodes["node-1"]
    node.restart_kubelet(nodeStatusUpdateFrequency=f"{10 * _USUAL_SECONDS}s")
    cluster.run(pods.pod("one", pods.container(resource)))
    cluster.await_pod("one", _is_refused)

    start = time.monotonic()
    make_plugin("a").join()
    _await_devices(node, resource, 1)
    _patch_status(cluster, node, resource, 1)
    cluster.await_pod("one", pods.running)

    assert time.monotonic() - start < _USUAL_SECONDS / 2


def test_a_patch_that_is_not_true_is_corrected(
    cluster: Cluster, kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """The kubelet writes what it knows itself at its next report."""
    make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)

    _patch_status(cluster, cluster.nodes["node-1"], resource, 7)

    kubelet.await_resource(resource, lambda it: it == Resource(capacity=1, allocatable=1))


def test_lowered_allocatable_is_seen_by_the_scheduler_at_once(
    cluster: Cluster, make_plugin: MakePlugin, resource: str
) -> None:
    """A pod that is created after the patch does not get the slot that the patch took away."""
    node = cluster.nodes["node-1"]
    make_plugin("a").join()
    cluster.await_node(node.name, lambda it: it["status"]["allocatable"].get(resource) == "1")
    node.restart_kubelet(nodeStatusUpdateFrequency=f"{10 * _USUAL_SECONDS}s")
    _patch_status(cluster, node, resource, 0)

    cluster.run(pods.pod("one", pods.container(resource)))
    refused = cluster.await_pod("one", _is_refused)
    assert "Insufficient" in pods.condition(refused, "PodScheduled")["message"]

    start = time.monotonic()
    _patch_status(cluster, node, resource, 1)
    cluster.await_pod("one", lambda pod: bool(pod["spec"].get("nodeName")))
    assert time.monotonic() - start < 5


def test_a_node_that_is_added_takes_pods(cluster: Cluster) -> None:
    """A third node joins the running cluster, with a kubelet and a runtime of its own."""
    node = cluster.add_node()

    cluster.run(
        pods.pod("one", pods.container(), nodeSelector={"kubernetes.io/hostname": node.name})
    )
    pod = cluster.await_pod("one", pods.running)

    assert pod["spec"]["nodeName"] == node.name


def test_pods_run_on_while_there_is_no_api_server(
    cluster: Cluster, kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """What happens to a plugin meanwhile is in the node object once the API server is back."""
    plugin = make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)
    kubelet.run(pods.pod("one", pods.container(resource)))
    kubelet.await_pod("one", pods.running)

    cluster.stop_api_server()
    plugin.change({"a": HEALTHY, "b": HEALTHY})
    _await_devices(cluster.nodes["node-1"], resource, 2)
    cluster.start_api_server()

    kubelet.await_resource(resource, lambda it: it.allocatable == 2)
    kubelet.await_pod("one", pods.running)
