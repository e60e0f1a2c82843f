"""Container images without a registry: an archive in Docker's format, made from one folder."""

import hashlib
import io
import json
import platform
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed import documents, needs

BUSYBOX = "testbed.local/busybox:1"
"""The image that tests run: busybox, with every one of its commands."""


def archive(
    target: Path,
    *,
    name: str,
    folder: Path,
    command: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> None:
    """Write an image whose root is the folder's content; ``command`` is its entry point."""
    with tempfile.NamedTemporaryFile(dir=target.parent) as layer:
        with tarfile.open(fileobj=layer, mode="w") as tar:
            tar.add(folder, arcname=".", filter=_owned_by_root)
        layer.seek(0)
        digest = hashlib.file_digest(layer, "sha256").hexdigest()
        config = {
            "architecture": _architecture(),
            "os": "linux",
            "config": {
                "Entrypoint": list(command),
                "Env": [f"{key}={value}" for key, value in (environment or {}).items()],
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
        manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
        with tarfile.open(target, "w") as tar:
            tar.add(layer.name, arcname="layer.tar")
            _add(tar, "config.json", config)
            _add(tar, "manifest.json", manifest)


def basic_archives(target: Path) -> list[Path]:
    """Write the two images that every node has: the pause image and busybox."""
    with tempfile.TemporaryDirectory(dir=target) as temporary:
        root = Path(temporary)
        for name in ("bin", "dev", "etc", "proc", "root", "sys", "tmp"):
            (root / name).mkdir()
        busybox = root / "bin" / "busybox"
        busybox.write_bytes(needs.busybox().read_bytes())
        busybox.chmod(0o755)
        listing = [str(busybox), "--list"]
        applets = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split()
        for applet in set(applets) - {"busybox"}:
            (root / "bin" / applet).symlink_to("busybox")
        pause, shell = target / "pause.tar", target / "busybox.tar"
        forever = ("/bin/busybox", "sleep", str(2**31 - 1))
        archive(pause, name=documents.PAUSE, folder=root, command=forever)
        archive(shell, name=BUSYBOX, folder=root, environment={"PATH": "/bin"})
    return [pause, shell]


def _architecture() -> str:
    """Return this machine's architecture by the name that images and Go have for it."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def _add(tar: tarfile.TarFile, name: str, document: object) -> None:
    data = json.dumps(document).encode()
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))
