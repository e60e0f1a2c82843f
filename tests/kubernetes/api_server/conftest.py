"""The API server under test: the real one, and the simulated one; with room for one test."""

import http.client
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from testbed.cluster import Cluster
from tests.kubernetes.api_server import api_under_test, gadget
from tests.kubernetes.api_server.api_under_test import ApiUnderTest
from tests.kubernetes.simulated_kubelet import Loop

from partita.simulator.api_server import SimulatedApiServer

_NUMBERS = itertools.count(1)
_OFTEN = 0.05


class _Clock:
    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(tz=UTC)


@pytest.fixture
def _server(_loop: Loop) -> Iterator[SimulatedApiServer]:
    """Return a simulated API server."""
    server = SimulatedApiServer(clock=_Clock(), bookmark_seconds=_OFTEN)
    _loop.run(server.start())
    yield server
    _loop.run(server.stop())


@pytest.fixture
def api(_kind: str, request: pytest.FixtureRequest) -> ApiUnderTest:
    """Return the API server."""
    if _kind == "real":
        real: ApiUnderTest = request.getfixturevalue("real_api")
        return real
    server: SimulatedApiServer = request.getfixturevalue("_server")
    return api_under_test.over_http(server.address.removeprefix("http://"))


@pytest.fixture
def forget(_kind: str, _loop: Loop, request: pytest.FixtureRequest) -> Callable[[], None]:
    """Return a function that restarts the API server after its past was compacted."""

    def restart_simulated() -> None:
        server: SimulatedApiServer = request.getfixturevalue("_server")
        _loop.run(server.stop())
        server.compact()
        _loop.run(server.start())

    def restart_real() -> None:
        cluster: Cluster = request.getfixturevalue("_session_cluster")
        cluster.stop_api_server()
        _compact_etcd()
        cluster.start_api_server()

    return restart_real if _kind == "real" else restart_simulated


def _compact_etcd() -> None:
    """Let etcd forget everything but the present."""
    present = _ask_etcd("range", {"key": "AA=="})
    revision = present["header"]["revision"]
    _ask_etcd("compaction", {"revision": revision, "physical": True})


def _ask_etcd(action: str, body: dict[str, Any]) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1:2379", timeout=20)
    connection.request("POST", f"/v3/kv/{action}", json.dumps(body))
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


@pytest.fixture(scope="session")
def real_api(_session_cluster: Cluster) -> ApiUnderTest:
    """Return the API server of the test bed."""
    real = _session_cluster.api
    return api_under_test.over_https(real.address, real.token, str(real.authority))


@pytest.fixture
def name() -> str:
    """Return a name that no test had before."""
    return f"fact-{next(_NUMBERS)}"


@pytest.fixture
def namespace(api: ApiUnderTest, name: str) -> Iterator[str]:
    """Return a namespace of the test's own, in which pods can be created."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert api.create("/api/v1/namespaces", body).code == 201
    accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
    with api.watch(accounts, fieldSelector="metadata.name=default") as events:
        assert events.next()[0] == "ADDED"
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def config_maps(namespace: str) -> str:
    """Return the path of the test's ConfigMaps."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.fixture
def pods(namespace: str) -> str:
    """Return the path of the test's pods."""
    return f"/api/v1/namespaces/{namespace}/pods"


@pytest.fixture
def node(api: ApiUnderTest, name: str) -> Iterator[str]:
    """Return the path of a node of the test's own, which no kubelet serves."""
    path = f"/api/v1/nodes/{name}"
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    assert api.create("/api/v1/nodes", body).code == 201
    yield path
    api.delete(path)


@pytest.fixture
def gadgets(api: ApiUnderTest) -> Iterator[str]:
    """Return the path of a custom resource that is there."""
    if api.get(gadget.PATH).code != 200:
        api.create(gadget.DEFINITIONS, gadget.DEFINITION)
        _await(lambda: api.get(gadget.PATH).code == 200)
    yield gadget.PATH
    api.delete(gadget.PATH)


def _await(condition: Callable[[], Any]) -> None:
    """Ask until the condition holds: nothing tells when a new resource is served."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        threading.Event().wait(_OFTEN)
