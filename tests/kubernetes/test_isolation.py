"""A cluster does nothing to the machine, and leaves nothing behind."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from testbed import images, isolation, waiting
from testbed.cluster import Cluster
from testbed.errors import WaitError
from tests.kubernetes import pods

_POD = f"""
kubectl run one --image={images.BUSYBOX} --image-pull-policy=Never -- sleep 3600
kubectl wait --for=condition=Ready pod/one
echo begin
sleep 3600
"""


def _traces() -> dict[str, set[str]]:
    """Return what a program can leave behind outside of its cache."""
    addresses = subprocess.run(
        ["ip", "-oneline", "address"], capture_output=True, text=True, check=True
    ).stdout
    folders = (Path("/run"), isolation.STATE, Path("/var/lib"), Path("/var/log"), Path("/etc"))
    return {
        "addresses": set(addresses.splitlines()),
        "mounts": set(Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()),
        "control groups": {
            str(group)
            for hierarchy in isolation.control_group_folders("")
            for group in hierarchy.glob("partita-*")
        },
        "files": {str(path) for folder in folders for path in folder.glob("*")},
        "processes": {path.name for path in Path("/proc").glob("[0-9]*")},
    }


def _new_since(before: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the traces that were not there before, by their kind.

    Only these count: the pods of an earlier test may still be ending, and what they take with
    them was never this cluster's.
    """
    new = {kind: traces - before[kind] for kind, traces in _traces().items()}
    return {kind: traces for kind, traces in new.items() if traces}


def test_killing_the_guardian_leaves_nothing(cluster: Cluster) -> None:
    """After SIGKILL no process, mount, address, control group or file of a cluster remains."""
    del cluster  # that there can be one is all we need of it
    before = _traces()
    shell = [sys.executable, "-m", "testbed", "shell", "--nodes=1", "sh", "-ec", _POD]
    environment = isolation.outside()
    with subprocess.Popen(shell, stdout=subprocess.PIPE, text=True, env=environment) as guardian:
        assert guardian.stdout is not None
        assert "begin\n" in iter(guardian.stdout.readline, "")
        during = _new_since(before)
        guardian.send_signal(signal.SIGKILL)

    assert len(during["processes"]) > 8
    assert during["control groups"]
    try:
        waiting.poll(lambda: not _new_since(before), seconds=20, otherwise="traces remain")
    except WaitError as error:
        pytest.fail(f"{error}: {_new_since(before)}")


def test_kernel_settings_stay(cluster: Cluster) -> None:
    """What a kubelet sets for the whole machine it finds set already, and does not touch."""
    cluster.run(pods.pod("one", pods.container()))
    cluster.await_pod("one", pods.running)

    log = cluster.nodes["node-1"].kubelet.log.read_text(encoding="utf-8")
    assert "Updating kernel flag" not in log
