"""One program of a cluster: started, stopped, asked whether it is ready; its log kept in a file."""

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from testbed import waiting
from testbed.errors import ClusterError

_STOP_SECONDS = 10


class Component:
    """A program with a name and a log, running or not.

    Start and stop it as often as needed; the log goes on. Nothing is restarted by itself: a program
    that ends unasked is an error of whoever waits for it.
    """

    def __init__(
        self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self.command = list(command)
        self.log = log
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._seen = 0

    @property
    def running(self) -> bool:
        """Whether the program runs now."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the program unless it runs."""
        if self.running:
            return
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,  # what a terminal sends to its shell is not for us
            )

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Send a signal and wait until the program has ended; kill it when it takes too long."""
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def await_ready(self, ready: Callable[[], bool], *, seconds: float) -> None:
        """Ask until the program is ready; programs say so only when asked."""

        def ready_or_ended() -> bool:
            if not self.running:
                raise ClusterError(f"{self.name} ended at its start:\n{self.tail(15)}")
            return ready()

        waiting.poll(ready_or_ended, seconds=seconds, otherwise=f"{self.name} is not ready")

    def mark(self) -> None:
        """Regard the log so far as read: ``tail`` shows what comes after."""
        self._seen = self.log.stat().st_size if self.log.exists() else 0

    def tail(self, lines: int) -> str:
        """Return the last lines of the log since the mark."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._seen)
            text = log.read().decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])
