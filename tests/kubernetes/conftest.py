"""One cluster for all tests of this folder, cleaned after each."""

import itertools
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

import pytest
from testbed import isolation, needs, programs
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from tests.kubernetes.kubelet_under_test import KubeletUnderTest
from tests.kubernetes.plugin import HEALTHY, Plugin
from tests.kubernetes.real_kubelet import RealKubelet

_NAMES = itertools.count(1)
_CLUSTER = pytest.StashKey[Cluster]()


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker by which fast runs leave these tests out."""
    config.addinivalue_line("markers", "kubernetes: runs on a real cluster; see testbed/")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark every test of this folder."""
    item.add_marker(pytest.mark.kubernetes)


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


@pytest.fixture
def cluster(_session_cluster: Cluster) -> Iterator[Cluster]:
    """Return the cluster, without pods and extended resources."""
    yield _session_cluster
    _session_cluster.reset()


@pytest.fixture
def kubelet(cluster: Cluster) -> KubeletUnderTest:
    """Return the first node's kubelet."""
    return RealKubelet(cluster, cluster.nodes["node-1"])


@pytest.fixture
def other_kubelet(cluster: Cluster) -> KubeletUnderTest:
    """Return the second node's kubelet."""
    return RealKubelet(cluster, cluster.nodes["node-2"])


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
