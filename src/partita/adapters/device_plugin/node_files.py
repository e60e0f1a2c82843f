"""Device nodes and driver files of the node, as far as they are there.

A container needs the node of its GPU, in MIG also those of its GPU instance and compute instance,
the control nodes, and the libraries of the very driver that runs. Paths: NVIDIA's driver, as
NVIDIA/nvidia-container-toolkit v1.20 finds them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from partita.model.slice import Slice

__all__ = ["DeviceNode", "DeviceNodes", "DriverFile", "NodeRoots", "devices", "driver_files"]

_CONTROL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_CAPABILITY_MINOR = re.compile(r"^DeviceFileMinor:\s*(\d+)\s*$", re.MULTILINE)
_VERSION = re.compile(r"\b\d{3,}\.\d+(?:\.\d+)?\b")
_LIBRARY_FOLDERS = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib/x86_64-linux-gnu/nvidia/current",
    "usr/lib/aarch64-linux-gnu/nvidia/current",
    "usr/lib64",
    "usr/lib",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "lib64",
)
_LIBRARY = re.compile(
    r"(?:libcuda|libcudadebugger|libnvidia-.+?|libnvcuvid|libnvoptix|lib.+?_nvidia)\.so(?:\.(.+))?"
)
_PROGRAMS = (
    "nvidia-smi",
    "nvidia-debugdump",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRoots:
    """Where this program sees the files of the node, and what the container runtime calls them.

    Attributes:
        dev: Folder with ``nvidia0``, as this program sees it.
        proc: The node's ``/proc``, as this program sees it.
        driver: Folder in which the driver is installed, as this program sees it.
        node: Root folder of the node, as this program sees it.
        dev_on_node: What the node calls ``dev``.
        driver_on_node: What the node calls ``driver``.
    """

    dev: Path = Path("/dev")
    proc: Path = Path("/proc")
    driver: Path = Path("/")
    node: Path = Path("/")
    dev_on_node: str = "/dev"
    driver_on_node: str = "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceNode:
    """A device node.

    Attributes:
        container_path: Where a container wants it.
        host_path: Where the node has it.
    """

    container_path: str
    host_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceNodes:
    """The device nodes for some slices.

    Attributes:
        control: What every container needs.
        by_device: UUID of a device → its nodes; devices that lack one are left out.
        lacking: UUID of a device that was left out → why.
    """

    control: tuple[DeviceNode, ...] = ()
    by_device: Mapping[str, tuple[DeviceNode, ...]] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFile:
    """A library or program of the driver; paths as of ``DeviceNode``."""

    container_path: str
    host_path: str


def devices(slices: Iterable[Slice], roots: NodeRoots) -> DeviceNodes:
    """Look for the device nodes of slices."""
    by_device: dict[str, tuple[DeviceNode, ...]] = {}
    lacking: dict[str, str] = {}
    for one in {one.device: one for one in slices}.values():
        try:
            by_device[one.device] = tuple(_device_nodes(one, roots))
        except LookupError as error:
            lacking[one.device] = f"its device nodes are not there: {error.args[0]}"
        except OSError as error:
            lacking[one.device] = f"its device nodes cannot be looked for: {error.strerror}"
    control = tuple(_node(name, roots) for name in _CONTROL if (roots.dev / name).exists())
    return DeviceNodes(control=control, by_device=by_device, lacking=lacking)


def driver_files(roots: NodeRoots) -> tuple[DriverFile, ...]:
    """Return the libraries and programs of the driver that runs, in a fixed order.

    A library is given under its own name and those of the links to it (``libcuda.so.1``), so that
    it is found in a container that knows nothing of it, where its folder is searched.
    """
    found = sorted({*_libraries(roots), *_programs(roots.driver)})
    root = roots.driver_on_node.rstrip("/")
    return tuple(
        DriverFile(container_path=f"/{name}", host_path=f"{root}/{real}") for name, real in found
    )


def _device_nodes(one: Slice, roots: NodeRoots) -> Iterator[DeviceNode]:
    if one.minor is None:
        raise LookupError("its minor number is unknown")
    yield _existing(f"nvidia{one.minor}", roots)
    if one.instance_id is None:
        return
    if one.compute_instance_id is None:
        raise LookupError("its compute instance is unknown")
    mig = roots.proc / f"driver/nvidia/capabilities/gpu{one.minor}/mig/gi{one.instance_id}"
    for access in (mig / "access", mig / f"ci{one.compute_instance_id}" / "access"):
        yield _existing(f"nvidia-caps/nvidia-cap{_capability(access)}", roots)


def _capability(access: Path) -> str:
    try:
        found = _CAPABILITY_MINOR.search(access.read_text(encoding="ascii", errors="replace"))
    except OSError as error:
        raise LookupError(f"cannot read {access}: {error.strerror}") from error
    if found is None:
        raise LookupError(f"no DeviceFileMinor in {access}")
    return found[1]


def _existing(name: str, roots: NodeRoots) -> DeviceNode:
    if not (roots.dev / name).exists():
        raise LookupError(f"there is no {roots.dev / name}")
    return _node(name, roots)


def _node(name: str, roots: NodeRoots) -> DeviceNode:
    return DeviceNode(
        container_path=f"/dev/{name}", host_path=f"{roots.dev_on_node.rstrip('/')}/{name}"
    )


def _libraries(roots: NodeRoots) -> Iterator[tuple[str, str]]:
    """Yield the name of every library and of every link to one, with the file behind it."""
    version = _driver_version(roots)
    seen = set()
    for name in _LIBRARY_FOLDERS:
        folder = roots.driver / name
        if not folder.is_dir() or folder.resolve() in seen:  # a circle of links is no folder
            continue
        seen.add(folder.resolve())
        for path in folder.iterdir():
            if _LIBRARY.fullmatch(path.name):
                real = _real(path, roots.driver.resolve())
                if real is not None and _is_of(real.name, version):
                    yield f"{name}/{path.name}", str(real)


def _real(path: Path, driver: Path) -> Path | None:
    """Return the file at the end of links, below the driver's root; None when it is not there.

    A link that begins with ``/`` means the driver's root, as it does for the driver. Links in a
    circle have no end; Python 3.11 has an error of its own for them.
    """
    try:
        end = path.resolve()
        for found in (end, driver / end.relative_to("/")):
            if found.is_relative_to(driver) and found.is_file():
                return found.relative_to(driver)
    except (OSError, RuntimeError):
        return None
    return None


def _is_of(name: str, version: str | None) -> bool:
    """Tell whether a file is a library of the version, or of any when it is unknown."""
    match = _LIBRARY.fullmatch(name)
    if match is None:
        return False
    return match[1] == version if version else bool(_VERSION.fullmatch(match[1] or ""))


def _driver_version(roots: NodeRoots) -> str | None:
    try:
        text = (roots.proc / "driver/nvidia/version").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = _VERSION.search(text.partition("\n")[0])
    return found[0] if found else None


def _programs(driver: Path) -> Iterator[tuple[str, str]]:
    for name in _PROGRAMS:
        real = _real(driver / "usr/bin" / name, driver.resolve())
        if real is not None:
            yield f"usr/bin/{name}", str(real)
