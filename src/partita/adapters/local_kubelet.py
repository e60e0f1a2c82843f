"""The kubelet of this node, asked over its PodResources socket, and its checkpoint file.

The kubelet answers 100 calls per second to all that ask, 10 at once, and refuses the others with
RESOURCE_EXHAUSTED (Kubernetes, ``pkg/kubelet/apis/podresources``).
"""

import asyncio
import logging
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import grpc
from google.protobuf.message import Message

from partita.config import device_checkpoint, untyped_parser
from partita.config.untyped import Untyped
from partita.errors import InputError, KubeletError
from partita.ports.kubelet import Holding, Remembered
from partita.wire import pod_resources
from partita.wire.methods import UnaryMethod

__all__ = ["LocalKubelet"]

_LOG = logging.getLogger(__name__)
_CHECKPOINT = "kubelet_internal_checkpoint"
_YOUNG_SECONDS = 1.0  # a file can change again within one tick of its clock and look the same
_PAUSES = (0.05, 0.2, 0.5)  # seconds before each further try of what was too much
_OPTIONS = (
    ("grpc.max_receive_message_length", 16 * 2**20),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),  # the kubelet comes back under the same path
)
_HINTS = {
    grpc.StatusCode.UNAVAILABLE: "check that the kubelet runs, and that the folder of {socket}"
    " is mounted from the node",
    grpc.StatusCode.DEADLINE_EXCEEDED: "the kubelet is busy or hangs; see its log",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "something on this node asks the kubelet all the time;"
    " find out which monitor it is",
    grpc.StatusCode.UNIMPLEMENTED: "a kubelet of Kubernetes 1.28 or later is needed",
}
_OTHER_HINT = "see the log of the kubelet"

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


@dataclass(frozen=True, slots=True)
class _Look:
    """What tells one checkpoint from the next without reading it."""

    inode: int
    changed_ns: int
    size: int


