"""The ports over a kubelet in memory, with every step between the two taken by hand."""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from partita.errors import KubeletError
from partita.model.slice import Slice
from partita.ports.kubelet import Holding, Kubelet, Remembered
from partita.ports.slice_server import (
    REFUSED_GONE,
    REFUSED_RETIRED,
    Offer,
    OfferedSlice,
    Session,
    SliceServer,
)
from partita.simulator.kubelet.admission import (
    Allocate,
    KubeletCrashedError,
    PluginRefusedError,
    Prefer,
)
from partita.simulator.kubelet.in_memory import InMemoryKubelet
from partita.simulator.kubelet.in_memory_server import InMemorySliceServer
from partita.simulator.kubelet.plugins import Total
from partita.simulator.kubelet.pods import Container, Pod

RESOURCE = "nvidia.com/gpu"
Result = TypeVar("Result")


class _Clock:
    """A clock that stands still until it is told."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, tz=UTC)


class _World:
    def __init__(self) -> None:
        self.clock = _Clock()
        self.kubelet = InMemoryKubelet(self.clock)
        self.server = InMemorySliceServer(self.kubelet, self.clock)

    def offer(self, *names: str, ill: str = "", leaving: str = "", one_each: bool = False) -> None:
        slices = tuple(
            OfferedSlice(
                slice=Slice(device_id=name, resource=RESOURCE, gpu_uuid="GPU-0", gpu_index=0),
                usable=name not in ill,
                leaving=name in leaving,
            )
            for name in names
        )
        _run(self.server.offer([Offer(resource=RESOURCE, slices=slices, one_each=one_each)]))

    def admit(self, name: str, count: int = 1) -> bool:
        """Bind a pod and answer for the plugin until it is in; False when it is refused."""
        return self.kubelet.bind(_pod(name, count)) and self.go_on()

    def allocate(self, device: str) -> Allocate:
        """Return the question that the kubelet would ask for a device."""
        assert self.kubelet.process is not None
        socket = self.kubelet.process.asked(RESOURCE)
        assert socket is not None
        return Allocate(resource=RESOURCE, socket=socket, devices=(device,))

    def go_on(self) -> bool:
        while (question := self.kubelet.question) is not None:
            if not self.kubelet.answer(self.server.answer(question)):
                return False
        return True

    def held(self) -> set[tuple[str, str]]:
        return {(one.pod, one.device_id) for one in _run(self.kubelet.holdings())}


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(work)


def _pod(name: str, count: int = 1) -> Pod:
    container = Container(name="main", requests={RESOURCE: count})
    return Pod(uid=f"uid-{name}", name=name, containers=(container,))


def test_both_are_the_ports() -> None:
    """What the agent is given is what it was written for."""
    world = _World()
    kubelet: Kubelet = world.kubelet
    server: SliceServer = world.server

    assert _run(kubelet.holdings()) == ()
    assert server.state().sessions == {}


def test_holder_and_memory_are_told() -> None:
    """A pod that is in is listed, allocatable stays what it was, and the checkpoint names it."""
    world = _World()
    world.offer("a", "b", ill="b")

    assert world.admit("one")

    holding = Holding(
        namespace="default", pod="one", container="main", resource=RESOURCE, device_id="a"
    )
    remembered = Remembered(pod_uid="uid-one", container="main", resource=RESOURCE, device_id="a")
    assert _run(world.kubelet.holdings()) == (holding,)
    assert _run(world.kubelet.remembered()) == (remembered,)
    assert _run(world.kubelet.allocatable()) == {RESOURCE: {"a"}}
    assert world.kubelet.totals() == {RESOURCE: Total(capacity=2, allocatable=1)}


def test_a_refused_pod_says_why() -> None:
    """It is gone from the node; what its status says is kept."""
    world = _World()
    world.offer("a")

    assert not world.admit("one", 2)

    assert "Requested: 2, Available: 1" in world.kubelet.refused["uid-one"]
    assert world.kubelet.pods == {}


def test_what_is_leaving_is_given_last() -> None:
    """The preference of the plugin puts it behind the others."""
    world = _World()
    world.offer("a", "b", leaving="a")

    world.admit("one")

    assert world.held() == {("one", "b")}


def test_more_than_one_is_refused_when_told_so() -> None:
    """``one_each`` fails the pod."""
    world = _World()
    world.offer("a", "b", one_each=True)

    assert not world.admit("one", 2)
    assert world.admit("two")


def test_a_promise_stands_from_the_answer_until_it_is_forgotten() -> None:
    """A promised slice cannot be retired; one that was promised again is not forgotten."""
    world = _World()
    world.offer("a", "b")
    world.clock.seconds = 1
    world.admit("one")
    promised = dict(world.server.state().promised)
    assert promised == {"a": 1}

    assert not world.server.retire(["a", "b"])
    assert world.admit("two")  # nothing was changed by it
    world.kubelet.end("uid-one")
    world.clock.seconds = 2
    world.admit("three")
    world.server.forget(promised)
    assert world.server.state().promised == {"a": 2, "b": 1}

    world.server.forget({"a": 2})
    assert world.server.retire(["a"])


def test_what_is_retired_is_refused_until_it_is_offered_as_usable() -> None:
    """A pod that the kubelet has picked it for before fails; the next offer takes it back."""
    world = _World()
    world.offer("a")
    world.kubelet.bind(_pod("one"))
    assert world.server.retire(["a"])
    assert not world.go_on()
    assert f"{REFUSED_RETIRED}: a" in world.kubelet.refused["uid-one"]

    world.offer("a", ill="a")
    assert isinstance(world.server.answer(world.allocate("a")), PluginRefusedError)
    world.offer("a")
    assert world.server.answer(world.allocate("a")) == b""


def test_a_question_to_a_process_that_is_gone_is_not_answered() -> None:
    """The pod fails, whoever serves the same resource by now."""
    world = _World()
    world.offer("a")
    world.kubelet.bind(_pod("one"))

    world.server.vanish()
    world.server = InMemorySliceServer(world.kubelet, world.clock, name="second")
    world.offer("a")

    assert not world.go_on()
    assert "code = Unavailable" in world.kubelet.refused["uid-one"]
    assert world.server.state().promised == {}
    assert world.admit("two")


def test_lists_can_lie_unread() -> None:
    """Delivered means sent; until the kubelet reads, it gives what it read before."""
    world = _World()
    world.offer("a")
    world.kubelet.reads_at_once = False

    world.offer("a", ill="a")

    delivered = Session(resource=RESOURCE, connected=True, delivered=True)
    assert world.server.state().sessions == {RESOURCE: delivered}
    assert world.kubelet.unread()
    assert _run(world.kubelet.allocatable()) == {RESOURCE: {"a"}}
    world.offer("a", "b")
    world.kubelet.read(at_most=1)
    assert _run(world.kubelet.allocatable()) == {}
    world.kubelet.read()
    assert _run(world.kubelet.allocatable()) == {RESOURCE: {"a", "b"}}
    assert not world.kubelet.unread()


def test_a_list_that_is_read_during_allocate_crashes_the_kubelet() -> None:
    """The pod waits, and gets another device when the kubelet is back."""
    world = _World()
    world.offer("a", "b")
    world.kubelet.bind(_pod("one"))
    assert isinstance(world.kubelet.question, Prefer)
    world.kubelet.answer(("a",))
    world.offer("b")

    with pytest.raises(KubeletCrashedError):
        world.kubelet.answer(b"")
    with pytest.raises(KubeletError):
        world.held()

    world.kubelet.start()
    world.kubelet.learn_of_pods()
    world.server.catch_up()
    assert world.kubelet.waiting == ("uid-one",)
    assert world.kubelet.admit("uid-one")
    assert world.go_on()
    assert world.held() == {("one", "b")}


def test_a_kubelet_that_restarts_has_to_be_told_everything() -> None:
    """It lists no pod before it knows them, remembers the holder, and offers nothing."""
    world = _World()
    world.offer("a", "b")
    world.admit("one")

    world.kubelet.stop()
    absent = world.server.state().sessions[RESOURCE]
    assert not absent.connected
    assert not absent.delivered
    world.server.catch_up()
    problem = world.server.state().sessions[RESOURCE].problem
    assert problem is not None
    assert "it is down" in problem
    world.kubelet.start()

    assert world.held() == set()
    assert [one.device_id for one in _run(world.kubelet.remembered())] == ["a"]
    world.kubelet.learn_of_pods()
    world.server.catch_up()
    assert world.held() == {("one", "a")}
    assert world.admit("two")
    assert world.held() == {("one", "a"), ("two", "b")}


def test_an_announcement_lets_the_kubelet_write_what_it_forgot() -> None:
    """The same list again is enough for the checkpoint of now."""
    world = _World()
    world.offer("a")
    world.admit("one")
    world.kubelet.end("uid-one")
    world.held()
    assert _run(world.kubelet.remembered()) != ()

    _run(world.server.announce())

    assert _run(world.kubelet.remembered()) == ()


def test_a_resource_that_is_no_longer_offered_is_left_empty() -> None:
    """Closing is something else: the devices are counted for a while, for who comes back."""
    world = _World()
    world.offer("a")
    _run(world.server.offer([]))
    assert world.kubelet.totals() == {RESOURCE: Total(capacity=0, allocatable=0)}

    world.offer("a")
    assert world.kubelet.totals() == {RESOURCE: Total(capacity=1, allocatable=1)}
    _run(world.server.close())

    assert world.server.state().sessions == {}
    assert world.kubelet.totals() == {RESOURCE: Total(capacity=1, allocatable=0)}


def test_a_list_that_another_plugin_left_behind_is_replaced_by_registering_anew() -> None:
    """The stream lives and the offer is delivered, but the kubelet shows what the other listed."""
    world = _World()
    world.offer("a")
    other = InMemorySliceServer(world.kubelet, world.clock, name="other")
    foreign = Slice(device_id="x", resource=RESOURCE, gpu_uuid="GPU-1", gpu_index=1)
    _run(other.offer([Offer(resource=RESOURCE, slices=(OfferedSlice(slice=foreign),))]))
    _run(other.close())
    world.offer("a")
    assert world.server.state().sessions[RESOURCE].delivered
    assert _run(world.kubelet.allocatable()) == {RESOURCE: frozenset("x")}

    _run(world.server.reconnect(RESOURCE))

    assert world.server.state().sessions[RESOURCE].delivered
    assert _run(world.kubelet.allocatable()) == {RESOURCE: frozenset("a")}
    assert world.admit("one")


def test_what_was_destroyed_is_not_remembered_as_retired() -> None:
    """It is refused because it is not offered; offered anew and unusable it is granted."""
    world = _World()
    world.offer("a", "b")
    assert world.server.retire(["a"])
    late = world.allocate("a")
    world.offer("b")
    assert str(world.server.answer(late)) == f"{REFUSED_GONE}: a"

    world.offer("a", "b", ill="a")

    assert world.server.answer(late) == b""
