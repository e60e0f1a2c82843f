"""A resource becomes known to the kubelet, and stays so."""

import asyncio
import dataclasses
import logging
from pathlib import Path

import grpc
import pytest
from tests.device_plugin.kubelet_side import KubeletSide
from tests.device_plugin.serving import GPU, HEALTHY, MIG, PACE, heard, names_in, offer, serving

from partita.adapters.device_plugin import sockets


async def test_the_kubelet_is_answered_while_it_registers(folder: Path) -> None:
    """The kubelet asks for options inside Register and gets them: one event loop does both."""
    async with serving(folder, offer("a"), offer("b", resource=MIG)) as (_, kubelet):
        asked = sorted((one.resource_name, one.version) for one in kubelet.registered)

    assert asked == [(GPU, "v1beta1"), (MIG, "v1beta1")]


async def test_the_kubelet_may_come_later(folder: Path) -> None:
    """Neither kubelet nor folder need be there at the start."""
    kubelet = KubeletSide(folder / "device-plugins")
    async with serving(kubelet.folder, offer("a"), kubelet=kubelet) as (server, _):
        await kubelet.until(lambda: server.state().sessions[GPU].problem is not None)
        problem = server.state().sessions[GPU].problem
        await kubelet.start()
        await kubelet.until(lambda: heard(server))

        assert problem == f"no kubelet is there: {kubelet.folder}/kubelet.sock"
        assert server.state().sessions[GPU].problem is None


async def test_a_socket_that_nobody_serves_is_no_kubelet(folder: Path) -> None:
    """A kubelet that was killed leaves its socket; the next one is found at once."""
    (folder / "kubelet.sock").touch()
    kubelet = KubeletSide(folder)
    async with serving(folder, offer("a"), kubelet=kubelet) as (server, _):
        await kubelet.until(lambda: server.state().sessions[GPU].problem is not None)
        problem = server.state().sessions[GPU].problem
        await kubelet.start()
        await kubelet.until(lambda: heard(server))

    assert str(problem).startswith("Register failed with UNAVAILABLE")


@pytest.mark.parametrize("wipe", [True, False])
async def test_a_restart_of_the_kubelet_is_followed(folder: Path, *, wipe: bool) -> None:
    """After a restart it is registered under a new name, whether or not sockets were removed."""
    async with serving(folder, offer("a")) as (_, kubelet):
        await kubelet.stop()
        await kubelet.start(wipe=wipe)
        await kubelet.until(lambda: len(kubelet.lists[GPU]) == 2)
        old, new = (one.endpoint for one in kubelet.registered)
        left = names_in(folder)

    assert old != new
    assert left == {"kubelet.sock", new}


async def test_a_kubelet_that_comes_anew_beside_an_open_stream_is_seen(folder: Path) -> None:
    """Another kubelet.sock means another kubelet, even if the old one still listens."""
    async with serving(folder, offer("a")) as (_, old):
        new = KubeletSide(folder)
        await new.start(wipe=False)
        await new.until(lambda: new.lists[GPU])
        await new.stop()

    assert old.ended == [(GPU, grpc.StatusCode.OK)]


async def test_a_lost_socket_is_made_anew(folder: Path) -> None:
    """Whoever removes the plugin's socket only makes it register again."""
    async with serving(folder, offer("a")) as (server, kubelet):
        (folder / kubelet.registered[0].endpoint).unlink()
        await kubelet.until(lambda: len(kubelet.registered) == 2 and heard(server))

    assert kubelet.ended[0] == (GPU, grpc.StatusCode.OK)


async def test_the_end_of_a_stream_is_answered_by_a_new_registration(folder: Path) -> None:
    """The kubelet never comes back by itself to a plugin whose stream has ended."""
    async with serving(folder, offer("a"), offer("b", resource=MIG)) as (server, kubelet):
        await kubelet.hang_up(GPU)
        await kubelet.until(lambda: not server.state().sessions[GPU].connected)
        await kubelet.until(lambda: len(kubelet.registered) == 3 and heard(server))
        again = kubelet.registered[-1].resource_name

    assert again == GPU


async def test_a_resource_is_registered_anew_when_that_is_wanted(folder: Path) -> None:
    """The stream ends although it lives; no other resource is touched."""
    async with serving(folder, offer("a"), offer("b", resource=MIG)) as (server, kubelet):
        await server.reconnect(GPU)
        lost = server.state().sessions[GPU]
        await kubelet.until(lambda: len(kubelet.lists[GPU]) == 2 and heard(server))
        endpoints = [one.endpoint for one in kubelet.registered if one.resource_name == GPU]
        left = names_in(folder)
        ended = list(kubelet.ended)

    assert lost.problem == "the kubelet does not show the devices that it was sent"
    assert (lost.connected, lost.delivered) == (False, False)
    assert len(set(endpoints)) == 2
    assert endpoints[0] not in left
    assert ended == [(GPU, grpc.StatusCode.OK)]
    assert kubelet.lists == {GPU: [{"a": HEALTHY}] * 2, MIG: [{"b": HEALTHY}]}