class LocalKubelet:
    """A ``ports.kubelet.Kubelet``; one connection is kept, and comes back by itself."""

    def __init__(self, pod_resources: Path, device_plugins: Path, *, seconds: float = 5.0) -> None:
        """Remember where to ask.

        Args:
            pod_resources: Socket, usually ``/var/lib/kubelet/pod-resources/kubelet.sock``.
            device_plugins: Folder, usually ``/var/lib/kubelet/device-plugins``.
            seconds: How long one answer may take.
        """
        self._socket = pod_resources
        self._checkpoint = device_plugins / _CHECKPOINT
        self._seconds = seconds
        self._channel: grpc.aio.Channel | None = None
        self._read: tuple[_Look, tuple[Remembered, ...]] | None = None

    async def holdings(self) -> Sequence[Holding]:
        """Return the devices that active pods hold."""
        method = pod_resources.PodResourcesLister.List
        answer = await self._ask(method, pod_resources.ListPodResourcesRequest())
        return tuple(
            holding
            for pod in answer.pod_resources
            for container in pod.containers
            for holding in _holdings(pod, container)
        )

    async def held_by(self, namespace: str, pod: str) -> frozenset[str]:
        """Return the device IDs that one pod holds now; empty when there is no such pod."""
        method = pod_resources.PodResourcesLister.Get
        request = pod_resources.GetPodResourcesRequest(pod_name=pod, pod_namespace=namespace)
        try:
            answer = await self._ask(method, request)
        except KubeletError as error:
            if "not found" in error.message:  # the kubelet has no status code for it
                return frozenset()
            raise
        containers = answer.pod_resources.containers
        found = (one for c in containers for one in _holdings(answer.pod_resources, c))
        return frozenset(one.device_id for one in found)

    async def allocatable(self) -> Mapping[str, frozenset[str]]:
        """Return by resource the device IDs that the kubelet may give to pods, held or not."""
        method = pod_resources.PodResourcesLister.GetAllocatableResources
        answer = await self._ask(method, pod_resources.AllocatableResourcesRequest())
        found: dict[str, set[str]] = defaultdict(set)
        for devices in answer.devices:
            found[devices.resource_name].update(devices.device_ids)
        return {name: frozenset(device_ids) for name, device_ids in found.items()}

    async def remembered(self) -> Sequence[Remembered]:
        """Return the kubelet's checkpoint; empty when it has never written one.

        The kubelet replaces the file, so one that is old enough and looks the same is the same.
        """
        try:
            with self._checkpoint.open(encoding="utf-8") as file:
                look = _look(file.fileno())
                if self._read is not None and self._read[0] == look:
                    return self._read[1]
                text = file.read()
        except FileNotFoundError:
            return ()
        except (OSError, UnicodeDecodeError) as error:
            raise KubeletError(
                message=f"cannot read the kubelet's checkpoint: {error}",
                hint="the folder of the kubelet's device plugins must be mounted from the node",
            ) from error
        try:
            remembered = tuple(_remembered(text, str(self._checkpoint)))
        except InputError as error:
            raise KubeletError(
                message=f"the kubelet's checkpoint is not understood: {error.message}",
                hint="check that its version is supported; it is written anew when a pod starts",
            ) from error
        is_old = time.time_ns() - look.changed_ns > _YOUNG_SECONDS * 1e9
        self._read = (look, remembered) if is_old else None
        return remembered

    async def close(self) -> None:
        """End the connection."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _ask(self, method: UnaryMethod[Request, Response], request: Request) -> Response:
        for pause in (*_PAUSES, None):
            call: Awaitable[Response | None]
            try:
                call = method.on(self._connection())(request, timeout=self._seconds)
                return _understood(method.path, await call)
            except grpc.aio.AioRpcError as error:
                if pause is None or error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                    raise self._translated(method.path, error) from error
                _LOG.debug("%s was too much for the kubelet, again in %s s", method.path, pause)
                await asyncio.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _connection(self) -> grpc.aio.Channel:
        if self._channel is None:  # not before there is an event loop
            self._channel = grpc.aio.insecure_channel(f"unix:{self._socket}", options=_OPTIONS)
        return self._channel

    def _translated(self, path: str, error: grpc.aio.AioRpcError) -> KubeletError:
        said = f"the kubelet does not answer, {error.code().name}: {error.details() or path}"
        if error.code() is grpc.StatusCode.UNAVAILABLE:
            is_there = self._socket.is_socket()
            trouble = "nobody answers at" if is_there else "there is no socket of the kubelet at"
            said = f"{trouble}: {self._socket}"
        return KubeletError(
            message=" ".join(said.split()),
            hint=_HINTS.get(error.code(), _OTHER_HINT).format(socket=self._socket),
        )


def _look(file: int) -> _Look:
    found = os.fstat(file)
    return _Look(found.st_ino, found.st_mtime_ns, found.st_size)


def _understood(path: str, answer: Response | None) -> Response:
    """Return the answer; gRPC gives None for bytes that are no such message."""
    if answer is None:
        message = f"the kubelet's answer is not understood: {path}"
        raise KubeletError(message=message, hint="check that its version is supported")
    return answer


def _holdings(
    pod: pod_resources.PodResources, container: pod_resources.ContainerResources
) -> Iterator[Holding]:
    of_plugins = (
        (devices.resource_name, name, False)
        for devices in container.devices
        for name in devices.device_ids
    )
    of_claims = (
        (claimed.driver_name, f"{claimed.pool_name}/{claimed.device_name}", True)
        for claim in container.dynamic_resources
        for claimed in claim.claim_resources
    )
    for resource, device_id, claimed in (*of_plugins, *of_claims):
        yield Holding(
            namespace=pod.namespace,
            pod=pod.name,
            container=container.name,
            resource=resource,
            device_id=device_id,
            claimed=claimed,
        )


def _remembered(text: str, path: str) -> Iterator[Remembered]:
    """Yield what a checkpoint says; device IDs of any vendor are taken as they are."""
    (document,) = untyped_parser.parse(text, path=path) or (Untyped(None, path),)
    for _resource, raw in device_checkpoint.entries(document):
        entry = device_checkpoint.read_entry(raw, Untyped.text)
        for device_id in entry.device_ids:
            yield Remembered(
                pod_uid=entry.pod_uid,
                container=entry.container,
                resource=entry.resource,
                device_id=device_id,
            )
