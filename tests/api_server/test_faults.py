"""Bad days of an API server, on demand."""

import pytest
from tests.kubernetes.api_server.api_under_test import ApiUnderTest, config_map, names_of
from tests.kubernetes.simulated_kubelet import Loop

from partita.simulator.api_server import Fault, SimulatedApiServer

_MAPS = "/api/v1/namespaces/default/configmaps"


def test_planned_requests_fail(server: SimulatedApiServer, api: ApiUnderTest) -> None:
    """As many as planned, of the verb and kind that were planned."""
    server.faults.plan(Fault(times=2, verb="list", plural="configmaps", code=503))
    assert api.get("/api/v1/namespaces/default/pods").code == 200
    assert [api.get(_MAPS).code for _ in range(3)] == [503, 503, 200]


def test_a_busy_server_says_when_to_come_back(
    server: SimulatedApiServer, api: ApiUnderTest
) -> None:
    """In the header and in the status object."""
    server.faults.plan(Fault(code=429, retry_seconds=3))
    answer = api.get(_MAPS)
    assert (answer.code, answer.reason) == (429, "TooManyRequests")
    assert answer.body["details"] == {"retryAfterSeconds": 3}


def test_a_fault_lasts_until_it_is_lifted(server: SimulatedApiServer, api: ApiUnderTest) -> None:
    """If no number was planned."""
    server.faults.plan(Fault(times=None, code=500))
    assert {api.get(_MAPS).code for _ in range(3)} == {500}
    server.faults.lift()
    assert api.get(_MAPS).code == 200


def test_a_delay_delays(server: SimulatedApiServer, api: ApiUnderTest) -> None:
    """And the request is carried out all the same."""
    server.faults.plan(Fault(verb="create", delay_seconds=0.01))
    assert api.create(_MAPS, config_map("a")).code == 201


def test_what_was_stored_outlives_a_stop(
    server: SimulatedApiServer, api: ApiUnderTest, loop: Loop
) -> None:
    """While it is stopped nobody can connect, and its watches are over."""
    api.create(_MAPS, config_map("a"))
    address = server.address
    with api.watch(_MAPS) as events:
        assert events.next()[0] == "ADDED"
        loop.run(server.stop())
        assert events.next() == ("", {})
    with pytest.raises(ConnectionError):
        api.get(_MAPS)
    loop.run(server.start())
    assert server.address == address
    assert names_of(api.get(_MAPS)) == ["a"]


def test_watches_can_be_closed_at_any_time(
    server: SimulatedApiServer, api: ApiUnderTest, loop: Loop
) -> None:
    """In good order: the stream ends."""

    async def close() -> None:
        server.close_watches()

    api.create(_MAPS, config_map("a"))
    with api.watch(_MAPS) as events:
        events.next()
        assert server.watch_count == 1
        loop.run(close())
        assert events.next() == ("", {})
    assert server.watch_count == 0


def test_a_bookmark_may_come_twice(
    server: SimulatedApiServer, api: ApiUnderTest, loop: Loop
) -> None:
    """To those who want bookmarks."""

    async def send() -> None:
        server.send_bookmarks()
        server.send_bookmarks()

    api.create(_MAPS, config_map("a"))
    with api.watch(_MAPS, allowWatchBookmarks="true") as events:
        version = events.next()[1]["metadata"]["resourceVersion"]
        loop.run(send())
        told = [events.next() for _ in range(2)]
    assert [kind for kind, _ in told] == ["BOOKMARK", "BOOKMARK"]
    assert {one["metadata"]["resourceVersion"] for _, one in told} == {version}


def test_compaction_expires_watches_and_pages(
    server: SimulatedApiServer, api: ApiUnderTest, loop: Loop
) -> None:
    """A page's refusal brings a token with which the rest can be had, of another moment."""

    async def compact() -> None:
        server.compact()

    for name in ("a", "b", "c"):
        api.create(_MAPS, config_map(name))
    metadata = api.get(_MAPS, limit=1).body["metadata"]
    api.create(_MAPS, config_map("d"))
    loop.run(compact())
    with api.watch(_MAPS, resourceVersion=metadata["resourceVersion"]) as events:
        assert events.next()[1]["code"] == 410
    refused = api.get(_MAPS, limit=1, **{"continue": metadata["continue"]})
    assert (refused.code, refused.reason) == (410, "Expired")
    rest = api.get(_MAPS, **{"continue": refused.body["metadata"]["continue"]})
    assert names_of(rest) == ["b", "c", "d"]


def test_the_history_is_bounded(api: ApiUnderTest) -> None:
    """What is older than its length has expired by itself."""
    first = api.create(_MAPS, config_map("a")).body["metadata"]["resourceVersion"]
    for number in range(101):
        api.patch(f"{_MAPS}/a", {"data": {"a": str(number)}})
    with api.watch(_MAPS, resourceVersion=first) as events:
        assert events.next()[0] == "ERROR"
