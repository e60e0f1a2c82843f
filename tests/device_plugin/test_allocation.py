"""What the kubelet is promised for a container, and what it is refused."""

import asyncio
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest
from tests.device_plugin.kubelet_side import KubeletSide
from tests.device_plugin.serving import GPU, PACE, ManualClock, offer, serving, shared

from partita.adapters.device_plugin.ledger import Ledger, Refusal
from partita.ports.slice_server import REFUSED_GONE, REFUSED_RETIRED, PreferenceRequest


async def _refusal(kubelet: KubeletSide, *device_ids: str) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await kubelet.allocate(GPU, *device_ids)
    assert error.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    return str(error.value.details())


async def test_every_device_of_an_answer_is_promised(folder: Path) -> None:
    """A promise is made before the answer, and wakes who decides."""
    clock = ManualClock()
    async with serving(folder, offer("a", "b", "c"), clock=clock) as (server, kubelet):
        clock.seconds = 7.0
        woken = asyncio.create_task(kubelet.until(lambda: server.state().promised))
        await asyncio.sleep(0)
        await kubelet.allocate(GPU, "a", "c")
        await woken

        assert server.state().promised == {"a": 7.0, "c": 7.0}


async def test_a_device_that_is_not_offered_is_refused(folder: Path) -> None:
    """All or nothing: the device that is there is not promised either."""
    async with serving(folder, offer("a")) as (server, kubelet):
        said = await _refusal(kubelet, "a", "x")

        assert said == f"{REFUSED_GONE}: x"
        assert server.state().promised == {}


async def test_an_unusable_device_is_granted(folder: Path) -> None:
    """The kubelet may have chosen before it heard; a pod must not fail because of a re-cut."""
    async with serving(folder, offer(unusable=["a"])) as (_, kubelet):
        answer = await kubelet.allocate(GPU, "a")

    assert dict(answer.envs) == {"NVIDIA_VISIBLE_DEVICES": "a"}


async def test_a_retired_device_is_refused_until_it_is_usable_again(folder: Path) -> None:
    """Offered as unusable it stays retired."""
    async with serving(folder, offer("a")) as (server, kubelet):
        assert server.retire(["a"])
        first = await _refusal(kubelet, "a")
        await server.offer([offer(unusable=["a"])])
        second = await _refusal(kubelet, "a")
        await server.offer([offer("a")])
        await kubelet.allocate(GPU, "a")

    assert first == second == f"{REFUSED_RETIRED}: a"


def test_what_was_destroyed_is_not_remembered() -> None:
    """A retirement is forgotten once the device is no longer offered, not before."""
    ledger = Ledger(ManualClock())
    ledger.retire(["a", "b"])
    ledger.keep(["a"])

    with pytest.raises(Refusal, match=REFUSED_RETIRED):
        ledger.grant(offer("a", "b"), [["a"]])
    ledger.grant(offer("a", "b"), [["b"]])
    assert list(ledger.promised) == ["b"]


async def test_a_resource_that_is_withdrawn_promises_nothing_more(folder: Path) -> None:
    """Not even to a container that asked before, while the end of the stream is on its way."""
    asked, may_go_on = asyncio.Event(), asyncio.Event()

    async def ponder(_: Sequence[str]) -> str | None:
        asked.set()
        await may_go_on.wait()
        return None

    pace = dataclasses.replace(PACE, last_words=10)
    async with serving(folder, offer("a"), objection=ponder, pace=pace) as (server, kubelet):
        late = asyncio.create_task(_refusal(kubelet, "a"))
        await asked.wait()
        assert server.retire(["a"])
        leaving = asyncio.create_task(server.offer([]))
        await kubelet.until(lambda: kubelet.lists[GPU][-1] == {})
        may_go_on.set()

        assert await late == f"{REFUSED_GONE}: a"
        await leaving
        assert server.state().promised == {}


async def test_a_promised_device_is_not_retired(folder: Path) -> None:
    """Nothing is retired when one was promised; a settled promise no longer counts."""
    clock = ManualClock()
    async with serving(folder, offer("a", "b"), clock=clock) as (server, kubelet):
        await kubelet.allocate(GPU, "a")
        settled = server.state().promised
        assert not server.retire(["a", "b"])
        await kubelet.allocate(GPU, "b")

        server.forget(settled)
        assert list(server.state().promised) == ["b"]
        assert server.retire(["a"])


