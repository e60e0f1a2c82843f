"""Namespaces in which a cluster can do nothing to the machine, and which end with their user.

``enter`` turns this process into the guardian of one command in network, mount and process
namespaces of its own. However the guardian ends, the kernel ends everything inside, and with it the
mounts, addresses and files, for all state is on a file system that only these namespaces see. What
the kernel keeps are control groups; a process that outlives the guardian by a moment removes them.
"""

import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from testbed.errors import ClusterError

STATE = Path("/run/testbed")
"""Everything a cluster writes; short, because a socket's path has at most 107 bytes."""
_INSIDE = "PARTITA_TESTBED_INSIDE"
_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_FAREWELL_SECONDS = 20

# Kernel settings that a kubelet insists on. It writes what it does not find, and the whole machine
# would keep that; so inside it finds what it wants in a file that covers the setting.
_SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}


def enter(command: Sequence[str]) -> NoReturn:
    """Replace this process by the guardian of the command; its exit status is the command's."""
    name = f"partita-testbed-{secrets.token_hex(4)}"
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(writing)
        _sweep(name, reading)
    os.close(reading)
    os.set_inheritable(writing, True)  # noqa: FBT003 - it ends with the last process that has it
    inside = [sys.executable, "-m", "testbed.isolation", name, str(writing), *command]
    spaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    os.execvp("unshare", ["unshare", *spaces, *inside])  # noqa: S606 - found by PATH


def inside() -> bool:
    """Tell whether this process runs in such namespaces."""
    return _INSIDE in os.environ


def outside() -> dict[str, str]:
    """Return the environment for a program that makes namespaces again, inside of these."""
    return {key: value for key, value in os.environ.items() if key != _INSIDE}


def control_group() -> str:
    """Return the control group, from the root, below which everything of this cluster must be."""
    if not inside():
        raise ClusterError(
            "a cluster needs namespaces of its own",
            hint="start the program with: python -m testbed run PROGRAM …",
        )
    return os.environ[_INSIDE]


def control_group_folders(name: str) -> list[Path]:
    """Return the folder of a control group in every hierarchy: one (version 2) or many (1)."""
    if (_CONTROL_GROUPS / "cgroup.controllers").exists():
        return [_CONTROL_GROUPS / name]
    hierarchies = {path.resolve() for path in _CONTROL_GROUPS.iterdir() if path.is_dir()}
    return [path / name for path in sorted(hierarchies)]


def _first(name: str, writing: int, command: list[str]) -> int:
    """Be the first process inside: prepare, start the command, and collect whoever ends."""
    os.set_inheritable(writing, False)  # noqa: FBT003 - as above: this process alone holds it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells the command as well
    _prepare(name)
    environment = {**os.environ, _INSIDE: name}
    child = os.posix_spawnp(command[0], command, environment, setsigdef=[signal.SIGINT])
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(child, number))
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == child:
            return os.waitstatus_to_exitcode(status) % 256


def _prepare(name: str) -> None:
    """Bring up the network, and give the namespaces files and kernel settings of their own."""
    _run("ip", "link", "set", "lo", "up")
    _run("mount", "-t", "tmpfs", "-o", "mode=755", "testbed", "/run")
    STATE.mkdir()
    settings = STATE / "settings"
    settings.mkdir()
    for setting, value in _SETTINGS.items():
        cover = settings / setting.replace("/", ".")
        cover.write_text(f"{value}\n", encoding="utf-8")
        _run("mount", "--bind", str(cover), f"/proc/sys/{setting}")
    for folder in control_group_folders(name):
        folder.mkdir(exist_ok=True)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def _sweep(name: str, reading: int) -> NoReturn:
    """Wait until nothing inside is left, and remove the control groups that remain."""
    os.setsid()
    os.chdir("/")
    for stream in (0, 1, 2):  # a pipe to somebody else must not stay open because of this process
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    select.select([reading], [], [])
    end = time.monotonic() + _FAREWELL_SECONDS
    while time.monotonic() < end and not all(map(_remove, control_group_folders(name))):
        time.sleep(0.05)  # nothing tells when the last process has left a group
    os._exit(0)


def _remove(folder: Path) -> bool:
    """Remove a control group and those below it; tell whether all are gone."""
    for path, _, _ in os.walk(folder, topdown=False):
        try:
            Path(path).rmdir()
        except OSError:
            return False
    return True


if __name__ == "__main__":
    sys.exit(_first(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
