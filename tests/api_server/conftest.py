"""A simulated API server for each test, and the real kubectl to talk to it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.kubernetes.api_server import api_under_test
from tests.kubernetes.api_server.api_under_test import ApiUnderTest
from tests.kubernetes.simulated_kubelet import Loop

from partita.adapters.system_clock import SystemClock
from partita.simulator.api_server import SimulatedApiServer

Kubectl = Callable[..., str]


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    """Start the thread in which servers live."""
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def server(loop: Loop) -> Iterator[SimulatedApiServer]:
    """Return a server that listens."""
    server = SimulatedApiServer(clock=SystemClock(), history_length=100)
    loop.run(server.start())
    yield server
    loop.run(server.stop())


@pytest.fixture
def api(server: SimulatedApiServer) -> ApiUnderTest:
    """Return the server as a client sees it."""
    return api_under_test.over_http(server.address.removeprefix("http://"))


@pytest.fixture
def kubectl(server: SimulatedApiServer, tmp_path: Path) -> Kubectl:
    """Return a function that runs kubectl on the server, and returns what it printed."""
    server.write_kubeconfig(tmp_path / "kubeconfig")
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")}
    environment |= {"HOME": str(tmp_path)}  # where kubectl keeps what it discovered
    program = str(Path(sys.executable).parent / "kubectl")

    def run(*words: str, given: str = "", fails: bool = False, **more: str) -> str:
        done = subprocess.run(  # noqa: S603 - the kubectl of this environment
            [program, *words],
            input=given,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            env={**environment, **more},
        )
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout

    return run
