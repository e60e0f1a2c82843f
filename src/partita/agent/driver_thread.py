"""One thread for all calls of the GPU driver, so that one that hangs stops nothing else.

NVML is not asked from two threads at once, and it can hang: on a GPU that is falling off the bus a
call may take minutes. The event loop must go on answering the kubelet meanwhile.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from partita.errors import DriverError
from partita.ports.gpu_driver import DriverFailure

__all__ = ["DriverThread"]

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


_LONG_SECONDS = 120.0  # more than the adapter of NVML gives a reset before it ends it
_SLOW = {"reset": _LONG_SECONDS, "set_mig_mode": _LONG_SECONDS}  # a mode may be set by a reset


class DriverThread:
    """Runs calls one after the other; while one hangs the next are refused at once."""

    def __init__(
        self, *, patience_seconds: float = 20.0, slow_calls: Mapping[str, float] = _SLOW
    ) -> None:
        """Start without a thread; the first call makes it.

        Args:
            patience_seconds: After how long a call hangs.
            slow_calls: The same for calls that may take longer, by the name of their function.
        """
        self._patience_seconds = patience_seconds
        self._slow_calls = slow_calls
        self._running_patience = patience_seconds
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="gpu-driver")
        self._running: Future[Any] | None = None

    async def __call__(
        self,
        call: Callable[Arguments, Answer],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Answer:
        """Make a call.

        Raises:
            DriverError: What the call raises; ``TIMEOUT`` when it, or one before it, hangs.
        """
        if self._running is not None and not self._running.done():
            raise _hangs(self._running_patience)
        patience = self._slow_calls.get(getattr(call, "__name__", ""), self._patience_seconds)
        future = self._executor.submit(call, *arguments, **named)
        self._running, self._running_patience = future, patience
        waiting = asyncio.wrap_future(future)
        try:
            done, _ = await asyncio.wait([waiting], timeout=patience)
            if not done:
                raise _hangs(patience)
            return waiting.result()
        finally:
            _forget(waiting)

    def close(self) -> None:
        """Take no more calls; one that hangs is left behind."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def _forget(waiting: "asyncio.Future[Any]") -> None:
    """Let nobody be told of what becomes of a call that is not waited for any more."""
    if not waiting.cancel() and not waiting.cancelled():
        waiting.exception()


def _hangs(seconds: float) -> DriverError:
    return DriverError(
        message=f"a call of the GPU driver hangs, after seconds: {seconds:g}",
        hint="see `dmesg`; a GPU may be falling off the bus, or being reset",
        failure=DriverFailure.TIMEOUT.value,
    )
