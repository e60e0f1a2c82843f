"""What a kubelet asks a plugin for a pod, and what of the answer reaches the container."""

import json
from collections.abc import Callable

from tests.kubernetes import pods
from tests.kubernetes.kubelet_under_test import KubeletUnderTest
from tests.kubernetes.plugin import Plugin

from partita.wire import device_plugin as v1beta1

MakePlugin = Callable[..., Plugin]


def test_every_container_has_its_own_call(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """Allocate is called once per container, always with exactly one container request."""
    plugin = make_plugin("a", "b", "c").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 3)

    containers = [
        pods.container(resource, name="main"),
        pods.container(resource, 2, name="other"),
    ]
    kubelet.run(pods.pod("one", *containers))
    kubelet.await_pod("one", pods.running)

    requests = [list(request.container_requests) for request in plugin.named("Allocate")]
    assert [len(request) for request in requests] == [1, 1]
    assert [len(request[0].devices_ids) for request in requests] == [1, 2]


def test_an_init_container_leaves_its_devices_to_the_others(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """One device is enough for an init container and a container that each ask for one."""
    plugin = make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)

    first = pods.container(resource, name="first", command="true")
    kubelet.run(pods.pod("one", pods.container(resource), first=first))
    kubelet.await_pod("one", pods.running)

    asked = [list(call.container_requests[0].devices_ids) for call in plugin.named("Allocate")]
    assert asked == [["a"], ["a"]]


def test_the_container_gets_what_the_plugin_answers(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """Environment, device nodes and CDI devices of the answer are in the container."""
    cdi = {
        "cdiVersion": "0.5.0",
        "kind": "example.com/slice",
        "devices": [
            {
                "name": "a",
                "containerEdits": {
                    "env": ["FROM_CDI=a"],
                    "deviceNodes": [{"path": "/dev/from-cdi", "hostPath": "/dev/zero"}],
                },
            }
        ],
    }
    (kubelet.folders.cdi / "example.json").write_text(json.dumps(cdi), encoding="utf-8")
    node = v1beta1.DeviceSpec(
        container_path="/dev/from-plugin", host_path="/dev/null", permissions="rw"
    )
    answer = v1beta1.ContainerAllocateResponse(
        envs={"FROM_PLUGIN": "a"},
        devices=[node],
        cdi_devices=[v1beta1.CDIDevice(name="example.com/slice=a")],
    )
    make_plugin("a", allocate=lambda _: answer).join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)

    kubelet.run(pods.pod("one", pods.container(resource)))
    found = kubelet.look_inside("one")

    expected = {"FROM_PLUGIN": "a", "FROM_CDI": "a"}
    assert {key: found.environment.get(key) for key in expected} == expected
    assert found.devices >= {"/dev/from-plugin", "/dev/from-cdi"}


def test_a_failed_allocation_fails_the_pod_for_good(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """The pod ends as UnexpectedAdmissionError with the plugin's words, and is not tried again."""

    def refuse(_: list[str]) -> object:
        raise LookupError("the slice has just gone")

    plugin = make_plugin("a", allocate=refuse).join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)

    kubelet.run(pods.pod("one", pods.container(resource), restartPolicy="Always"))
    pod = kubelet.await_pod("one", pods.failed)

    assert pod["status"]["reason"] == "UnexpectedAdmissionError"
    assert "the slice has just gone" in pod["status"]["message"]
    assert len(plugin.named("Allocate")) == 1


def test_a_pod_bound_to_a_slice_that_has_gone_fails(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """A pod that comes after the last device fails for good; the plugin is not even asked."""
    plugin = make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)
    plugin.change({})
    kubelet.await_resource(resource, lambda it: it.allocatable == 0)

    kubelet.run(pods.pod("one", pods.container(resource)))
    pod = kubelet.await_pod("one", pods.failed)

    assert pod["status"]["reason"] == "UnexpectedAdmissionError"
    assert "no healthy devices present" in pod["status"]["message"]
    assert plugin.named("Allocate") == []


def test_a_pod_bound_to_a_slice_that_is_taken_fails(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """Who binds more pods than there are devices has them failed, not queued."""
    make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)
    kubelet.run(pods.pod("one", pods.container(resource)))
    kubelet.await_pod("one", pods.running)

    kubelet.run(pods.pod("two", pods.container(resource)))
    pod = kubelet.await_pod("two", pods.failed)

    assert pod["status"]["reason"] == "UnexpectedAdmissionError"
    assert "Requested: 1, Available: 0" in pod["status"]["message"]


def test_a_pod_keeps_its_device_over_a_restart(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """After a restart of kubelet and plugin a second pod gets what the first does not hold."""
    plugin = make_plugin("a", "b").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 2)
    kubelet.run(pods.pod("one", pods.container(resource)))
    kubelet.await_pod("one", pods.running)

    kubelet.stop()
    kubelet.start()
    kubelet.await_resource(resource, lambda it: it.allocatable == 0)
    plugin.leave()
    plugin.join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 2)
    kubelet.run(pods.pod("two", pods.container(resource)))
    kubelet.await_pod("two", pods.running)

    kubelet.await_pod("one", pods.running)
    asked = [call.container_requests[0].devices_ids[0] for call in plugin.named("Allocate")]
    assert sorted(asked) == ["a", "b"]


def test_a_preference_is_followed(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """With the option set the kubelet asks first which of the free devices the plugin prefers."""
    plugin = make_plugin("a", "b", "c", get_preferred_allocation_available=True).join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 3)

    kubelet.run(pods.pod("one", pods.container(resource, 2)))
    kubelet.await_pod("one", pods.running)

    (preferred,) = plugin.named("GetPreferredAllocation")
    (request,) = plugin.named("Allocate")
    assert sorted(preferred.container_requests[0].available_deviceIDs) == ["a", "b", "c"]
    assert sorted(request.container_requests[0].devices_ids) == ["b", "c"]


def test_a_container_start_is_announced(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """With the option set PreStartContainer is called with the devices of the container."""
    plugin = make_plugin("a", pre_start_required=True).join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)

    kubelet.run(pods.pod("one", pods.container(resource)))
    kubelet.await_pod("one", pods.running)

    (request,) = plugin.named("PreStartContainer")
    assert list(request.devices_ids) == ["a"]


def test_a_control_group_names_pod_and_container(
    kubelet: KubeletUnderTest,
) -> None:
    """A container without limits is in ``kubepods/besteffort/pod<uid>/<container id>``."""
    kubelet.run(pods.pod("one", pods.container()))
    group = kubelet.look_inside("one").control_group

    pod = kubelet.await_pod("one", pods.running)
    (status,) = pod["status"]["containerStatuses"]
    identifier = status["containerID"].removeprefix("containerd://")
    assert group == f"/kubepods/besteffort/pod{pod['metadata']['uid']}/{identifier}"
