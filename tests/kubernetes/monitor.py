"""What a monitor on the node can find out of a kubelet."""

import json
from typing import Any

from tests.kubernetes import plugin
from tests.kubernetes.kubelet_under_test import KubeletUnderTest

from partita.wire import pod_resources as v1


def listed(kubelet: KubeletUnderTest) -> dict[str, set[str]]:
    """Return by pod the devices that it holds, as List tells."""
    answer = plugin.call(
        kubelet.folders.pod_resources,
        "/v1.PodResourcesLister/List",
        v1.ListPodResourcesRequest(),
        v1.ListPodResourcesResponse,
    )
    return {
        pod.name: {
            name
            for container in pod.containers
            for devices in container.devices
            for name in devices.device_ids
        }
        for pod in answer.pod_resources
    }


def allocatable(kubelet: KubeletUnderTest, resource: str) -> set[str]:
    """Return the devices of a resource, as GetAllocatableResources tells."""
    answer = plugin.call(
        kubelet.folders.pod_resources,
        "/v1.PodResourcesLister/GetAllocatableResources",
        v1.AllocatableResourcesRequest(),
        v1.AllocatableResourcesResponse,
    )
    ours = (one for one in answer.devices if one.resource_name == resource)
    return {name for devices in ours for name in devices.device_ids}


def registered(kubelet: KubeletUnderTest, resource: str) -> set[str]:
    """Return the healthy devices of a resource, as the checkpoint tells."""
    return set(_checkpoint(kubelet)["RegisteredDevices"].get(resource, ()))


def remembered(kubelet: KubeletUnderTest, resource: str) -> set[str]:
    """Return the devices of a resource that some container was given, as the checkpoint tells."""
    return {
        device
        for entry in _checkpoint(kubelet)["PodDeviceEntries"] or ()
        if entry["ResourceName"] == resource
        for devices in entry["DeviceIDs"].values()
        for device in devices
    }


def _checkpoint(kubelet: KubeletUnderTest) -> dict[str, Any]:
    path = kubelet.folders.device_plugins / "kubelet_internal_checkpoint"
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["Data"]
    return data
