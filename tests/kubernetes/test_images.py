"""Images are made from folders, and run on every node."""

import json
import subprocess
import sys
from pathlib import Path

from testbed import needs, python_prefix
from testbed.cluster import DAEMON_SETS, PODS, Cluster
from tests.kubernetes import pods
from tests.kubernetes.kubelet_under_test import Object

_SHOW_A30 = ("-m", "partita", "gpus", "a30", "-o", "json")


def _daemon_set(name: str, spec: Object) -> Object:
    """Return a DaemonSet of pods with this specification."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _is_on(nodes: int, daemon_set: Object | None) -> bool:
    return daemon_set is not None and daemon_set["status"].get("numberReady") == nodes


def test_an_image_can_be_made_from_a_folder(cluster: Cluster, tmp_path: Path) -> None:
    """A pod runs a program of an image that was nothing but a folder."""
    folder = tmp_path / "root"
    (folder / "bin").mkdir(parents=True)
    busybox = folder / "bin" / "busybox"
    busybox.write_bytes(needs.busybox().read_bytes())
    busybox.chmod(0o755)
    command = ["/bin/busybox", "echo", "made from a folder"]
    cluster.add_image("testbed.local/folder:1", folder, command)

    container = pods.container() | {"image": "testbed.local/folder:1"}
    del container["command"]
    cluster.run(pods.pod("one", container))
    cluster.await_pod("one", lambda pod: bool(pod["status"].get("phase") == "Succeeded"))

    log = cluster.api.get("/api/v1/namespaces/default/pods/one/log")
    assert log == "made from a folder\n"


def test_partita_runs_as_a_daemon_set(cluster: Cluster, tmp_path: Path) -> None:
    """An image of this interpreter and partita answers on every node as it does outside."""
    python_prefix.lay_out(tmp_path, ["partita", "click", "PyYAML"])
    cluster.add_image("testbed.local/partita:1", tmp_path, ["python3"])
    show = pods.container(name="show") | {"image": "testbed.local/partita:1", "args": _SHOW_A30}
    del show["command"]

    spec = {"initContainers": [show], "containers": [pods.container()]}
    cluster.api.create(DAEMON_SETS, _daemon_set("agent", spec))
    cluster.api.wait(f"{DAEMON_SETS}/agent", lambda it: _is_on(len(cluster.nodes), it))

    outside = subprocess.check_output([sys.executable, *_SHOW_A30])
    found = cluster.api.get(f"{PODS}?labelSelector=app%3Dagent")["items"]
    assert {pod["spec"]["nodeName"] for pod in found} == set(cluster.nodes)
    for pod in found:
        log = cluster.api.get(f"{PODS}/{pod['metadata']['name']}/log?container=show")
        assert json.loads(log) == json.loads(outside)
