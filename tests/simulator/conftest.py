"""A kubelet on sockets, with a clock that stands still."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from tests.kubernetes import simulated_kubelet
from tests.kubernetes.simulated_kubelet import Loop, SimulatedKubeletUnderTest


@dataclass
class StandingClock:
    """A clock that stands still until it is told."""

    seconds: float = 0.0

    def monotonic(self) -> float:
        """Return what it was told."""
        return self.seconds

    def now(self) -> datetime:
        """Return what it was told, from the beginning of 1970."""
        return datetime.fromtimestamp(self.seconds, tz=UTC)


@pytest.fixture
def clock() -> StandingClock:
    """Return a clock that stands at 0."""
    return StandingClock()


@pytest.fixture(scope="session")
def _loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def kubelet(_loop: Loop, clock: StandingClock) -> Iterator[SimulatedKubeletUnderTest]:
    """Return a kubelet that runs."""
    with simulated_kubelet.start(_loop, clock) as kubelet:
        yield kubelet
