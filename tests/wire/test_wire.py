"""The messages and methods that the kubelet knows, by the numbers that count on the wire."""

import pytest
from google.protobuf import descriptor_pool

from partita.wire import device_plugin, plugin_registration, pod_resources

# Message → its fields in the order of their numbers; "-" is a number that is not in use.
_DEVICE_PLUGIN = {
    "RegisterRequest": "version endpoint resource_name options",
    "DevicePluginOptions": "pre_start_required get_preferred_allocation_available",
    "Empty": "",
    "ListAndWatchResponse": "devices",
    "Device": "ID health topology",
    "TopologyInfo": "nodes",
    "NUMANode": "ID",
    "PreferredAllocationRequest": "container_requests",
    "ContainerPreferredAllocationRequest": (
        "available_deviceIDs must_include_deviceIDs allocation_size"
    ),
    "PreferredAllocationResponse": "container_responses",
    "ContainerPreferredAllocationResponse": "deviceIDs",
    "AllocateRequest": "container_requests",
    "ContainerAllocateRequest": "devices_ids",
    "AllocateResponse": "container_responses",
    "ContainerAllocateResponse": "envs mounts devices annotations cdi_devices",
    "Mount": "container_path host_path read_only",
    "DeviceSpec": "container_path host_path permissions",
    "CDIDevice": "name",
    "PreStartContainerRequest": "devices_ids",
    "PreStartContainerResponse": "",
}
_POD_RESOURCES = {
    "ListPodResourcesRequest": "",
    "ListPodResourcesResponse": "pod_resources",
    "PodResources": "name namespace containers",
    "ContainerResources": "name devices cpu_ids memory dynamic_resources",
    "ContainerDevices": "resource_name device_ids topology",
    "ContainerMemory": "memory_type size topology",
    "TopologyInfo": "nodes",
    "NUMANode": "ID",
    "DynamicResource": "- claim_name claim_namespace claim_resources",
    "ClaimResource": "cdi_devices driver_name pool_name device_name share_id",
    "CDIDevice": "name",
    "AllocatableResourcesRequest": "",
    "AllocatableResourcesResponse": "devices cpu_ids memory",
    "GetPodResourcesRequest": "pod_name pod_namespace",
    "GetPodResourcesResponse": "pod_resources",
}
_PLUGIN_REGISTRATION = {
    "InfoRequest": "",
    "PluginInfo": "type name endpoint supported_versions",
    "RegistrationStatus": "plugin_registered error",
    "RegistrationStatusResponse": "",
}


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (device_plugin, _DEVICE_PLUGIN),
        (pod_resources, _POD_RESOURCES),
        (plugin_registration, _PLUGIN_REGISTRATION),
    ],
    ids=["device plugin", "PodResources", "plugin registration"],
)
def test_fields_have_the_numbers_of_kubernetes(module: object, expected: dict[str, str]) -> None:
    """Names and numbers, message by message, and no message that is not Kubernetes'."""
    messages = {
        name: value
        for name in module.__all__
        if hasattr(value := getattr(module, name), "DESCRIPTOR")
    }
    found = {
        name: {field.number: field.name for field in message.DESCRIPTOR.fields}
        for name, message in messages.items()
    }

    assert found == {
        name: {number: field for number, field in enumerate(fields.split(), 1) if field != "-"}
        for name, fields in expected.items()
    }


def test_methods_have_the_names_of_kubernetes() -> None:
    """The packages are ``v1beta1``, ``v1`` and ``pluginregistration``, whatever the files say."""
    services = [
        device_plugin.Registration,
        device_plugin.DevicePlugin,
        pod_resources.PodResourcesLister,
        plugin_registration.Registration,
    ]
    assert {method.path for service in services for method in vars(service).values()} == {
        "/v1beta1.Registration/Register",
        "/v1beta1.DevicePlugin/GetDevicePluginOptions",
        "/v1beta1.DevicePlugin/ListAndWatch",
        "/v1beta1.DevicePlugin/GetPreferredAllocation",
        "/v1beta1.DevicePlugin/Allocate",
        "/v1beta1.DevicePlugin/PreStartContainer",
        "/v1.PodResourcesLister/List",
        "/v1.PodResourcesLister/GetAllocatableResources",
        "/v1.PodResourcesLister/Get",
        "/pluginregistration.Registration/GetInfo",
        "/pluginregistration.Registration/NotifyRegistrationStatus",
    }


def test_a_message_is_what_kubernetes_makes_of_it() -> None:
    """Bytes by hand: field 1 a text, field 2 a text, field 3 with a list of one number."""
    device = device_plugin.Device(
        ID="a",
        health="Healthy",
        topology=device_plugin.TopologyInfo(nodes=[device_plugin.NUMANode(ID=1)]),
    )
    assert device.SerializeToString() == b"\x0a\x01a\x12\x07Healthy\x1a\x04\x0a\x02\x08\x01"


def test_fields_of_a_newer_kubelet_are_skipped() -> None:
    """Field 4 of a pod is newer than what is known here."""
    pod = pod_resources.PodResources.FromString(b"\x0a\x01p\x20\x05")
    assert pod.name == "p"


def test_nobody_else_is_disturbed() -> None:
    """The pool of descriptors that all libraries share knows nothing of these messages."""
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("v1beta1.Device")
