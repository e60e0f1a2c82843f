"""A device plugin as small as it can be, which remembers how the kubelet called it."""

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from partita.wire import device_plugin as v1beta1
from partita.wire import plugin_registration as registration

_NUMBERS = itertools.count(1)
_SECONDS = 15  # Register alone may take 10

HEALTHY = "Healthy"
UNHEALTHY = "Unhealthy"


def environment(**values: str) -> Any:
    """Return the answer to Allocate that sets environment variables."""
    return v1beta1.ContainerAllocateResponse(envs=values)


def _names_of_devices(devices: list[str]) -> Any:
    return environment(DEVICES=",".join(devices))


class Plugin:
    """Serves devices of one resource; ``calls`` are the kubelet's calls in order."""

    def __init__(
        self,
        folder: Path,
        resource: str,
        devices: Mapping[str, str],
        *,
        allocate: Callable[[list[str]], Any] = _names_of_devices,
        **options: bool,
    ) -> None:
        self.socket = folder / f"plugin-{next(_NUMBERS)}.sock"
        self.kubelet = folder / "kubelet.sock"
        self.resource = resource
        self.calls: list[tuple[str, Any]] = []
        self.options = options
        self.allocate = allocate
        self._devices = dict(devices)
        self._changed = threading.Condition()
        self._version = 0  # of the list of devices; 0 while not serving
        self._server: grpc.Server | None = None

    def serve(self) -> None:
        """Listen on the plugin's socket."""
        self._version = 1
        self._server = grpc.server(ThreadPoolExecutor(8))
        one, many = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        methods = {
            "GetDevicePluginOptions": one(self._get_options, v1beta1.Empty.FromString, _encode),
            "ListAndWatch": many(self._list_and_watch, v1beta1.Empty.FromString, _encode),
            "GetPreferredAllocation": one(
                self._prefer, v1beta1.PreferredAllocationRequest.FromString, _encode
            ),
            "Allocate": one(self._allocate, v1beta1.AllocateRequest.FromString, _encode),
            "PreStartContainer": one(
                self._pre_start, v1beta1.PreStartContainerRequest.FromString, _encode
            ),
        }
        handler = grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", methods)
        self._server.add_generic_rpc_handlers([handler])
        self._server.add_insecure_port(f"unix://{self.socket}")
        self._server.start()

    def register(self, **fields: Any) -> None:
        """Tell the kubelet of the plugin; fields replace those of the usual request."""
        usual = {"version": "v1beta1", "endpoint": self.socket.name, "resource_name": self.resource}
        request = v1beta1.RegisterRequest(**(usual | fields))
        call(self.kubelet, "/v1beta1.Registration/Register", request, v1beta1.Empty)
        self.calls.append(("registered", None))

    def join(self) -> "Plugin":
        """Serve and register."""
        self.serve()
        self.register()
        return self

    def change(self, devices: Mapping[str, str]) -> None:
        """Send another list of devices, each with its health."""
        with self._changed:
            self._devices = dict(devices)
            self._version += 1
            self._changed.notify_all()

    def leave(self) -> None:
        """Stop serving, as a plugin does whose process ends."""
        if self._server is not None:
            with self._changed:
                self._version = 0
                self._changed.notify_all()
            self._server.stop(None).wait()
            self._server = None

    def named(self, method: str) -> list[Any]:
        """Return the requests of all calls of one method."""
        return [request for name, request in self.calls if name == method]

    def _get_options(self, request: Any, _: grpc.ServicerContext) -> Any:
        self.calls.append(("GetDevicePluginOptions", request))
        return v1beta1.DevicePluginOptions(**self.options)

    def _list_and_watch(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        self.calls.append(("ListAndWatch", request))
        context.add_callback(self._wake)
        sent = 0
        while (sent := self._await_version_after(sent, context)) and context.is_active():
            listed = self._devices.items()
            devices = [v1beta1.Device(ID=name, health=health) for name, health in listed]
            yield v1beta1.ListAndWatchResponse(devices=devices)

    def _await_version_after(self, sent: int, context: grpc.ServicerContext) -> int:
        """Wait for a list that was not sent yet; 0 when the plugin leaves."""
        with self._changed:
            self._changed.wait_for(lambda: sent != self._version or not context.is_active())
            return self._version

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _prefer(self, request: Any, _: grpc.ServicerContext) -> Any:
        """Prefer the last devices of those that are there."""
        self.calls.append(("GetPreferredAllocation", request))
        answers = [
            v1beta1.ContainerPreferredAllocationResponse(
                deviceIDs=sorted(one.available_deviceIDs)[-one.allocation_size :]
            )
            for one in request.container_requests
        ]
        return v1beta1.PreferredAllocationResponse(container_responses=answers)

    def _allocate(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.calls.append(("Allocate", request))
        try:
            answers = [self.allocate(list(one.devices_ids)) for one in request.container_requests]
        except LookupError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        return v1beta1.AllocateResponse(container_responses=answers)

    def _pre_start(self, request: Any, _: grpc.ServicerContext) -> Any:
        self.calls.append(("PreStartContainer", request))
        return v1beta1.PreStartContainerResponse()


class Announcement:
    """Announces a plugin through the plugin registry, where the kubelet asks by itself."""

    def __init__(self, registry: Path, plugin: Plugin) -> None:
        self._plugin = plugin
        self.accepted = threading.Event()
        self._server = grpc.server(ThreadPoolExecutor(2))
        one = grpc.unary_unary_rpc_method_handler
        methods = {
            "GetInfo": one(self._info, registration.InfoRequest.FromString, _encode),
            "NotifyRegistrationStatus": one(
                self._status, registration.RegistrationStatus.FromString, _encode
            ),
        }
        handler = grpc.method_handlers_generic_handler("pluginregistration.Registration", methods)
        self._server.add_generic_rpc_handlers([handler])
        self.socket = registry / f"{plugin.socket.stem}-reg.sock"
        self._server.add_insecure_port(f"unix://{self.socket}")
        self._server.start()

    def withdraw(self) -> None:
        """Remove the announcement."""
        self._server.stop(None).wait()
        self.socket.unlink(missing_ok=True)

    def _info(self, _: Any, __: grpc.ServicerContext) -> Any:
        return registration.PluginInfo(
            type="DevicePlugin",
            name=self._plugin.resource,
            endpoint=str(self._plugin.socket),
            supported_versions=["v1beta1"],
        )

    def _status(self, request: Any, _: grpc.ServicerContext) -> Any:
        if request.plugin_registered:
            self.accepted.set()
        return registration.RegistrationStatusResponse()


def call(socket: Path, name: str, request: Any, answer: Any) -> Any:
    """Call one method of a server on a Unix socket."""
    with grpc.insecure_channel(f"unix://{socket}") as channel:
        return method(channel, name, answer)(request, timeout=_SECONDS, wait_for_ready=True)


def method(channel: grpc.Channel, name: str, answer: Any) -> Any:
    """Return one method of a server as something to call."""
    return channel.unary_unary(
        name, request_serializer=_encode, response_deserializer=answer.FromString
    )


def _encode(message: Any) -> bytes:
    return bytes(message.SerializeToString())
