"""The messages of the kubelet's device-plugin and PodResources APIs, made at run time.

Only names and numbers are needed to speak to a kubelet, so this table replaces generated code and
its ties to one protobuf release. The pool is private: whoever else describes ``v1beta1`` in the
same process is not disturbed.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_DEVICE_PLUGIN = """
RegisterRequest version:string endpoint:string resource_name:string options:DevicePluginOptions
DevicePluginOptions pre_start_required:bool get_preferred_allocation_available:bool
Empty
ListAndWatchResponse devices:Device*
Device ID:string health:string topology:TopologyInfo
TopologyInfo nodes:NUMANode*
NUMANode ID:int64
PreferredAllocationRequest container_requests:ContainerPreferredAllocationRequest*
ContainerPreferredAllocationRequest available:string* must_include:string* allocation_size:int32
PreferredAllocationResponse container_responses:ContainerPreferredAllocationResponse*
ContainerPreferredAllocationResponse device_ids:string*
AllocateRequest container_requests:ContainerAllocateRequest*
ContainerAllocateRequest device_ids:string*
AllocateResponse container_responses:ContainerAllocateResponse*
ContainerAllocateResponse envs:Entry* mounts:Mount* devices:DeviceSpec* annotations:Entry* cdi_devices:CDIDevice*
Entry key:string value:string
Mount container_path:string host_path:string read_only:bool
DeviceSpec container_path:string host_path:string permissions:string
CDIDevice name:string
PreStartContainerRequest device_ids:string*
PreStartContainerResponse
"""  # noqa: E501 - one message, one line; a map is on the wire a list of entries

_POD_RESOURCES = """
ListPodResourcesRequest
ListPodResourcesResponse pod_resources:PodResources*
PodResources name:string namespace:string containers:ContainerResources*
ContainerResources name:string devices:ContainerDevices* cpu_ids:int64*
ContainerDevices resource_name:string device_ids:string*
AllocatableResourcesRequest
AllocatableResourcesResponse devices:ContainerDevices*
GetPodResourcesRequest pod_name:string pod_namespace:string
GetPodResourcesResponse pod_resources:PodResources
"""

_REGISTRATION = """
InfoRequest
PluginInfo type:string name:string endpoint:string supported_versions:string*
RegistrationStatus plugin_registered:bool error:string
RegistrationStatusResponse
"""

_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _FIELD.TYPE_BOOL,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "string": _FIELD.TYPE_STRING,
}


class Package:
    """The messages of one protobuf package, as attributes: ``package.Device(ID="a")``."""

    def __init__(self, name: str, table: str) -> None:
        self.name = name
        self._pool = descriptor_pool.DescriptorPool()
        file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package=name)
        file.syntax = "proto3"
        for line in table.strip().splitlines():
            message, *fields = line.split()
            described = file.message_type.add(name=message)
            for number, field in enumerate(fields, 1):
                _describe(described.field.add(number=number), field, name)
        self._pool.Add(file)

    def __getattr__(self, message: str) -> Any:
        """Return the class of a message."""
        found = self._pool.FindMessageTypeByName(f"{self.name}.{message}")
        return message_factory.GetMessageClass(found)


def _describe(described: descriptor_pb2.FieldDescriptorProto, field: str, package: str) -> None:
    described.name, kind = field.removesuffix("*").split(":")
    described.label = _FIELD.LABEL_REPEATED if field.endswith("*") else _FIELD.LABEL_OPTIONAL
    described.type = _SCALARS.get(kind, _FIELD.TYPE_MESSAGE)
    if kind not in _SCALARS:
        described.type_name = f".{package}.{kind}"


device_plugin = Package("v1beta1", _DEVICE_PLUGIN)
pod_resources = Package("v1", _POD_RESOURCES)
registration = Package("pluginregistration", _REGISTRATION)
