"""The root of an image in which this interpreter runs, with some distributions and nothing else.

Every file lies where it lies on this machine, so that paths which were fixed when interpreter and
libraries were built stay true. Only distributions move: from wherever this environment has them
into the interpreter's own folder, for in the image there is no environment. There is no shell.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_NOT_NEEDED = (
    "__pycache__",
    "_test*",
    "_tkinter*",
    "config-*",  # a static library of the whole interpreter
    "dist-packages",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "site-packages",
    "test",
    "tests",
    "tkinter",
    "turtledemo",
)
_PYTHON = Path("usr/bin/python3")  # on the path that a container has when nobody says another


def lay_out(target: Path, distributions: Sequence[str]) -> None:
    """Fill an empty folder so that, with it as root, ``python3`` imports these distributions.

    What they depend on must be named as well. A distribution that is installed as a link to its
    sources comes from there, if the link is a path; what an import hook finds is left out.
    """
    interpreter = _interpreter()
    library = Path(sysconfig.get_path("stdlib"))
    ignored = shutil.ignore_patterns(*_NOT_NEEDED)
    shutil.copytree(library, _below(target, library), symlinks=True, ignore=ignored)
    built = [Path("/", file.relative_to(target)) for file in target.rglob("*.so")]
    packages = _packages(interpreter)
    for name in distributions:
        for source, place in _files(importlib.metadata.distribution(name)):
            _copy(source, _below(target, packages) / place)
            if source.suffix == ".so":
                built.append(source)
    for file in (interpreter, *_libraries([interpreter, *built])):
        _copy(file, _below(target, file))
    if not (target / _PYTHON).exists():
        (target / _PYTHON).parent.mkdir(parents=True, exist_ok=True)
        (target / _PYTHON).symlink_to(interpreter)
    (target / "tmp").mkdir(exist_ok=True)
    (target / "tmp").chmod(0o1777)


def _interpreter() -> Path:
    """Return the program itself: not an environment's link to it, nor a link beside it."""
    return Path(os.path.realpath(sys.executable))


def _packages(interpreter: Path) -> Path:
    """Return the folder where the interpreter, outside of any environment, looks for packages."""
    code = "import site; print(site.getsitepackages()[0])"
    command = [str(interpreter), "-I", "-c", code]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def _files(distribution: importlib.metadata.Distribution) -> Iterator[tuple[Path, Path]]:
    """Yield the files of a distribution, and where each belongs below the packages."""
    for file in distribution.files or ():
        source = Path(str(distribution.locate_file(file)))
        if source.suffix == ".pth":
            yield from _linked_files(source)
        elif ".." not in file.parts and source.suffix != ".pyc":
            yield source, Path(file)


def _linked_files(link: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the files of the folders that a ``.pth`` file adds to the path."""
    for line in link.read_text(encoding="utf-8").splitlines():
        if line and Path(line).is_dir():
            for source in Path(line).rglob("*"):
                if source.is_file() and source.suffix != ".pyc":
                    yield source, source.relative_to(line)


def _libraries(programs: Iterable[Path]) -> set[Path]:
    """Return what programs and libraries are linked with, the loader included."""
    command = ["ldd", *map(str, programs)]
    # Its status says nothing: 1 as well when one of them needs no other.
    listing = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = {Path(path) for path in re.findall(r"^\t(?:.* => )?(/.*) \(0x", listing, re.MULTILINE)}
    # The C library loads this one by itself when a thread is ended.
    unwinders = {path.with_name("libgcc_s.so.1") for path in found if path.name == "libc.so.6"}
    return found | {path for path in unwinders if path.exists()}


def _below(target: Path, path: Path) -> Path:
    return target / path.relative_to("/")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
