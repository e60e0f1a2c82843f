"""Health events are waited for in a thread that nothing ends."""

import asyncio
import logging
import threading
from collections.abc import Sequence

import pytest

from partita.agent.event_watch import watch
from partita.errors import DriverError
from partita.ports.gpu_driver import HealthEvent
from partita.simulator.gpu_driver import SimulatedGpuDriver
from partita.simulator.gpus import SimulatedGpus, parse

XID = HealthEvent(uuid="GPU-0", xid=79)


class Driver(SimulatedGpuDriver):
    """A driver whose waits end as they were told to, the last one when the test is over."""

    def __init__(self, *ends: Exception | Sequence[HealthEvent]) -> None:
        super().__init__(SimulatedGpus(parse("T4")))
        self.ends = list(ends)
        self.is_idle = threading.Event()
        self.is_over = threading.Event()

    def wait_for_events(self, timeout_seconds: float) -> Sequence[HealthEvent]:
        """Return, or raise, what is next."""
        if not self.ends:
            self.is_idle.set()
            self.is_over.wait(timeout_seconds)
            return ()
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end


def _refusal(message: str) -> DriverError:
    return DriverError(message=message, hint="wait", failure="unknown")


def _reported(driver: Driver) -> list[HealthEvent]:
    """Return what is reported until nothing is left to happen."""
    found: list[HealthEvent] = []

    async def run() -> None:
        with watch(driver, found.extend, pause_seconds=0):
            await asyncio.to_thread(driver.is_idle.wait, 30)
        driver.is_over.set()

    asyncio.run(run())
    return found


def _messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name.endswith("event_watch")]


def test_events_are_reported_in_the_event_loop() -> None:
    """All of them, in the order in which they came."""
    other = HealthEvent(uuid="GPU-1", xid=48)

    assert _reported(Driver([XID], (), [other, XID])) == [XID, other, XID]


@pytest.mark.parametrize("error", [_refusal("GPU is lost"), ValueError("a fault"), OSError(5)])
def test_a_failure_does_not_end_the_watch(error: Exception) -> None:
    """What comes after it is reported."""
    assert _reported(Driver(error, [XID])) == [XID]


def test_a_refusal_is_logged_once_until_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    """A GPU that is lost for a day does not fill the log."""
    caplog.set_level(logging.INFO, logger="partita.agent.event_watch")
    one, two = _refusal("one"), _refusal("two")

    _reported(Driver(one, one, one, two, two, (), (), two))

    assert _messages(caplog) == [
        "cannot wait for health events: one",
        "cannot wait for health events: two",
        "health events are waited for again",
        "cannot wait for health events: two",
        "health events are waited for again",
    ]


def test_a_fault_is_logged_once_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """Once per kind: it is a mistake in this program or in pynvml, and somebody has to see it."""
    _reported(Driver(ValueError("a"), ValueError("b"), (), KeyError("c"), ValueError("d")))

    assert _messages(caplog) == [
        "a fault of the wait for health events: ValueError('a')",
        "a fault of the wait for health events: KeyError('c')",
    ]
    assert all(one.exc_info for one in caplog.records)
