"""The simulated kubelet, as a kubelet under test."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from tests.kubernetes import pods
from tests.kubernetes.kubelet_under_test import Container, Object, Resource

from partita.ports.clock import Clock
from partita.simulator.kubelet.folders import Folders
from partita.simulator.kubelet.kubelet import SimulatedKubelet
from partita.simulator.kubelet.process import Settings

_SECONDS = 30
_DIAL_SECONDS = 0.5  # 10 in the real one; what is said after it is the same

Result = TypeVar("Result")


class _Clock:
    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(tz=UTC)


class Loop:
    """An event loop in a thread of its own, where simulated kubelets live."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Let the loop do some work, and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SimulatedKubeletUnderTest:
    """The simulated kubelet, driven from outside of its event loop."""

    def __init__(self, loop: Loop, settings: Settings) -> None:
        self._loop = loop
        self._kubelet = SimulatedKubelet(settings)

    @property
    def folders(self) -> Folders:
        """Where plugins and monitors meet it."""
        return self._kubelet.folders

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._kubelet.running

    def start(self) -> None:
        """Start it, and return when plugins can register."""
        self._loop.run(self._kubelet.start())

    def stop(self) -> None:
        """End it as by a crash."""
        self._loop.run(self._kubelet.stop())

    def run(self, pod: Object) -> None:
        """Bind a new pod; if its containers run only ``true``, it succeeds once it runs."""
        self._loop.run(self._run(pod))

    def delete(self, pod: str) -> None:
        """Delete a pod."""
        self.call(lambda kubelet: kubelet.delete(pod))

    def await_pod(self, name: str, condition: Callable[[Object], bool]) -> Object:
        """Wait until the condition holds."""
        found: list[Object] = []

        def holds() -> bool:
            pod = self._kubelet.pod(name)
            assert pod is not None
            found[:] = [pod]
            return condition(pod)

        self._loop.run(self._until(holds))
        return found[0]

    def await_resource(self, name: str, condition: Callable[[Resource], bool]) -> Resource:
        """Wait until the condition holds; the node's status is reported whenever we look."""
        found: list[Resource] = []

        def holds() -> bool:
            total = self._kubelet.report().get(name)
            found[:] = [
                Resource(capacity=None, allocatable=None)
                if total is None
                else Resource(capacity=total.capacity, allocatable=total.allocatable)
            ]
            return condition(found[0])

        self._loop.run(self._until(holds))
        return found[0]

    def look_inside(self, pod: str, container: str = "main") -> Container:
        """Wait until the container runs."""
        self.await_pod(pod, pods.running)
        found = self._kubelet.look_inside(pod, container)
        assert found is not None
        return Container(
            environment=dict(found.environment),
            devices=found.devices,
            control_group=found.control_group,
        )

    def call(self, work: Callable[[SimulatedKubelet], Result]) -> Result:
        """Call a method of the simulated kubelet itself, in its event loop."""

        async def called() -> Result:
            return work(self._kubelet)

        return self._loop.run(called())

    def start_without_pods(self) -> None:
        """Start it, and let it not yet hear of its pods."""
        self._loop.run(self._kubelet.start(pods_known=False))

    async def _until(self, condition: Callable[[], bool]) -> None:
        await asyncio.wait_for(self._kubelet.until(condition), _SECONDS)

    async def _run(self, pod: Object) -> None:
        self._kubelet.run(pod)
        if all(one["command"][-1] == "true" for one in pod["spec"]["containers"]):
            name = pod["metadata"]["name"]
            await self._until(lambda: pods.running(self._kubelet.pod(name) or {"status": {}}))
            self._kubelet.end(name)


@contextmanager
def start(loop: Loop, clock: Clock | None = None) -> Iterator[SimulatedKubeletUnderTest]:
    """Yield a simulated kubelet that runs; its folder has a short name, for sockets need that."""
    with TemporaryDirectory(prefix="kubelet-") as folder:
        settings = Settings(
            folders=Folders(base=Path(folder)),
            clock=clock if clock is not None else _Clock(),
            dial_seconds=_DIAL_SECONDS,
        )
        kubelet = SimulatedKubeletUnderTest(loop, settings)
        kubelet.start()
        yield kubelet
        kubelet.stop()
