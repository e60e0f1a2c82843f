"""A cluster does nothing to the machine, and leaves nothing behind."""

import signal
import subprocess
import sys
from pathlib import Path

from testbed import images, isolation, waiting
from testbed.cluster import Cluster
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


def test_killing_the_guardian_leaves_nothing(cluster: Cluster) -> None:
    """After SIGKILL no process, mount, address, control group or file of a cluster remains."""
    del cluster  # that there can be one is all we need of it
    before = _traces()
    shell = [sys.executable, "-m", "testbed", "shell", "--nodes=1", "sh", "-ec", _POD]
    environment = isolation.outside()
    with subprocess.Popen(shell, stdout=subprocess.PIPE, text=True, env=environment) as guardian:
        assert guardian.stdout is not None
        assert "begin\n" in iter(guardian.stdout.readline, "")
        during = _traces()
        guardian.send_signal(signal.SIGKILL)

    assert len(during["processes"] - before["processes"]) > 8
    assert during["control groups"] > before["control groups"]
    waiting.poll(lambda: _traces() == before, seconds=20, otherwise="traces remain")


def test_kernel_settings_stay(cluster: Cluster) -> None:
    """What a kubelet sets for the whole machine it finds set already, and does not touch."""
    cluster.run(pods.pod("one", pods.container()))
    cluster.await_pod("one", pods.running)

    log = cluster.nodes["node-1"].kubelet.log.read_text(encoding="utf-8")
    assert "Updating kernel flag" not in log
