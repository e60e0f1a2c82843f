"""The file of wanted layouts is followed while it is edited, in all the ways files are edited."""

import errno
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from partita.adapters.layout_file import LayoutFile
from partita.errors import InputError


def _sharing(replicas: int) -> str:
    return (
        "version: v1\nsharing:\n  timeSlicing:\n    resources:\n"
        f"    - name: nvidia.com/gpu\n      replicas: {replicas}\n"
    )


def _replicas(file: LayoutFile) -> int:
    plugin = file.current().plugin
    assert plugin is not None
    assert plugin.time_slicing is not None
    return plugin.time_slicing.entries[0].replicas


def _write(path: Path, text: str) -> None:
    """Write a file that has changed for sure, however coarse the clock of the file system is."""
    path.write_text(text, encoding="utf-8")
    moment = path.stat().st_mtime_ns + 1_000_000
    os.utime(path, ns=(moment, moment))


def test_an_edit_in_place_is_followed(tmp_path: Path) -> None:
    """What stands in the file now is what is wanted."""
    path = tmp_path / "config.yaml"
    path.write_text(_sharing(4), encoding="utf-8")
    file = LayoutFile(path)
    assert _replicas(file) == 4

    _write(path, _sharing(8))

    assert _replicas(file) == 8


def test_a_new_file_in_its_place_is_followed(tmp_path: Path) -> None:
    """Editors write beside the file and move the new one over it."""
    path = tmp_path / "config.yaml"
    path.write_text(_sharing(4), encoding="utf-8")
    file = LayoutFile(path)

    (tmp_path / "new").write_text(_sharing(6), encoding="utf-8")
    (tmp_path / "new").rename(path)

    assert _replicas(file) == 6


def test_an_exchanged_link_is_followed(tmp_path: Path) -> None:
    """A mounted ConfigMap changes by a link to a folder that is exchanged."""
    for name, replicas in (("one", 2), ("two", 3)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(_sharing(replicas), encoding="utf-8")
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "config.yaml").symlink_to("..data/config.yaml")
    file = LayoutFile(tmp_path / "config.yaml")
    assert _replicas(file) == 2

    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").rename(tmp_path / "..data")

    assert _replicas(file) == 3


def test_an_edit_that_cannot_be_followed_changes_nothing(tmp_path: Path) -> None:
    """What was before stays in force, and the problem is told until the file is right again."""
    path = tmp_path / "config.yaml"
    path.write_text(_sharing(4), encoding="utf-8")
    file = LayoutFile(path)
    before = file.current()

    _write(path, _sharing(1))

    assert file.current() is before
    assert file.problem() == (
        f"{path}:6:17: the plugin and GPU feature discovery refuse fewer than 2 replicas: 1"
    )

    _write(path, _sharing(5))

    assert _replicas(file) == 5
    assert file.problem() is None


def test_a_file_that_vanishes_changes_nothing(tmp_path: Path) -> None:
    """A file system that is away for a moment does not undo the layouts of a node."""
    path = tmp_path / "config.yaml"
    path.write_text(_sharing(4), encoding="utf-8")
    file = LayoutFile(path)

    path.unlink()

    assert _replicas(file) == 4
    assert "cannot be read" in (file.problem() or "")


def test_an_edit_of_comments_wakes_nobody(tmp_path: Path) -> None:
    """The document stays the same object as long as it says the same."""
    path = tmp_path / "config.yaml"
    path.write_text(_sharing(4), encoding="utf-8")
    file = LayoutFile(path)
    before = file.current()

    _write(path, "# a comment\n" + _sharing(4))

    assert file.current() is before


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "nothing in this file is understood"),
        (b"\xff\xfe", "cannot be read"),
        (b"a: [", "2:1: not readable as YAML"),
        (b"#" * (1 << 21), "the file is larger than bytes"),
    ],
)
def test_a_file_that_is_no_use_is_refused_at_the_start(
    tmp_path: Path, data: bytes, message: str
) -> None:
    """Nothing has begun yet, so nothing can be kept."""
    path = tmp_path / "config.yaml"
    path.write_bytes(data)

    with pytest.raises(InputError) as error:
        LayoutFile(path)

    assert message in str(error.value)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # an address has 108 bytes
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(before)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [_pipe, _socket, _device, Path.mkdir])
def test_only_a_regular_file_is_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """Anything else could keep the agent waiting for ever, at the start or later."""
    path = tmp_path / "config.yaml"
    make(path)
    with pytest.raises(InputError, match="not a regular file"):
        LayoutFile(path)

    (tmp_path / "good").write_text(_sharing(4), encoding="utf-8")
    link = tmp_path / "link"
    link.symlink_to("good")
    file = LayoutFile(link)
    link.unlink()
    link.symlink_to(path.name)

    assert _replicas(file) == 4
    assert file.problem() == f"{link}: not a regular file"


def test_an_edit_that_keeps_size_and_time_is_followed(tmp_path: Path) -> None:
    """Tools that copy a file set its time of modification; the time of the change they cannot."""
    path = tmp_path / "config.yaml"
    path.write_text(_sharing(4), encoding="utf-8")
    file = LayoutFile(path)
    found = path.stat()

    while path.stat().st_ctime_ns == found.st_ctime_ns:
        path.write_text(_sharing(8), encoding="utf-8")
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))

    assert _replicas(file) == 8


def test_a_file_that_could_not_be_read_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the file system says nothing of the file, which need not change afterwards."""
    path = tmp_path / "config.yaml"
    path.write_text(_sharing(4), encoding="utf-8")
    file = LayoutFile(path)
    _write(path, _sharing(8))

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as broken:
        broken.setattr(os, "open", fail)
        assert _replicas(file) == 4
        assert "Input/output error" in (file.problem() or "")

    assert _replicas(file) == 8
    assert file.problem() is None


def test_the_log_tells_once_of_an_edit_and_of_its_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A line when the file cannot be followed, and one when it says again what is in force."""
    caplog.set_level(logging.INFO, logger="partita.adapters.layout_file")
    path = tmp_path / "config.yaml"
    path.write_text(_sharing(4), encoding="utf-8")
    file = LayoutFile(path)

    path.unlink()
    for _ in range(3):
        file.current()
    path.write_text(_sharing(4), encoding="utf-8")
    for _ in range(3):
        file.current()

    assert [one.getMessage().partition(":")[0] for one in caplog.records] == [
        "edit not followed",
        "back to the layouts in force",
    ]
