"""What is built: three Go modules, their versions, and how each is compiled.

Kubernetes cannot be required like an ordinary module: its own ``go.mod`` names its staging modules
at a version that exists nowhere, so ours replaces every one of them by its published twin. The
version in ``kubernetes/VERSION`` is pinned in this folder; for any other version the same rule
writes ``go.mod`` and ``go.sum`` into the cache.
"""

import hashlib
import platform
import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PINNED_KUBERNETES = (HERE / "kubernetes" / "VERSION").read_text(encoding="utf-8").strip()
_VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One Go module and the programs that are built from it."""

    name: str
    version: str
    folder: Path
    """Where ``go.mod`` and ``go.sum`` are."""
    programs: dict[str, str]
    """Program name to Go package."""
    seconds: int
    """Cold build on two otherwise idle cores, measured."""
    tags: tuple[str, ...] = ()
    stamps: tuple[str, ...] = ()
    """Values that the linker writes into the program, such as its version."""

    def arguments(self, program: str, target: Path) -> list[str]:
        """Return the arguments of ``go`` that build one program into the target folder."""
        link = " ".join(("-s", "-w", *(f"-X {stamp}" for stamp in self.stamps)))
        flags = ["-trimpath", "-buildvcs=false", f"-ldflags={link}", f"-tags={','.join(self.tags)}"]
        return ["build", *flags, "-o", str(target / program), self.programs[program]]

    def key(self) -> str:
        """Return a digest of everything that decides what is built, except Go's own version."""
        digest = hashlib.sha256(platform.machine().encode())
        digest.update(repr((self.programs, self.tags, self.stamps)).encode())
        for name in ("go.mod", "go.sum"):
            digest.update((self.folder / name).read_bytes())
        return f"{self.name}-{self.version}-{digest.hexdigest()[:12]}"


def etcd() -> Module:
    """Return the store of the API server."""
    package = "go.etcd.io/etcd/server/v3"
    folder = HERE / "etcd"
    version = required(folder, package)
    return Module(
        name="etcd", version=version, folder=folder, programs={"etcd": package}, seconds=30
    )


def containerd() -> Module:
    """Return the container runtime; its file systems that need C libraries are left out."""
    package = "github.com/containerd/containerd/v2"
    folder = HERE / "containerd"
    names = ("containerd", "containerd-shim-runc-v2", "ctr")
    return Module(
        name="containerd",
        version=required(folder, package),
        folder=folder,
        programs={name: f"{package}/cmd/{name}" for name in names},
        seconds=80,
        tags=("no_btrfs", "no_zfs", "no_devmapper"),
    )


def kubernetes(version: str, folder: Path) -> Module:
    """Return Kubernetes at a version such as ``1.37.2``, described by the module in the folder."""
    major, minor, _ = version.split(".")
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    names = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
    return Module(
        name="kubernetes",
        version=version,
        folder=folder,
        programs={name: f"k8s.io/kubernetes/cmd/{name}" for name in names},
        seconds=360,
        stamps=tuple(
            f"{package}.{field}={value}"
            for package in _VERSION_PACKAGES
            for field, value in values.items()
        ),
    )


def kubernetes_go_mod(version: str, upstream: str) -> str:
    """Return the text of our ``go.mod``, given the text of Kubernetes' own at that version."""
    staging = re.findall(r"^\s*(k8s\.io/\S+) v0\.0\.0$", upstream, re.MULTILINE)
    language = re.findall(r"^(?:go|godebug) .*$", upstream, re.MULTILINE)
    twin = "v0." + version.split(".", 1)[1]
    programs = kubernetes(version, HERE).programs.values()
    return "\n".join(
        (
            "module partita/testbed/kubernetes\n",
            *(f"{line}\n" for line in language),
            f"require k8s.io/kubernetes v{version}\n",
            "replace (",
            *(f"\t{name} => {name} {twin}" for name in staging),
            ")\n",
            "tool (",
            *(f"\t{package}" for package in programs),
            ")\n",
        )
    )


def required(folder: Path, package: str) -> str:
    """Return the version of a package in the folder's ``go.mod``, without its ``v``."""
    text = (folder / "go.mod").read_text(encoding="utf-8")
    found = re.search(rf"{re.escape(package)} v(\S+)", text)
    assert found, f"{folder}/go.mod does not require {package}"
    return found[1]


def language(folder: Path) -> str:
    """Return the Go version that the folder's ``go.mod`` asks for."""
    found = re.search(r"^go (\S+)$", (folder / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    assert found, f"{folder}/go.mod names no Go version"
    return found[1]
