"""Calls of the driver: one after the other, and a hanging one stops nothing else."""

import asyncio
import gc
import threading

import pytest

from partita.agent.driver_thread import DriverThread
from partita.errors import DriverError


def test_a_call_returns_what_it_returns() -> None:
    """Arguments go in, the answer comes out, exceptions too."""

    async def calls() -> None:
        thread = DriverThread()
        assert await thread(divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await thread(divmod, 7, 0)
        thread.close()

    asyncio.run(calls())


def test_a_hanging_call_times_out_and_the_next_is_refused_at_once() -> None:
    """While a call hangs no other is made; when it has come back they are made again."""
    go_on = threading.Event()

    async def calls() -> None:
        thread = DriverThread(patience_seconds=0.05)
        with pytest.raises(DriverError, match="hangs") as first:
            await thread(go_on.wait)
        assert first.value.failure == "timeout"
        made: list[int] = []
        with pytest.raises(DriverError, match="hangs"):
            await thread(made.append, 1)
        assert made == []

        go_on.set()
        while made == []:
            try:
                await thread(made.append, 2)
            except DriverError:
                await asyncio.sleep(0)
        assert made == [2]
        thread.close()

    asyncio.run(calls())


def test_a_slow_call_is_given_more_time() -> None:
    """A reset takes longer than anything else; the patience goes by the name of the call."""

    def reset(name: str) -> str:
        released.wait(30)
        return name

    def gpus() -> None:
        released.wait(30)

    released = threading.Event()

    async def calls() -> None:
        thread = DriverThread(patience_seconds=0.01, slow_calls={"reset": 30.0})
        asyncio.get_running_loop().call_later(0.1, released.set)
        assert await thread(reset, "GPU-0") == "GPU-0"
        released.clear()
        with pytest.raises(DriverError, match=r"hangs, after seconds: 0\.01"):
            await thread(gpus)
        released.set()
        thread.close()

    asyncio.run(calls())


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_nobody_is_told_of_a_call_that_fails_too_late(*, is_cancelled: bool) -> None:
    """Who made it has been told that it hangs, or has gone."""
    go_on = threading.Event()
    said: list[str] = []

    def fail() -> None:
        go_on.wait(30)
        raise DriverError(message="too late", hint="", failure="unknown")

    async def calls() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: said.append(context["message"]))
        thread = DriverThread(patience_seconds=30.0 if is_cancelled else 0.01)
        call = asyncio.ensure_future(thread(fail))
        await asyncio.sleep(0)
        if is_cancelled:
            call.cancel()
        await asyncio.wait([call])
        go_on.set()
        thread.close()
        for one in threading.enumerate():
            if one.name.startswith("gpu-driver"):
                await asyncio.to_thread(one.join)
        await asyncio.sleep(0)
        error = None if call.cancelled() else call.exception()
        assert is_cancelled or isinstance(error, DriverError)
        del call
        gc.collect()

    asyncio.run(calls())
    gc.collect()

    assert said == []
