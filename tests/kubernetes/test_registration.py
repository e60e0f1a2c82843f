"""How a device plugin and a kubelet find each other."""

from collections.abc import Callable

import grpc
import pytest
from testbed import programs
from tests.kubernetes import pods
from tests.kubernetes.kubelet_under_test import KubeletUnderTest
from tests.kubernetes.plugin import Announcement, Plugin

MakePlugin = Callable[..., Plugin]

several_plugins = pytest.mark.skipif(
    programs.version() < "1.37",
    reason="before 1.37 a kubelet knows one plugin per resource, and any socket may register again",
)


def test_the_kubelet_asks_for_options_before_register_returns(make_plugin: MakePlugin) -> None:
    """Inside Register the kubelet calls back; who cannot answer meanwhile waits for ever."""
    plugin = make_plugin("a").join()

    called = [name for name, _ in plugin.calls if name != "ListAndWatch"]
    assert called == ["GetDevicePluginOptions", "registered"]


def test_a_plugin_must_serve_before_it_registers(make_plugin: MakePlugin) -> None:
    """Register tries the socket it names for 10 s, and fails when nobody answers."""
    with pytest.raises(grpc.RpcError) as error:
        make_plugin("a").register()

    assert "failed to dial device plugin" in str(error.value)


def test_the_options_of_the_request_do_not_count(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """Only the answer of GetDevicePluginOptions decides what is called later."""
    plugin = make_plugin("a")
    plugin.serve()
    plugin.register(options={"pre_start_required": True})
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)

    kubelet.run(pods.pod("one", pods.container(resource)))
    kubelet.await_pod("one", pods.running)

    assert plugin.named("PreStartContainer") == []


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"version": "v1"}, "version"),
        ({"resource_name": "slice"}, "invalid"),
        ({"resource_name": "requests.kubernetes.io/slice"}, "invalid"),
    ],
)
def test_register_refuses_what_it_cannot_use(
    make_plugin: MakePlugin, fields: dict[str, str], complaint: str
) -> None:
    """Another API version, and names that are not of an extended resource, are errors."""
    plugin = make_plugin("a")
    plugin.serve()

    with pytest.raises(grpc.RpcError) as error:
        plugin.register(**fields)

    assert complaint in str(error.value)


@several_plugins
def test_one_socket_registers_once(make_plugin: MakePlugin) -> None:
    """While the kubelet still listens to a socket it refuses to register it again."""
    plugin = make_plugin("a").join()

    with pytest.raises(grpc.RpcError) as error:
        plugin.register()

    assert "already connected" in str(error.value)


@several_plugins
def test_a_second_socket_takes_over(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """A new plugin of the same resource replaces the list of the old, which may then leave.

    A kubelet before 1.37 has no healthy device left when the old one leaves.
    """
    old = make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)

    make_plugin("a", "b").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 2)
    old.leave()

    kubelet.run(pods.pod("one", pods.container(resource, 2)))
    kubelet.await_pod("one", pods.running)


def test_a_restart_of_the_kubelet_removes_every_socket(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """The kubelet empties its folder and forgets plugins, which must serve and register again."""
    plugin = make_plugin("a").join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)

    kubelet.stop()
    assert plugin.socket.exists()
    kubelet.start()
    assert not plugin.socket.exists()
    kubelet.await_resource(resource, lambda it: it.allocatable == 0)

    plugin.leave()
    plugin.join()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)


def test_a_plugin_can_wait_to_be_asked(
    kubelet: KubeletUnderTest, make_plugin: MakePlugin, resource: str
) -> None:
    """The plugin registry serves device plugins too; after a restart the kubelet asks again."""
    plugin = make_plugin("a")
    plugin.socket = kubelet.folders.plugin_registry.parent / plugin.socket.name
    plugin.serve()
    announcement = Announcement(kubelet.folders.plugin_registry, plugin)
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)
    assert announcement.accepted.wait(10)

    kubelet.stop()
    kubelet.start()
    kubelet.await_resource(resource, lambda it: it.allocatable == 1)
    assert plugin.socket.exists()

    announcement.withdraw()
    kubelet.await_resource(resource, lambda it: it.allocatable == 0)
