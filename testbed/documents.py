"""The configuration of a node's programs and of clients, as text. Pure."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAUSE = "testbed.local/pause:1"
"""The image that holds a pod's namespaces."""


def kubelet(
    *,
    address: str,
    socket: Path,
    folder: Path,
    control_group: str,
    feature_gates: Mapping[str, bool],
    settings: Mapping[str, Any],
) -> str:
    """Return a KubeletConfiguration; ``settings`` has the last word, field by field."""
    document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "healthzBindAddress": address,
        "containerRuntimeEndpoint": f"unix://{socket}",
        "volumePluginDir": str(folder / "volume-plugins"),
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{control_group}",
        "failCgroupV1": False,  # many development machines still have version 1
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,  # else cAdvisor must understand the root disk
        "makeIPTablesUtilChains": False,
        "evictionHard": {},
        "imageGCHighThresholdPercent": 100,
        "resolvConf": "",
        "featureGates": dict(feature_gates),
        **settings,
    }
    return json.dumps(document, indent=2)


def containerd(*, folder: Path, state: Path, cdi: Path, network: Path, plugins: Path) -> str:
    """Return the configuration of a node's containerd."""
    return f"""\
version = 3
root = "{folder}"
state = "{state}"

[grpc]
address = "{state}/containerd.sock"

[plugins.'io.containerd.nri.v1.nri']
disable = true  # its socket has one path for all nodes of the machine

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{PAUSE}"

[plugins.'io.containerd.cri.v1.runtime']
enable_cdi = true
cdi_spec_dirs = ["{cdi}"]
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["{plugins}"]
conf_dir = "{network}"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def network(*, subnet: str, leases: Path) -> str:
    """Return a CNI network: a wire from every pod to the node, no firewall rules."""
    addresses = {
        "type": "host-local",
        "dataDir": str(leases),
        "ranges": [[{"subnet": subnet}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    plugins = [{"type": "ptp", "ipMasq": False, "ipam": addresses}]
    return json.dumps({"cniVersion": "1.0.0", "name": "testbed", "plugins": plugins})


def kubeconfig(*, address: str, token: str, authority: bytes) -> str:
    """Return a kubeconfig for one user."""
    cluster = {
        "server": f"https://{address}",
        "certificate-authority-data": base64.b64encode(authority).decode(),
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": cluster}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "user"}}],
        "current-context": "testbed",
    }
    return json.dumps(document, indent=2)
