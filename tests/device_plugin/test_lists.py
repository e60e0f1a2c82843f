"""What the kubelet hears of the devices, and when."""

import asyncio
from pathlib import Path

import grpc
from tests.device_plugin.serving import (
    GPU,
    HEALTHY,
    MIG,
    UNHEALTHY,
    names_in,
    offer,
    serving,
)

from partita.adapters.device_plugin.listing import Listing, Streams


async def test_every_change_is_sent_as_a_whole_list(folder: Path) -> None:
    """The list comes at once when the stream begins, and complete after each change."""
    async with serving(folder, offer("a")) as (server, kubelet):
        await server.offer([offer("a", "b")])
        await server.offer([offer("b", unusable=["a"])])
        await kubelet.until(lambda: len(kubelet.lists[GPU]) == 3)

    assert kubelet.lists[GPU] == [
        {"a": HEALTHY},
        {"a": HEALTHY, "b": HEALTHY},
        {"a": UNHEALTHY, "b": HEALTHY},
    ]


async def test_what_did_not_change_is_not_sent_again(folder: Path) -> None:
    """An equal offer, or one that differs in what the kubelet cannot see, is not news."""
    async with serving(folder, offer("a"), offer("m", resource=MIG)) as (server, kubelet):
        await server.offer([offer("a"), offer("m", "n", resource=MIG)])
        await server.offer([offer("a", one_each=True), offer("m", "n", resource=MIG)])
        await kubelet.until(lambda: len(kubelet.lists[MIG]) == 2)

    assert len(kubelet.lists[GPU]) == 1


async def test_an_announcement_repeats_the_lists(folder: Path) -> None:
    """The same lists are sent again; nothing but that happens."""
    async with serving(folder, offer("a"), offer("m", resource=MIG)) as (server, kubelet):
        before = server.state()
        await server.announce()
        after = server.state()
        await kubelet.until(lambda: len(kubelet.lists[GPU]) + len(kubelet.lists[MIG]) == 4)

    assert kubelet.lists == {GPU: [{"a": HEALTHY}] * 2, MIG: [{"m": HEALTHY}] * 2}
    assert before == after


async def test_numa_nodes_are_told(folder: Path) -> None:
    """A device with a known NUMA node has a topology, others have none."""
    async with serving(folder, offer("a", numa_node=1), offer("m", resource=MIG)) as (_, kubelet):
        (gpu,), (mig,) = kubelet.raw[GPU].devices, kubelet.raw[MIG].devices

    assert [node.ID for node in gpu.topology.nodes] == [1]
    assert not mig.HasField("topology")


async def test_a_resource_that_is_no_longer_offered_ends_with_an_empty_list(folder: Path) -> None:
    """The kubelet hears that there is none left, then the stream ends in order."""
    async with serving(folder, offer("a"), offer("m", resource=MIG)) as (server, kubelet):
        await server.offer([offer("m", resource=MIG)])
        await kubelet.until(lambda: kubelet.ended)
        left = {name.rpartition("-")[0] for name in names_in(folder)}
        assert list(server.state().sessions) == [MIG]
        await server.offer([offer("a"), offer("m", resource=MIG)])
        await kubelet.until(lambda: len(kubelet.lists[GPU]) == 3)

    assert kubelet.ended[0] == (GPU, grpc.StatusCode.OK)
    assert kubelet.lists == {GPU: [{"a": HEALTHY}, {}, {"a": HEALTHY}], MIG: [{"m": HEALTHY}]}
    assert left == {"", "partita-mig-1g.10gb"}


async def test_delivered_is_about_the_present_offer_and_a_live_stream(folder: Path) -> None:
    """An offer is delivered when it returns; without a kubelet nothing is."""
    async with serving(folder, offer("a")) as (server, kubelet):
        await server.offer([offer("b")])
        delivered = server.state().sessions[GPU].delivered
        await kubelet.stop()
        await kubelet.until(lambda: not server.state().sessions[GPU].connected)
        await server.offer([offer("c")])
        lost = server.state().sessions[GPU]

    assert (delivered, lost.connected, lost.delivered) == (True, False, False)


async def test_a_resource_without_devices_is_registered_too(folder: Path) -> None:
    """An empty offer is an offer: the kubelet knows the resource, with capacity 0."""
    async with serving(folder, offer()) as (_, kubelet):
        assert kubelet.lists == {GPU: [{}]}


async def test_who_does_not_take_a_list_is_not_waited_for_for_ever() -> None:
    """A stream that is stuck is found, and everything else goes on."""
    listing = Listing()
    streams = Streams(listing, lambda: None)
    stuck = asyncio.Event()

    async def write(_: object) -> None:
        await stuck.wait()

    task = asyncio.create_task(streams.follow(write))
    await listing.wakeup.until(lambda: streams.is_live)

    assert not await streams.catch_up(0.01)
    stuck.set()
    assert await streams.catch_up(5)
    streams.close()
    await task
    assert streams.end == "the kubelet stopped listening"