async def test_a_promise_that_was_made_again_is_not_forgotten(folder: Path) -> None:
    """What is forgotten is a promise of a certain time."""
    clock = ManualClock()
    async with serving(folder, offer("a"), clock=clock) as (server, kubelet):
        await kubelet.allocate(GPU, "a")
        settled = server.state().promised
        clock.seconds += 1
        await kubelet.allocate(GPU, "a")
        server.forget(settled)

        assert server.state().promised == {"a": clock.seconds}


async def test_no_request_comes_between_the_look_and_the_refusal(folder: Path) -> None:
    """However calls and retirement interleave, no device is both promised and retired."""
    names = [f"GPU-{number}" for number in range(60)]
    async with serving(folder, offer(*names)) as (server, kubelet):
        calls = [asyncio.create_task(kubelet.allocate(GPU, name)) for name in names]
        retired = []
        for name in reversed(names):
            if server.retire([name]):
                retired.append(name)
            await asyncio.sleep(0)
        answers = await asyncio.gather(*calls, return_exceptions=True)
        promised = server.state().promised

    granted = [
        name
        for name, answer in zip(names, answers, strict=True)
        if not isinstance(answer, grpc.aio.AioRpcError)
    ]
    assert sorted(promised) == sorted(granted)
    assert sorted((*granted, *retired)) == sorted(names)


async def test_more_than_one_shared_slot_is_refused_where_that_is_wanted(folder: Path) -> None:
    """The refusal says what to do."""
    async with serving(folder, shared("GPU-a", 4, one_each=True)) as (server, kubelet):
        await kubelet.allocate(GPU, "GPU-a::0")
        said = await _refusal(kubelet, "GPU-a::1", "GPU-a::2")

        assert "set the limit of each container to 1" in said
        assert list(server.state().promised) == ["GPU-a::0"]


async def test_slots_of_one_device_name_it_once(folder: Path) -> None:
    """Two slots of a GPU are one GPU for the container, and two promises."""
    async with serving(folder, shared("GPU-a", 4)) as (server, kubelet):
        answer = await kubelet.allocate(GPU, "GPU-a::1", "GPU-a::3")

        assert dict(answer.envs) == {"NVIDIA_VISIBLE_DEVICES": "GPU-a"}
        assert sorted(server.state().promised) == ["GPU-a::1", "GPU-a::3"]


async def test_the_preference_is_asked_for(folder: Path) -> None:
    """The question has the present offer; the answer goes to the kubelet."""
    questions = []

    def last(request: PreferenceRequest) -> Sequence[str]:
        questions.append(request)
        return ["c", "a"]

    async with serving(folder, offer("a", "b", "c"), prefer=last) as (_, kubelet):
        answer = await kubelet.prefer(GPU, ["a", "b", "c"], ["a"], 2)

    assert answer == ["c", "a"]
    assert questions == [
        PreferenceRequest(
            offer=offer("a", "b", "c"),
            available=("a", "b", "c"),
            must_include=("a",),
            count=2,
        )
    ]


def _fail(_: PreferenceRequest) -> Sequence[str]:
    raise LookupError("no such GPU")


@pytest.mark.parametrize(
    "prefer",
    [
        pytest.param(_fail, id="error"),
        pytest.param(lambda _: ["a", "b"], id="lacks one"),
        pytest.param(lambda _: ["c"], id="too few"),
        pytest.param(lambda _: ["c", "x"], id="a stranger"),
        pytest.param(lambda _: ["c", "c"], id="twice"),
    ],
)
async def test_a_preference_that_is_no_answer_fails_no_pod(
    folder: Path,
    prefer: object,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An error, a wrong number, a stranger, or one that leaves out what must be in: the first."""
    async with serving(folder, offer("a", "b", "c"), prefer=prefer) as (_, kubelet):
        answer = await kubelet.prefer(GPU, ["a", "b", "c"], ["c"], 2)

    assert answer == ["c", "a"]
    assert "no preference for a container of nvidia.com/gpu" in caplog.text
