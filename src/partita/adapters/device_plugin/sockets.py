"""Names of the plugin's sockets, and whether a socket is still the one that it was."""

import hashlib
import os
import re
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Identity", "identity", "new_socket", "remove_dead"]

_LONGEST = 107  # bytes of a Unix socket's path, less the zero at its end
_FRAME = len("partita--01234567.sock")
_DIGEST = 8


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells a file from another one that was made anew under its name."""

    device: int
    inode: int
    changed_ns: int


def identity(path: Path) -> Identity | None:
    """Return which file is at a path now, None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return Identity(found.st_dev, found.st_ino, found.st_ctime_ns)


def new_socket(folder: Path, resource: str) -> Path:
    """Return a path that no socket had before; a long name is cut, with a hash in place."""
    short = re.sub(r"[^A-Za-z0-9.-]", "-", resource.rpartition("/")[2])
    room = max(_LONGEST - len(os.fsencode(folder)) - 1 - _FRAME, _DIGEST)
    if len(short) > room:
        digest = hashlib.sha256(resource.encode()).hexdigest()[:_DIGEST]
        short = f"{short[: max(room - _DIGEST - 1, 0)]}-{digest}"[-room:]
    return folder / f"partita-{short}-{secrets.token_hex(4)}.sock"


def remove_dead(folder: Path) -> None:
    """Remove the sockets of agents that have ended; one at which somebody answers stays."""
    for path in folder.glob("partita-*.sock"):
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(os.fspath(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
            except OSError:
                continue
