"""Waits for health events in a thread of its own, and hands them to the event loop."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence

from partita.errors import DriverError
from partita.ports.gpu_driver import GpuDriver, HealthEvent

__all__ = ["watch"]

_LOG = logging.getLogger(__name__)
_WAIT_SECONDS = 5.0
_PAUSE_SECONDS = 5.0  # after a failure of the driver


@contextlib.contextmanager
def watch(
    driver: GpuDriver,
    report: Callable[[Sequence[HealthEvent]], None],
    *,
    pause_seconds: float = _PAUSE_SECONDS,
) -> Iterator[None]:
    """Report events from now on, in the thread of the running event loop.

    Whatever the driver does, the thread goes on: a failure is logged and followed by a pause.
    """
    loop = asyncio.get_running_loop()
    stopped = threading.Event()
    complaints = _Complaints()

    def run() -> None:
        while not stopped.is_set():
            try:
                events = driver.wait_for_events(_WAIT_SECONDS)
            except Exception as error:  # noqa: BLE001 - a fault must not end the watch
                complaints.log(error)
                stopped.wait(pause_seconds)
                continue
            complaints.end()
            if events and not stopped.is_set():
                with contextlib.suppress(RuntimeError):  # the loop has just ended
                    loop.call_soon_threadsafe(report, events)

    threading.Thread(target=run, name="gpu-events", daemon=True).start()
    try:
        yield
    finally:
        stopped.set()


class _Complaints:
    """Logs what fails: the same refusal of the driver once in a row, each kind of fault once."""

    def __init__(self) -> None:
        self._refusal: str | None = None
        self._faults: set[type[Exception]] = set()

    def log(self, error: Exception) -> None:
        """Log a failure, unless it is known."""
        if isinstance(error, DriverError):
            if error.message != self._refusal:
                _LOG.warning("cannot wait for health events: %s", error.message)
            self._refusal = error.message
        elif type(error) not in self._faults:
            self._faults.add(type(error))
            _LOG.error("a fault of the wait for health events: %r", error, exc_info=error)

    def end(self) -> None:
        """Log that the driver no longer refuses."""
        if self._refusal is not None:
            _LOG.info("health events are waited for again")
        self._refusal = None
