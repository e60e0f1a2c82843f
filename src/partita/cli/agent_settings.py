"""What the command line of ``partita agent`` says."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from partita.config.serving_options import DeviceIdStrategy, DeviceListStrategy

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the command line says.

    Attributes:
        config: File with what is wanted, None for none.
        config_name: Which of several configurations in it.
        allow_reset: Whether GPUs may be reset for a mig-parted config.
        simulate: GPUs to simulate, None for the real ones.
        node_name: Name of the node.
        labels: Labels of the node, None when they are not told.
        kubelet_folder: Folder of the kubelet, None for a simulated kubelet.
        listen: Host and port, None for none.
        state: File of the agent's status.
        lists: How containers are told of devices, empty for what the file says.
        ids: What devices are called there, None for what the file says.
        specs: Whether device nodes are named, None for what the file says.
        driver_root: Where the node has its driver, None for what the file says.
        dev_root: Folder of the node in which ``dev`` lies, None for what the file says.
        cdi_folder: Where CDI files are written, None for the usual place.
        host_root: Where the node's own files are seen.
        ignore_xids: More XIDs to ignore.
        heed_xids: XIDs to heed after all.
    """

    config: Path | None
    config_name: str | None
    allow_reset: bool
    simulate: str | None
    node_name: str
    labels: Mapping[str, str] | None
    kubelet_folder: Path | None
    listen: tuple[str, int] | None
    state: Path
    lists: tuple[DeviceListStrategy, ...]
    ids: DeviceIdStrategy | None
    specs: bool | None
    driver_root: str | None
    dev_root: str | None
    cdi_folder: Path | None
    host_root: Path
    ignore_xids: str
    heed_xids: str
