"""The DaemonSet of ``deploy/`` on real kubelets: the agent gets what it needs and serves its node.

The GPUs are simulated, everything else is real. Two folders of the node are left out, because the
nodes here share them with the machine: those of CDI and of the state file.
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed import python_prefix
from testbed.cluster import DAEMON_SETS, Cluster

from partita.manifests import agent

_IMAGE = "testbed.local/partita-agent:1"
_NEEDS = ["partita", "click", "PyYAML", "grpcio", "protobuf", "typing_extensions", "nvidia-ml-py"]
_ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
_NODE = "node-1"
_LABEL = "partita.dev/agent"
_OF_THE_MACHINE = ("cdi", "state")


@pytest.fixture
def labelled(cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """Return a cluster with the image, the agent's account, and one node that says it has GPUs."""
    python_prefix.lay_out(tmp_path, _NEEDS)
    cluster.add_image(_IMAGE, tmp_path, ["python3"])
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": agent.ACCOUNT}}
    cluster.api.create(_ACCOUNTS, account)
    _label(cluster, "true")
    yield cluster
    _label(cluster, None)
    cluster.api.delete(f"{_ACCOUNTS}/{agent.ACCOUNT}")


def _label(cluster: Cluster, value: str | None) -> None:
    cluster.api.patch(f"/api/v1/nodes/{_NODE}", {"metadata": {"labels": {_LABEL: value}}})


def _daemon_set() -> Any:
    """Return the manifest, changed only where the test bed differs from a cluster with GPUs."""
    documents = agent.documents(image=_IMAGE, namespace="default")
    (found,) = (one for one in documents if one["kind"] == "DaemonSet")
    daemon_set: Any = copy.deepcopy(dict(found))
    pod = daemon_set["spec"]["template"]["spec"]
    for volume in pod["volumes"]:
        if volume["name"] in _OF_THE_MACHINE:
            del volume["hostPath"]
            volume["emptyDir"] = {}
    (container,) = pod["containers"]
    for mount in container["volumeMounts"]:
        mount.pop("mountPropagation", None)  # the root of these nodes is private, systemd's is not
    container["imagePullPolicy"] = "Never"
    container["command"] = ["python3", "-m", "partita"]
    container["args"] += ["--simulate=A100-SXM4-40GB:2", "--kubelet-folder=/var/lib/kubelet"]
    container["args"] += ["--state=/run/partita/agent.json"]
    return daemon_set


def test_the_agent_of_the_manifests_serves_its_node(labelled: Cluster) -> None:
    """It runs where a label says that there are GPUs, becomes ready, and the node has them."""
    labelled.api.create(DAEMON_SETS, _daemon_set())

    labelled.await_node(
        _NODE, lambda it: it["status"]["allocatable"].get("nvidia.com/gpu") == "2", seconds=40
    )
    found = labelled.api.wait(
        f"{DAEMON_SETS}/{agent.ACCOUNT}",
        lambda it: it is not None and it["status"].get("numberReady") == 1,
    )

    assert found is not None
    assert found["status"]["desiredNumberScheduled"] == 1
