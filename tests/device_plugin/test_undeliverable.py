"""A device that no container could use: shown as ill, refused, and given again once it is there."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from tests.device_plugin.kubelet_side import KubeletSide
from tests.device_plugin.serving import (
    GPU,
    HEALTHY,
    MIG,
    PACE,
    UNHEALTHY,
    ManualClock,
    heard,
    offer,
    shared,
)

from partita.adapters.device_plugin import node_files
from partita.adapters.device_plugin.delivery import Delivery
from partita.adapters.device_plugin.node_files import NodeRoots
from partita.adapters.device_plugin.server import DevicePluginServer, Hooks
from partita.config.serving_options import DeviceListStrategy, ServingOptions
from partita.ports.slice_server import REFUSED_UNDELIVERABLE, Offer

_CDI = ServingOptions(device_list_strategies=(DeviceListStrategy.CDI_CRI,))
_NODES = ServingOptions(pass_device_specs=True)


def _delivery(folder: Path, options: ServingOptions) -> Delivery:
    roots = NodeRoots(dev=folder / "dev", proc=folder / "proc", driver=folder, node=folder)
    return Delivery(options, roots, cdi_folder=folder / "cdi")


@contextlib.asynccontextmanager
async def _serving(
    folder: Path, delivery: Delivery, *offers: Offer
) -> AsyncIterator[tuple[DevicePluginServer, KubeletSide]]:
    side = KubeletSide(folder)
    hooks = Hooks(on_change=side.moved.send, on_promise=side.moved.send)
    server = DevicePluginServer(
        folder, ManualClock(), lambda _: (), delivery, hooks=hooks, pace=PACE
    )
    await side.start(wipe=False)
    await server.start()
    await server.offer(offers)
    try:
        await side.until(lambda: heard(server) and len(side.lists) == len(offers))
        yield server, side
    finally:
        await server.close()
        await side.stop()


def _make_node(folder: Path) -> None:
    (folder / "dev").mkdir()
    (folder / "dev/nvidia0").touch()


@pytest.mark.parametrize("options", [_CDI, _NODES])
async def test_a_device_without_its_node_is_ill_until_the_node_is_there(
    folder: Path, options: ServingOptions
) -> None:
    """The next offer looks again; until then a container that gets it is refused, with the why."""
    async with _serving(folder, _delivery(folder, options), shared("GPU-a", 2)) as (
        server,
        kubelet,
    ):
        why = f"its device nodes are not there: there is no {folder}/dev/nvidia0"
        assert server.state().undeliverable == {"GPU-a": why}
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await kubelet.allocate(GPU, "GPU-a::0")
        assert error.value.details() == f"{REFUSED_UNDELIVERABLE}: GPU-a: {why}"
        assert server.state().promised == {}

        _make_node(folder)
        await server.offer([shared("GPU-a", 2)])
        await kubelet.until(lambda: len(kubelet.lists[GPU]) == 2)
        await kubelet.allocate(GPU, "GPU-a::0")

        assert server.state().undeliverable == {}
    slots = ("GPU-a::0", "GPU-a::1")
    assert kubelet.lists[GPU] == [dict.fromkeys(slots, UNHEALTHY), dict.fromkeys(slots, HEALTHY)]


async def test_only_the_device_that_lacks_something_is_ill(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others of the same resource are given; what nobody may use was ill before."""
    monkeypatch.setattr(node_files, "_CONTROL", ())
    _make_node(folder)
    offers = [offer("a"), offer("m", unusable=["n"], resource=MIG)]
    async with _serving(folder, _delivery(folder, _NODES), *offers) as (_, kubelet):
        answer = await kubelet.allocate(MIG, "m")

    assert kubelet.lists == {GPU: [{"a": HEALTHY}], MIG: [{"m": HEALTHY, "n": UNHEALTHY}]}
    assert [one.host_path for one in answer.devices] == ["/dev/nvidia0"]


@pytest.mark.parametrize("strategy", [DeviceListStrategy.ENVVAR, DeviceListStrategy.VOLUME_MOUNTS])
async def test_what_needs_no_nodes_is_always_delivered(
    folder: Path, strategy: DeviceListStrategy
) -> None:
    """NVIDIA's container runtime finds the device itself."""
    delivery = _delivery(folder, ServingOptions(device_list_strategies=(strategy,)))
    async with _serving(folder, delivery, offer("a")) as (server, kubelet):
        await kubelet.allocate(GPU, "a")

        assert server.state().undeliverable == {}
    assert kubelet.lists[GPU] == [{"a": HEALTHY}]


async def test_another_way_of_delivery_is_shown_at_once(folder: Path) -> None:
    """What it cannot deliver is ill from then on, and well again by the way of before."""
    usual = _delivery(folder, ServingOptions())
    async with _serving(folder, usual, offer("a")) as (server, kubelet):
        await server.deliver_by(_delivery(folder, _CDI), lambda _: ())
        assert list(server.state().undeliverable) == ["a"]
        await server.deliver_by(usual, lambda _: ())
        await kubelet.until(lambda: len(kubelet.lists[GPU]) == 3)

    assert kubelet.lists[GPU] == [{"a": HEALTHY}, {"a": UNHEALTHY}, {"a": HEALTHY}]


async def test_an_offer_that_comes_while_the_way_changes_is_prepared_for_it(folder: Path) -> None:
    """Whichever is first, in the end every offered device has its nodes."""
    _make_node(folder)
    async with _serving(folder, _delivery(folder, _NODES), offer("a")) as (server, kubelet):
        other = _delivery(folder, _NODES)
        await asyncio.gather(
            server.deliver_by(other, lambda _: ()), server.offer([offer("a", "b")])
        )
        await kubelet.until(lambda: kubelet.lists[GPU][-1] == {"a": HEALTHY, "b": HEALTHY})
        answer = await kubelet.allocate(GPU, "b")

    assert answer.devices


def test_what_was_not_looked_for_is_not_given(folder: Path) -> None:
    """No answer lacks the nodes that it should have, whatever the moment."""
    said = "its device nodes were not looked for yet"

    assert _delivery(folder, _NODES).obstacle("GPU-a") == said
    assert _delivery(folder, ServingOptions()).obstacle("GPU-a") is None


async def test_no_failure_of_a_search_is_more_than_a_problem_of_its_devices(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told once, for all devices together, and tried again."""
    failures: list[Exception] = [RuntimeError("Symlink loop"), RuntimeError("Symlink loop")]
    found = node_files.devices

    def fail(*arguments: object) -> object:
        if failures:
            raise failures.pop()
        return found(*arguments)

    monkeypatch.setattr(node_files, "devices", fail)
    _make_node(folder)
    delivery = _delivery(folder, _CDI)
    slices = [one.slice for one in offer("a", "b").slices]
    with caplog.at_level(logging.WARNING):
        await delivery.prepare(slices)
        await delivery.prepare(slices)
    why = "its files cannot be prepared: RuntimeError: Symlink loop"

    assert delivery.undeliverable == {"a": why, "b": why}
    assert [one.message for one in caplog.records] == [
        f"cannot be given to containers: a, b: {why}"
    ]
    await delivery.prepare(slices)
    assert delivery.undeliverable == {}
