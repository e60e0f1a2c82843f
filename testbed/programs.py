"""Builds the programs of a cluster, once, into a cache outside the repository.

A finished build is one folder, named after everything that decides what is in it and renamed into
place only when it is whole; so a build that is there is never looked at again, and one that was
interrupted is never seen.
"""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from testbed import modules, needs
from testbed.errors import BuildError, MissingError

_PROGRESS_SECONDS = 30


def cache() -> Path:
    """Return the folder that holds everything built."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("PARTITA_TESTBED_CACHE") or home / "partita-testbed")


def version() -> str:
    """Return the version of Kubernetes that is wanted: the variable ``KUBERNETES`` or the pin."""
    return os.environ.get("KUBERNETES", "").removeprefix("v") or modules.PINNED_KUBERNETES


def find() -> dict[str, Path]:
    """Return the path of every program, or raise ``MissingError`` when something is not built."""
    found = {}
    for module in _modules():
        folder = _folder(module)
        for program in module.programs:
            path = needs.asset(program) or folder / program
            if not path.exists():
                raise MissingError(f"{program} {module.version} is not built", hint="make testbed")
            found[program] = path
    return found | {"kubectl": needs.kubectl()}


def build() -> None:
    """Install and build what is missing, saying what is done and how long it takes."""
    _install_packages()
    try:
        find()
    except MissingError:
        cache().mkdir(parents=True, exist_ok=True)
        with _locked(cache() / "lock"):
            _build_missing()
    needs.machine()
    _say(f"the test bed is ready: Kubernetes {version()}")


def _build_missing() -> None:
    if version() != modules.PINNED_KUBERNETES and not (_other_module() / "go.sum").exists():
        pin(_other_module())
    waiting = [module for module in _modules() if _unbuilt(module)]
    if waiting:
        names = ", ".join(f"{module.name} {module.version}" for module in waiting)
        minutes = sum(module.seconds for module in waiting) / 60
        _say(f"building {names} into {cache()}")
        _say(f"once; {minutes:.0f} min on two idle cores; Go's own caches grow by up to 5 GB")
    for module in waiting:
        _build(module)


def repin() -> None:
    """Make the wanted version of Kubernetes the one that this folder pins."""
    folder = modules.HERE / "kubernetes"
    pin(folder)
    (folder / "VERSION").write_text(f"{version()}\n", encoding="utf-8")


def pin(folder: Path) -> None:
    """Write ``go.mod`` and ``go.sum`` of the wanted Kubernetes into a folder."""
    _say(f"resolving the modules of Kubernetes {version()}, 15 s")
    go = needs.go("1.24")  # the first with tool lines in go.mod
    with _half_done(folder) as half:
        what = ["mod", "download", "-json", f"k8s.io/kubernetes@v{version()}"]
        answer = json.loads(_go([go, *what], half))
        upstream = Path(answer["GoMod"]).read_text(encoding="utf-8")
        text = modules.kubernetes_go_mod(version(), upstream)
        (half / "go.mod").write_text(text, encoding="utf-8")
        _go([go, "mod", "tidy"], half)


def _modules() -> tuple[modules.Module, ...]:
    pinned = version() == modules.PINNED_KUBERNETES
    folder = modules.HERE / "kubernetes" if pinned else _other_module()
    if not (folder / "go.mod").exists():
        raise MissingError(f"Kubernetes {version()} is not built", hint="make testbed")
    return (modules.etcd(), modules.containerd(), modules.kubernetes(version(), folder))


def _other_module() -> Path:
    return cache() / "modules" / f"kubernetes-{version()}"


def _folder(module: modules.Module) -> Path:
    return cache() / "programs" / module.key()


def _unbuilt(module: modules.Module) -> list[str]:
    return [
        program
        for program in module.programs
        if needs.asset(program) is None and not (_folder(module) / program).exists()
    ]


def _build(module: modules.Module) -> None:
    go = needs.go(modules.language(module.folder))
    with _half_done(_folder(module)) as half:
        for program in _unbuilt(module):
            start = time.monotonic()
            _say(f"{program} {module.version} …")
            _go([go, *module.arguments(program, half)], module.folder)
            _say(f"{program} {module.version} built in {time.monotonic() - start:.0f} s")


def _go(command: list[str], folder: Path) -> str:
    """Run Go, with a sign of life every half minute, and return what it printed."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": ""}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        start = time.monotonic()
        while True:
            try:
                output, _ = process.communicate(timeout=_PROGRESS_SECONDS)
                break
            except subprocess.TimeoutExpired:
                _say(f"… still at it after {time.monotonic() - start:.0f} s")
        if process.returncode == 0:
            return output
        errors.seek(0)
        raise BuildError(
            f"go {command[1]} failed: {_last(errors.read(), output)}",
            hint="sources come from the Go module proxy (go env GOPROXY); is the network there?",
        )


def _last(*texts: str) -> str:
    """Return the last lines of the first text that has any."""
    text = next((text.strip() for text in texts if text.strip()), "it printed nothing")
    return "\n".join(text.splitlines()[-5:])


def _install_packages() -> None:
    """Install what Debian has, when that is possible here; otherwise say what to install."""
    packages = needs.missing_packages()
    if not packages:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        needs.machine()
    _say(f"installing {', '.join(packages)}, 10 s")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-qq", "--yes", "--no-install-recommends", *packages]
    for command in (["apt-get", "update", "-qq"], install):
        done = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise MissingError(
                f"could not install {', '.join(packages)}: {_last(done.stderr, done.stdout)}",
                hint="is the network there? Otherwise install them by hand",
            )


@contextlib.contextmanager
def _half_done(folder: Path) -> Iterator[Path]:
    """Yield a folder that takes the given name when all went well, and else disappears."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".half-") as temporary:
        half = Path(temporary) / "half"
        half.mkdir()
        yield half
        folder.mkdir(exist_ok=True)
        for path in half.iterdir():
            path.rename(folder / path.name)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep a second build waiting until this one is done."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(line: str) -> None:
    print(f"testbed: {line}", file=sys.stderr, flush=True)
