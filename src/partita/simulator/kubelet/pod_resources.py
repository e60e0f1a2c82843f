"""The PodResources API of a simulated kubelet, version ``v1``."""

import asyncio
from collections.abc import Callable

import grpc

from partita.simulator.kubelet.checkpoint import NO_NUMA_NODE
from partita.simulator.kubelet.device_manager import DeviceManager
from partita.simulator.kubelet.pods import Container, Pod
from partita.wire import methods
from partita.wire import pod_resources as v1
from partita.wire.pod_resources import PodResourcesLister

__all__ = ["PodResources"]

_CALLS_PER_SECOND = 100
_CALLS_AT_ONCE = 10

FindPod = Callable[[str, str], Pod | None]


class PodResources:
    """Tells monitors of pods and devices.

    All clients together have 100 calls a second, 10 at once. ``find`` returns a pod by namespace
    and name, ended ones included; ``changed`` is called when something was let go.
    """

    def __init__(
        self, devices: DeviceManager, *, find: FindPod, changed: Callable[[], None]
    ) -> None:
        self._devices = devices
        self._find = find
        self._changed = changed
        self._calls_left = float(_CALLS_AT_ONCE)
        self._counted_at = asyncio.get_running_loop().time()

    def service(self) -> grpc.GenericRpcHandler:
        """Return the service."""
        lister = PodResourcesLister
        return methods.service(
            lister.List.by(self._list),
            lister.GetAllocatableResources.by(self._allocatable),
            lister.Get.by(self._get),
        )

    async def _list(
        self,
        _: v1.ListPodResourcesRequest,
        context: "methods.Context[v1.ListPodResourcesRequest, v1.ListPodResourcesResponse]",
    ) -> v1.ListPodResourcesResponse:
        if not self._may_call():
            await _reject(context)
        pods = [self._pod(pod) for pod in self._devices.list_pods()]
        self._changed()
        return v1.ListPodResourcesResponse(pod_resources=pods)

    async def _allocatable(
        self,
        _: v1.AllocatableResourcesRequest,
        context: "methods.Context[v1.AllocatableResourcesRequest, v1.AllocatableResourcesResponse]",
    ) -> v1.AllocatableResourcesResponse:
        if not self._may_call():
            await _reject(context)
        devices = [
            _entry(resource, device.device_id, node)
            for resource, listed in self._devices.allocatable().items()
            for device in listed
            for node in device.numa_nodes or (NO_NUMA_NODE,)
        ]
        return v1.AllocatableResourcesResponse(devices=devices)

    async def _get(
        self,
        request: v1.GetPodResourcesRequest,
        context: "methods.Context[v1.GetPodResourcesRequest, v1.GetPodResourcesResponse]",
    ) -> v1.GetPodResourcesResponse:
        if not self._may_call():
            await _reject(context)
        pod = self._find(request.pod_namespace, request.pod_name)
        if pod is None:
            text = f"pod {request.pod_name} in namespace {request.pod_namespace} not found"
            await context.abort(grpc.StatusCode.UNKNOWN, text)
        return v1.GetPodResourcesResponse(pod_resources=self._pod(pod))

    def _pod(self, pod: Pod) -> v1.PodResources:
        containers = [self._container(pod, one) for one in pod.containers if one.listed]
        return v1.PodResources(name=pod.name, namespace=pod.namespace, containers=containers)

    def _container(self, pod: Pod, container: Container) -> v1.ContainerResources:
        devices = [
            _entry(resource, device, node)
            for resource, entry in self._devices.held(pod.uid, container.name).items()
            for node, listed in entry.by_node.items()
            for device in listed
        ]
        return v1.ContainerResources(name=container.name, devices=devices)

    def _may_call(self) -> bool:
        now = asyncio.get_running_loop().time()
        refilled = self._calls_left + (now - self._counted_at) * _CALLS_PER_SECOND
        self._calls_left, self._counted_at = min(refilled, _CALLS_AT_ONCE), now
        if self._calls_left < 1:
            return False
        self._calls_left -= 1
        return True


async def _reject(context: "methods.Context[methods.Request, methods.Response]") -> None:
    await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")


def _entry(resource: str, device: str, node: int) -> v1.ContainerDevices:
    """Return the entry of one device and one NUMA node: the kubelet makes one for each."""
    known = node != NO_NUMA_NODE
    topology = v1.TopologyInfo(nodes=[v1.NUMANode(ID=node)]) if known else None
    return v1.ContainerDevices(resource_name=resource, device_ids=[device], topology=topology)
