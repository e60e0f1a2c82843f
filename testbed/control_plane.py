"""The part of a cluster that is there once: etcd, API server, controller manager, scheduler."""

import secrets
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from testbed import documents
from testbed.api import Api
from testbed.component import Component
from testbed.errors import MissingError, TestbedError

HOST = "10.77.0.1"
ADDRESS = f"{HOST}:443"
_SERVICES = "10.77.64.0/24"
_API_SERVICE = "10.77.64.1"  # the first of the services: what pods find as `kubernetes`
_ETCD = "127.0.0.1:2379"
MOST_NODES = 20
"""Tokens are read once, when the API server starts, so those of later nodes exist by then."""


class ControlPlane:
    """The programs, their secrets, and a client with all rights.

    The API server listens on the very address and port of the service ``kubernetes``, so pods
    reach it although nothing forwards services here.
    """

    def __init__(
        self, folder: Path, programs: Mapping[str, Path], feature_gates: Mapping[str, bool]
    ) -> None:
        self._folder = folder
        self._programs = programs
        self._gates = ",".join(f"{name}={value}" for name, value in feature_gates.items())
        self._tokens = {
            user: secrets.token_hex(16)
            for user in (
                "admin",
                "system:kube-scheduler",
                *map(node_user, range(1, MOST_NODES + 1)),
            )
        }
        self.authority = folder / "api" / "apiserver.crt"
        self.api = Api(address=ADDRESS, token=self._tokens["admin"], authority=self.authority)
        self.etcd = self._component("etcd", *self._etcd_flags())
        self.api_server = self._component("kube-apiserver", *self._api_server_flags())
        self.controllers = self._component(
            "kube-controller-manager", *self._controller_flags(), *self._gate_flags()
        )
        self.scheduler = self._component(
            "kube-scheduler", *self._scheduler_flags(), *self._gate_flags()
        )

    @property
    def components(self) -> tuple[Component, ...]:
        """Every program, in the order of starting."""
        return (self.etcd, self.api_server, self.controllers, self.scheduler)

    def start_store(self) -> None:
        """Start etcd and the API server, without waiting for them."""
        self._write_secrets()
        for address in (HOST, _API_SERVICE):
            add_address(address)
        self.etcd.start()
        self.etcd.await_ready(lambda: _answers(f"http://{_ETCD}/readyz"), seconds=20)
        self.api_server.start()

    def await_api(self) -> None:
        """Wait until the API server is ready to serve everything."""
        self.api_server.await_ready(self._api_is_ready, seconds=60)

    def start_controllers(self) -> None:
        """Start those who act on objects."""
        self.kubeconfig("admin")
        self.kubeconfig("system:kube-scheduler")
        self.controllers.start()
        self.scheduler.start()

    def kubeconfig(self, user: str) -> Path:
        """Return the kubeconfig file of a user, written once the API server has a certificate."""
        path = self._kubeconfig_path(user)
        if not path.exists():
            text = documents.kubeconfig(
                address=ADDRESS, token=self._tokens[user], authority=self.authority.read_bytes()
            )
            path.write_text(text, encoding="utf-8")
        return path

    def stop(self) -> None:
        """Stop everything, those who use the API first, and remove the files."""
        for component in reversed(self.components):
            component.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _api_is_ready(self) -> bool:
        try:
            return self.authority.exists() and self.api.get("/readyz") == "ok"
        except (OSError, TestbedError):
            return False

    def _component(self, name: str, *flags: str) -> Component:
        command = [str(self._programs[name]), *flags]
        return Component(
            name, command, self._folder / f"{name}.log", {"PATH": "/usr/sbin:/usr/bin"}
        )

    def _kubeconfig_path(self, user: str) -> Path:
        return self._folder / f"{user.rsplit(':', 1)[-1]}.kubeconfig"

    def _write_secrets(self) -> None:
        self._folder.mkdir()
        lines = [f"{self._tokens['admin']},admin,admin,system:masters"]
        for user in self._tokens.keys() - {"admin"}:
            group = "system:nodes" if user.startswith("system:node:") else "system:authenticated"
            lines.append(f"{self._tokens[user]},{user},{user},{group}")
        (self._folder / "tokens.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        key = ["openssl", "genrsa", "-out", str(self._folder / "accounts.key"), "2048"]
        done = subprocess.run(key, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise MissingError(f"openssl cannot make a key: {done.stderr}", hint="make testbed")

    def _etcd_flags(self) -> tuple[str, ...]:
        return (
            f"--data-dir={self._folder}/etcd",
            f"--listen-client-urls=http://{_ETCD}",
            f"--advertise-client-urls=http://{_ETCD}",
            "--listen-peer-urls=http://127.0.0.1:2380",
            "--unsafe-no-fsync",
        )

    def _api_server_flags(self) -> tuple[str, ...]:
        key = self._folder / "accounts.key"
        return (
            f"--etcd-servers=http://{_ETCD}",
            "--bind-address=0.0.0.0",  # of a network that has only this cluster
            "--secure-port=443",
            f"--advertise-address={HOST}",
            f"--service-cluster-ip-range={_SERVICES}",
            f"--cert-dir={self._folder}/api",
            f"--token-auth-file={self._folder}/tokens.csv",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--kubelet-preferred-address-types=InternalIP",
            "--allow-privileged=true",
            *self._gate_flags(),
        )

    def _controller_flags(self) -> tuple[str, ...]:
        return (
            f"--kubeconfig={self._kubeconfig_path('admin')}",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self._folder}/accounts.key",
            f"--root-ca-file={self.authority}",
            "--leader-elect=false",
        )

    def _scheduler_flags(self) -> tuple[str, ...]:
        kubeconfig = self._kubeconfig_path("system:kube-scheduler")
        return (f"--kubeconfig={kubeconfig}", "--leader-elect=false")

    def _gate_flags(self) -> tuple[str, ...]:
        return (f"--feature-gates={self._gates}",) if self._gates else ()


def node_user(number: int) -> str:
    """Return the user name of a node's kubelet."""
    return f"system:node:node-{number}"


def add_address(address: str) -> None:
    """Give this network an address; one that is there already may stay."""
    add = ["ip", "address", "replace", f"{address}/32", "dev", "lo"]
    subprocess.run(add, check=True)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except (urllib.error.URLError, OSError):
        return False
