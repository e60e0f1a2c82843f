"""Where plugins and monitors meet a simulated kubelet."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from partita.simulator.kubelet.checkpoint import Checkpoint

__all__ = ["Folders"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """The folders of one node, all in one.

    Paths of sockets may have 107 characters on Linux, so keep the base short.

    Attributes:
        base: The folder of all.
    """

    base: Path

    @property
    def device_plugins(self) -> Path:
        """The folder of ``kubelet.sock``, of the plugins' sockets and of the checkpoint."""
        return self.base / "device-plugins"

    @property
    def plugin_registry(self) -> Path:
        """The folder that the kubelet searches for plugins that wait to be asked."""
        return self.base / "plugins_registry"

    @property
    def pod_resources(self) -> Path:
        """The socket of the PodResources API."""
        return self.base / "pod-resources" / "kubelet.sock"

    @property
    def cdi(self) -> Path:
        """The folder of CDI files that containers of this node can refer to."""
        return self.base / "cdi"

    @property
    def checkpoint(self) -> Path:
        """The kubelet's memory of devices."""
        return self.device_plugins / "kubelet_internal_checkpoint"

    @property
    def registration(self) -> Path:
        """The socket on which plugins register."""
        return self.device_plugins / "kubelet.sock"

    def prepare(self) -> None:
        """Make what is missing, and remove every socket of plugins, as a kubelet does that starts.

        What lies in the plugin registry stays.
        """
        for folder in (self.device_plugins, self.plugin_registry, self.cdi, self._bound):
            folder.mkdir(parents=True, exist_ok=True)
        self.pod_resources.parent.mkdir(exist_ok=True)
        self.pod_resources.unlink(missing_ok=True)
        for file in (*self.device_plugins.iterdir(), *self._bound.iterdir()):
            if file.is_socket():
                file.unlink()

    def bind_path(self, socket: Path) -> Path:
        """Return where to bind what is to be met at ``socket`` after ``publish``.

        gRPC removes a socket some time after its server has stopped, by its path. A kubelet that
        was killed leaves its own, and the next one has the same path.
        """
        return self._bound / f"{socket.parent.name}-{os.urandom(4).hex()}.sock"

    def publish(self, bound: Path, socket: Path) -> None:
        """Let a bound socket be met at another path; a watcher sees a file that is created."""
        socket.unlink(missing_ok=True)
        os.link(bound, socket)

    def read_checkpoint(self) -> Checkpoint | None:
        """Return what a kubelet wrote before, None when none did."""
        try:
            text = self.checkpoint.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return Checkpoint.parse(json.loads(text))

    def write_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Replace the file at once: a reader finds the old or the new."""
        new = self.device_plugins / ".kubelet_internal_checkpoint.new"
        new.write_text(json.dumps(checkpoint.document()), encoding="utf-8")
        new.replace(self.checkpoint)

    @property
    def _bound(self) -> Path:
        return self.base / "bound"
