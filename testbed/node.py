"""A node: a kubelet and a containerd with a view of the file system of their own.

Kubelet's device-plugin folder is fixed, so several kubelets on one machine each need their own
``/var/lib/kubelet``. A mount namespace per node gives it to them. A sleeping process keeps it, not
a file: some kernels (6.18) refuse now and then to keep a mount namespace by a file.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed import documents, isolation, needs, waiting
from testbed.component import Component
from testbed.control_plane import add_address

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_REST_SECONDS = 30
_PROGRAMS = ("kubelet", "containerd", "containerd-shim-runc-v2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where the outside meets a kubelet; paths as the tests see them."""

    kubelet: Path
    """The kubelet's own ``/var/lib/kubelet``."""
    cdi: Path

    @property
    def device_plugins(self) -> Path:
        """Where device plugins put their sockets, and the kubelet its ``kubelet.sock``."""
        return self.kubelet / "device-plugins"

    @property
    def plugin_registry(self) -> Path:
        """Where the kubelet looks for plugins that wait to be asked."""
        return self.kubelet / "plugins_registry"

    @property
    def pod_resources(self) -> Path:
        """The socket of the PodResources API."""
        return self.kubelet / "pod-resources" / "kubelet.sock"


class Node:
    """One node. ``settings`` are fields of its KubeletConfiguration that differ from the usual."""

    def __init__(
        self,
        number: int,
        programs: Mapping[str, Path],
        *,
        feature_gates: Mapping[str, bool],
        settings: Mapping[str, Any],
    ) -> None:
        self.name = f"node-{number}"
        self.address = f"10.77.0.{10 + number}"
        self.settings = dict(settings)
        self._subnet = f"10.77.{100 + number}.0/24"
        self._programs = programs
        self._gates = feature_gates
        self._folder = isolation.STATE / self.name
        self.folders = Folders(kubelet=self._folder / "lib" / "kubelet", cdi=self._folder / "cdi")
        self._keeper = Component(
            f"file system of {self.name}",
            ["unshare", "--mount", "--propagation=private", "sh", "-ec", ""],
            self._folder / "keeper.log",
            {"PATH": _PATH},
        )
        self.containerd = self._component(
            "containerd", f"--config={self._folder}/containerd.toml", "--log-level=info"
        )
        self.kubelet = self._component(
            "kubelet",
            f"--config={self._folder}/kubelet.json",
            f"--kubeconfig={self._folder}/kubeconfig",
            f"--hostname-override={self.name}",
            f"--node-ip={self.address}",
            "--v=3",
        )

    @property
    def components(self) -> tuple[Component, ...]:
        """The programs of this node, in the order of starting."""
        return (self.containerd, self.kubelet)

    def start_runtime(self, images: list[Path]) -> None:
        """Make the node's view of the file system, start containerd in it and load the images."""
        self._prepare()
        add_address(self.address)
        self.containerd.start()
        self.containerd.await_ready(self._runtime_is_ready, seconds=30)
        for image in images:
            self.load_image(image)

    def load_image(self, archive: Path) -> None:
        """Load an image that ``images.archive`` wrote."""
        self._ctr("images", "import", "--snapshotter=overlayfs", str(archive))

    def start_kubelet(self, kubeconfig: Path | None = None) -> None:
        """See that the kubelet runs with the present settings, and wait until it serves."""
        if kubeconfig is not None:
            shutil.copy(kubeconfig, self._folder / "kubeconfig")
        text = documents.kubelet(
            address=self.address,
            socket=Path("/run/containerd/containerd.sock"),
            folder=Path("/var/lib/kubelet"),
            control_group=self._control_group,
            feature_gates=self._gates,
            settings=self.settings,
        )
        file = self._folder / "kubelet.json"
        if self.kubelet.running and file.read_text(encoding="utf-8") != text:
            self.kubelet.stop()
        file.write_text(text, encoding="utf-8")
        if not self.kubelet.running:
            self._registration.unlink(missing_ok=True)  # its return is the sign of being ready
            self.folders.pod_resources.unlink(missing_ok=True)
        self.kubelet.start()
        self.kubelet.await_ready(self._kubelet_is_ready, seconds=30)

    def restart_kubelet(self, number: int = signal.SIGTERM, **settings: Any) -> None:
        """Stop the kubelet with a signal and start it, from now on with these settings as well."""
        self.kubelet.stop(number)
        self.settings |= settings
        self.start_kubelet()

    def forget_devices(self) -> None:
        """Restart the kubelet without its memory of devices that were given out."""
        self.kubelet.stop(signal.SIGKILL)
        self.folders.device_plugins.joinpath("kubelet_internal_checkpoint").unlink(missing_ok=True)
        self.start_kubelet()

    def clear_folders(self) -> None:
        """Remove what tests left in the folders of CDI and of the plugin registry."""
        for folder in (self.folders.cdi, self.folders.plugin_registry):
            for file in folder.iterdir():
                file.unlink()

    def containers(self) -> list[str]:
        """Return the containers that run, those that hold a pod's namespaces included."""
        return self._ctr("tasks", "list", "--quiet").split()

    def await_rest(self) -> None:
        """Wait until nothing runs in containers."""
        waiting.poll(
            lambda: not self.containers(),
            seconds=_REST_SECONDS,
            otherwise=f"containers still run on {self.name}",
        )

    def control_group_of(self, container: str) -> str:
        """Return the control group of a running container, below that of this node."""
        tasks = (line.split() for line in self._ctr("tasks", "list").splitlines())
        process = next(fields[1] for fields in tasks if fields[0] == container)
        lines = Path(f"/proc/{process}/cgroup").read_text(encoding="utf-8").splitlines()
        groups = {kind: path for _, kind, path in (line.split(":", 2) for line in lines)}
        group = groups.get("memory") or groups[""]
        return group.removeprefix(f"/{self._control_group}")

    def stop(self) -> None:
        """Stop the programs, end what runs in containers, and remove the node's files."""
        self.kubelet.stop(signal.SIGKILL)
        with contextlib.suppress(subprocess.CalledProcessError):
            for container in self.containers():
                self._ctr("tasks", "kill", "--signal=SIGKILL", "--all", container)
        self.containerd.stop(signal.SIGKILL)
        if self._namespace.exists():
            self._end_shims()
            self._keeper.stop(signal.SIGKILL)
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _namespace(self) -> Path:
        return self._folder / "namespace"

    @property
    def _registration(self) -> Path:
        return self.folders.device_plugins / "kubelet.sock"

    @property
    def _control_group(self) -> str:
        return f"{isolation.control_group()}/{self.name}"

    @property
    def _state(self) -> Path:
        return self._folder / "run" / "containerd"

    def _component(self, name: str, *flags: str) -> Component:
        command = ["nsenter", f"--mount={self._namespace}", f"{self._folder}/bin/{name}", *flags]
        environment = {"PATH": f"{self._folder}/bin:{_PATH}"}
        log = self._folder / f"{name}.log"
        return Component(f"{name} of {self.name}", command, log, environment)

    def _prepare(self) -> None:
        """Write the configuration and make the mount namespace."""
        for name in ("bin", "cdi", "containerd", "lib/kubelet", "log", "network"):
            (self._folder / name).mkdir(parents=True)
        for name in ("containerd", "netns"):
            (self._folder / "run" / name).mkdir(parents=True)
            Path("/run", name).mkdir(exist_ok=True)
        for group in isolation.control_group_folders(self._control_group):
            group.mkdir(parents=True, exist_ok=True)
        self._write_configuration()
        script = [
            *(self._covered_program(program) for program in _PROGRAMS),
            f"mount --bind {self._folder}/lib /var/lib",
            f"mount --bind {self._folder}/log /var/log",
            f"mount --bind {self._state} /run/containerd",
            f"mount --bind {self._folder}/run/netns /run/netns",
            f"ln -s /proc/$$/ns/mnt {self._namespace}",
            "exec sleep infinity",
        ]
        self._keeper.command[-1] = "\n".join(script)
        self._keeper.start()
        self._keeper.await_ready(self._namespace.exists, seconds=10)

    def _covered_program(self, program: str) -> str:
        """Return the command that keeps a program reachable wherever the cache is."""
        target = self._folder / "bin" / program
        target.touch()
        return f"mount --bind '{self._programs[program]}' {target}"

    def _write_configuration(self) -> None:
        network = documents.network(subnet=self._subnet, leases=self._folder / "network" / "leases")
        (self._folder / "network" / "10-testbed.conflist").write_text(network, encoding="utf-8")
        containerd = documents.containerd(
            folder=self._folder / "containerd",
            state=Path("/run/containerd"),
            cdi=self.folders.cdi,
            network=self._folder / "network",
            plugins=needs.cni_folder(),
        )
        (self._folder / "containerd.toml").write_text(containerd, encoding="utf-8")

    def _runtime_is_ready(self) -> bool:
        try:
            self._ctr("version")
        except subprocess.CalledProcessError:
            return False
        return True

    def _kubelet_is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}:10248/healthz", timeout=1):
                return self._registration.exists() and self.folders.pod_resources.exists()
        except (urllib.error.URLError, OSError):
            return False

    def _ctr(self, *arguments: str) -> str:
        socket = f"--address={self._state}/containerd.sock"
        command = [str(self._programs["ctr"]), socket, "--namespace=k8s.io", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def _end_shims(self) -> None:
        """End what still runs in this node's mount namespace."""
        own = self._namespace.stat().st_ino
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (process / "ns" / "mnt").stat().st_ino == own:
                    os.kill(int(process.name), signal.SIGKILL)
