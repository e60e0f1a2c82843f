"""One cluster for all tests of this folder, cleaned after each; and a simulated kubelet.

A test that asks for a kubelet and not for the cluster is about a kubelet alone: it runs over the
simulated one, always, and over the real one, where there is a cluster.
"""

import itertools
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from testbed import isolation, needs, programs, waiting
from testbed.cluster import Cluster
from testbed.errors import ApiError, TestbedError
from tests.kubernetes import simulated_kubelet
from tests.kubernetes.agent import AgentUnderTest
from tests.kubernetes.kubelet_under_test import KubeletUnderTest
from tests.kubernetes.plugin import HEALTHY, Plugin
from tests.kubernetes.real_kubelet import RealKubelet
from tests.kubernetes.simulated_kubelet import Loop
from tests.nvml.world import World

from partita.manifests import crds
from partita.manifests.crds import DEFINITIONS

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NAMES = itertools.count(1)
_CLUSTER = pytest.StashKey[Cluster]()
_REAL, _SIMULATED = "real", "simulated"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark every test of this folder that runs over the real thing."""
    if not isinstance(item, pytest.Function) or not _is_simulated(item):
        item.add_marker(pytest.mark.kubernetes)
    elif "agent" in item.path.stem:
        item.add_marker(pytest.mark.slow)


def _is_simulated(item: pytest.Function) -> bool:
    return hasattr(item, "callspec") and item.callspec.params.get("_kind") == _SIMULATED


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Ask what is about a kubelet alone of the simulated one as well."""
    if "_kind" in metafunc.fixturenames:
        kinds = [_REAL] if "cluster" in metafunc.fixturenames else [_SIMULATED, _REAL]
        metafunc.parametrize("_kind", kinds)


@pytest.fixture(scope="session")
def _session_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Start the cluster, or say in one line why there is none; in CI that is a failure."""
    if reason := _why_not():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    with Cluster(nodes=2, kubelet={"nodeStatusUpdateFrequency": "1s"}) as cluster:
        request.config.stash[_CLUSTER] = cluster
        yield cluster


def _why_not() -> str:
    try:
        needs.machine()
        programs.find()
    except TestbedError as error:
        return f"no cluster: {error.message} ({error.hint})"
    return "" if isolation.inside() else "no cluster outside of: python -m testbed run"


@pytest.fixture(scope="session")
def _definitions(_session_cluster: Cluster) -> Cluster:
    """Return the cluster with our definitions, which stay: to remove them can take a minute."""
    api = _session_cluster.api
    for one in DEFINITIONS:
        api.create(_DEFINITIONS, dict(crds.document(one)))
    for one in DEFINITIONS:
        api.wait(f"{_DEFINITIONS}/{one.name}", _is_established)
    return _session_cluster


def _is_established(definition: dict[str, Any] | None) -> bool:
    conditions = (definition or {}).get("status", {}).get("conditions", [])
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


@pytest.fixture
def defined(_definitions: Cluster, cluster: Cluster) -> Iterator[Cluster]:
    """Return the cluster with our definitions, and without objects of them afterwards."""
    paths = [f"/apis/partita.dev/v1alpha1/{one.plural}" for one in DEFINITIONS]
    _await_served(cluster, paths)
    yield cluster
    _await_served(cluster, paths)
    for path in paths:
        for found in cluster.api.get(path)["items"]:
            cluster.api.delete(f"{path}/{found['metadata']['name']}")


def _await_served(cluster: Cluster, paths: Sequence[str]) -> None:
    """Wait until objects can be listed: a definition that was made or changed is away at first."""

    def are_served() -> bool:
        try:
            return all("items" in cluster.api.get(path) for path in paths)
        except ApiError:
            return False

    waiting.poll(are_served, seconds=30, otherwise="our objects are not served")


@pytest.fixture
def cluster(_session_cluster: Cluster) -> Iterator[Cluster]:
    """Return the cluster, without pods and extended resources."""
    yield _session_cluster
    _session_cluster.reset()


@pytest.fixture(scope="session")
def _loop() -> Iterator[Loop]:
    """Start the thread in which simulated kubelets live."""
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def kubelet(_kind: str, request: pytest.FixtureRequest) -> Iterator[KubeletUnderTest]:
    """Return the first node's kubelet."""
    with _node(_kind, "node-1", request) as kubelet:
        yield kubelet


@pytest.fixture
def other_kubelet(_kind: str, request: pytest.FixtureRequest) -> Iterator[KubeletUnderTest]:
    """Return the second node's kubelet."""
    with _node(_kind, "node-2", request) as kubelet:
        yield kubelet


@contextmanager
def _node(kind: str, name: str, request: pytest.FixtureRequest) -> Iterator[KubeletUnderTest]:
    if kind == _SIMULATED:
        with simulated_kubelet.start(request.getfixturevalue("_loop")) as kubelet:
            yield kubelet
    else:
        cluster: Cluster = request.getfixturevalue("cluster")
        yield RealKubelet(cluster, cluster.nodes[name])


@pytest.fixture
def resource() -> str:
    """Return the name of a resource that no test had before."""
    return f"example.com/slice-{next(_NAMES)}"


@pytest.fixture
def make_plugin(kubelet: KubeletUnderTest, resource: str) -> Iterator[Callable[..., Plugin]]:
    """Return a function that makes a plugin for the first kubelet, by default of this resource."""
    made: list[Plugin] = []

    def make(*devices: str, health: Mapping[str, str] | None = None, **options: Any) -> Plugin:
        listed = dict.fromkeys(devices, HEALTHY) | dict(health or {})
        at = options.pop("at", kubelet)
        plugin = Plugin(at.folders.device_plugins, resource, listed, **options)
        made.append(plugin)
        return plugin

    yield make
    for plugin in made:
        plugin.leave()


@pytest.fixture
def make_agent(
    kubelet: KubeletUnderTest, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., AgentUnderTest]]:
    """Return a function that makes an agent for the first kubelet, with GPUs of these models."""
    made: list[AgentUnderTest] = []

    def make(*models: str, wanted: str = "", options: Sequence[str] = (), **gpus: Any) -> Any:
        world = gpus.pop("world", None) or World(tmp_path / "gpus.txt", *models, **gpus)
        agent = AgentUnderTest(tmp_path, kubelet, world, *options)
        made.append(agent)
        if wanted:
            agent.want(wanted)
        return agent

    yield make
    for agent in made:
        agent.kill()
        request.node.add_report_section("teardown", f"log of {agent.name}", agent.log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the end of every program's log to the report of a failed test."""
    report = yield
    cluster = item.config.stash.get(_CLUSTER, None)
    if cluster is not None and report.failed and call.when != "teardown":
        report.sections.append(("logs of the cluster", cluster.logs()))
    return report