async def test_nothing_is_registered_anew_that_is_not_connected(folder: Path) -> None:
    """What is on its way to the kubelet is not held up, and what is not offered is left alone."""
    kubelet = KubeletSide(folder)
    async with serving(folder, offer("a"), kubelet=kubelet) as (server, _):
        await kubelet.until(lambda: server.state().sessions[GPU].problem is not None)
        before = server.state()
        await server.reconnect(GPU)
        await server.reconnect(MIG)

        assert server.state() == before


async def test_a_kubelet_that_does_not_listen_is_asked_again(folder: Path) -> None:
    """Accepted but never listened to counts for nothing."""
    kubelet = KubeletSide(folder)
    kubelet.listens = False
    await kubelet.start()
    async with serving(folder, offer("a"), kubelet=kubelet) as (server, _):
        await kubelet.until(lambda: len(kubelet.registered) == 2)
        assert "asks for no devices" in str(server.state().sessions[GPU].problem)
        kubelet.listens = True
        await kubelet.until(lambda: heard(server))


async def test_a_refusal_is_told_once_and_tried_again(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The reason is in the session and once in the log, without the name of the socket."""
    kubelet = KubeletSide(folder)
    kubelet.refuse_with = "no resources of this name"
    await kubelet.start()
    with caplog.at_level(logging.INFO):
        async with serving(folder, offer("a"), kubelet=kubelet) as (server, _):
            await kubelet.until(lambda: kubelet.refused == 4)
            problem = server.state().sessions[GPU].problem
            kubelet.refuse_with = None
            await kubelet.until(lambda: heard(server))

    why = "Register failed with UNKNOWN: the plugin's socket: no resources of this name"
    assert problem == why
    messages = [record.message for record in caplog.records]
    assert messages == [f"{GPU} is not served: {why}", f"{GPU} is served to the kubelet"]


async def test_a_kubelet_that_hangs_in_register_is_asked_again(folder: Path) -> None:
    """Register has a limit of time, after which everything begins anew."""
    kubelet = KubeletSide(folder)
    kubelet.hangs = True
    await kubelet.start()
    pace = dataclasses.replace(PACE, register=0.1)
    async with serving(folder, offer("a"), kubelet=kubelet, pace=pace) as (server, _):
        await kubelet.until(lambda: server.state().sessions[GPU].problem is not None)
        problem = server.state().sessions[GPU].problem
        kubelet.hangs = False
        await kubelet.until(lambda: heard(server))

    assert problem == "Register failed with DEADLINE_EXCEEDED: Deadline Exceeded"


async def test_a_folder_that_cannot_be_written_is_a_problem_not_an_end(folder: Path) -> None:
    """A path that is too long for a socket is told; nothing is raised."""
    deep = folder / ("x" * 100)
    deep.mkdir()
    (deep / "kubelet.sock").touch()
    kubelet = KubeletSide(deep)
    async with serving(deep, offer("a"), kubelet=kubelet) as (server, _):
        await kubelet.until(lambda: server.state().sessions[GPU].problem is not None)
        assert server.state().sessions[GPU].problem == f"cannot listen in {deep}"


async def test_closing_leaves_no_socket_and_no_empty_list(folder: Path) -> None:
    """An agent that restarts must not take the devices away: its successor takes over."""
    async with serving(folder, offer("a")) as (server, kubelet):
        await server.close()
        await kubelet.until(lambda: kubelet.ended)
        assert names_in(folder) == {"kubelet.sock"}
        assert kubelet.lists[GPU] == [{"a": "Healthy"}]
        assert server.state().sessions == {}


async def test_nothing_is_left_running(folder: Path) -> None:
    """After close no task of the server is alive."""
    async with serving(folder, offer("a"), offer("b", resource=MIG)) as (server, kubelet):
        await server.close()
        await kubelet.stop()
        names = {task.get_name() for task in asyncio.all_tasks()}

    assert not any(name.startswith("serve ") for name in names)


@pytest.mark.parametrize(
    "resource", ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb.me", "nvidia.com/" + "x" * 63, "a/b_c"]
)
def test_names_of_sockets_are_short_and_new(resource: str) -> None:
    """A socket's path has at most 107 bytes in the kubelet's folder; no two are the same."""
    folder = Path("/var/lib/kubelet/device-plugins")
    paths = {sockets.new_socket(folder, resource) for _ in range(20)}

    assert len(paths) == 20
    assert max(len(str(path)) for path in paths) <= 107
    assert all(path.name.startswith("partita-") for path in paths)


def test_long_names_of_one_beginning_stay_apart() -> None:
    """What is cut off is in a hash, so that a folder tells the resources apart."""
    folder = Path("/var/lib/kubelet/device-plugins")
    one, other = (sockets.new_socket(folder, "a/" + "x" * 60 + end).name for end in ("1", "2"))

    assert one.rpartition("-")[0] != other.rpartition("-")[0]
