"""Builds the stub NVML library, once per process."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

__all__ = ["NAME", "load"]

NAME = "libnvidia-ml.so.1"
_SOURCES = Path(__file__).parent
_FLAGS = ["-shared", "-fPIC", "-O1", "-std=c11", "-Wall", "-Wextra", "-Werror"]


def load() -> Path:
    """Return the stub library, loaded into this process as well.

    A library that is loaded already is found by its soname: ``pynvml`` asks for
    ``libnvidia-ml.so.1`` and gets it, untouched. Without a C compiler the test is skipped, but on
    CI it fails.
    """
    compiler = shutil.which("cc")
    if compiler is None and os.environ.get("CI") == "1":
        pytest.fail("no C compiler: cc")
    if compiler is None:
        pytest.skip("the stub NVML library needs a C compiler: cc")
    folder = _built(compiler)
    return Path(folder.name, NAME)


@cache
def _built(compiler: str) -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory(prefix="stub-nvml-")  # goes with the process
    target = Path(folder.name, NAME)
    sources = sorted(map(str, _SOURCES.glob("*.c")))
    names = ["-fvisibility=hidden", f"-Wl,-soname,{NAME}", "-o", str(target)]
    subprocess.run([compiler, *_FLAGS, *names, *sources], check=True)  # noqa: S603 - no shell
    ctypes.CDLL(str(target))
    return folder
