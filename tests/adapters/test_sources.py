"""Paths become observations: what a file is shows in its content, its node in its name."""

import gzip
import io
import json
import os
import random
import time
from pathlib import Path

import pytest

from partita.cli import sources
from partita.errors import InputError
from partita.model.report import Observation

_CASES = Path(__file__).parent / "cases"
_POD = {
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "n", "labels": {"app": "x" * 40}},
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
    "status": {"phase": "Pending", "message": "m" * 1000},
}


def _read(data: bytes | str) -> Observation:
    raw = data if isinstance(data, bytes) else data.encode()
    (found,) = sources.read(["-"], stdin=io.BytesIO(raw))
    return found


def _failure(data: bytes | str) -> InputError:
    with pytest.raises(InputError) as caught:
        _read(data)
    assert caught.value.path == "-"
    return caught.value


@pytest.mark.parametrize(
    ("name", "nodes", "reports", "pods", "claims"),
    [
        ("kubectl/cluster.json", 1, 0, 2, 0),
        ("kubectl/node_annotated_layout.yaml", 1, 1, 0, 0),
        ("kubectl/labels.json", 1, 0, 0, 0),
        ("kubectl/resources_excerpt.yaml", 1, 0, 0, 0),
        ("xml/a100_split.xml", 0, 1, 0, 0),
        ("xml/troubled.xml", 0, 1, 0, 0),
        ("lgi/two_gpus.txt", 0, 1, 0, 0),
        ("lgi/session.txt", 0, 1, 0, 0),
        ("lgi/empty.txt", 0, 1, 0, 0),
        ("list/mixed.txt", 0, 1, 0, 0),
        ("checkpoint/current.json", 0, 0, 0, 2),
        ("fleet/small.yaml", 2, 2, 9, 0),
        ("fleet/small.json", 1, 1, 1, 0),
    ],
)
def test_content_decides(name: str, nodes: int, reports: int, pods: int, claims: int) -> None:
    """Every kind of file is recognised without a name."""
    found = _read((_CASES / name).read_bytes())
    counted = (len(found.nodes), len(found.reports), len(found.pods), len(found.claims))
    assert counted == (nodes, reports, pods, claims)


@pytest.mark.parametrize(
    ("file_name", "node"),
    [
        ("gpu-a1.xml", "gpu-a1"),
        ("gpu-a1.nvidia-smi.xml", "gpu-a1"),
        ("gpu-a1.lgi.txt", "gpu-a1"),
        ("gpu-a1.list.txt.gz", "gpu-a1"),
        ("gpu-a1.checkpoint.json", "gpu-a1"),
        ("GPU-A1.XML", "GPU-A1"),
        ("ip-10-0-0-1.eu-west-1.compute.internal.xml", "ip-10-0-0-1.eu-west-1.compute.internal"),
        ("rack.7", "rack.7"),
        ("plain", "plain"),
        (".xml", ".xml"),
    ],
)
def test_node_names(file_name: str, node: str) -> None:
    """Only known endings are cut from a file name, because node names contain dots."""
    assert sources.node_name(file_name) == node


def test_directory(tmp_path: Path) -> None:
    """The files of a directory are read by name; dotfiles are skipped, directories noted."""
    for name in ("b.lgi.txt", "a.xml"):
        source = "lgi/two_gpus.txt" if name.endswith("txt") else "xml/v100_old_driver.xml"
        (tmp_path / name).write_bytes((_CASES / source).read_bytes())
    (tmp_path / ".hidden").write_text("garbage", encoding="utf-8")
    (tmp_path / "deeper").mkdir()
    found = sources.read([str(tmp_path)])
    assert [report.node for one in found for report in one.reports] == ["a", "b"]
    assert found[-1].notes == (f"{tmp_path}: directories in it are not read: 'deeper'",)


def test_paths_keep_their_order(tmp_path: Path) -> None:
    """Observations come in the order of the paths, stdin among them."""
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text("nodes: [{name: first}]", encoding="utf-8")
    stdin = io.BytesIO(b"nodes: [{name: second}]")
    found = sources.read([str(fleet), "-"], stdin=stdin)
    assert [one.nodes[0].name for one in found] == ["first", "second"]


def test_source_is_what_the_user_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports and errors name the file as it was given."""
    (tmp_path / "n.xml").write_bytes((_CASES / "xml/v100_old_driver.xml").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert sources.read(["n.xml"])[0].reports[0].source == "n.xml"


def test_gzip() -> None:
    """A compressed file, also in several parts, is read like the plain one."""
    half = b'{"kind": "List", "items": ['
    data = gzip.compress(half, mtime=0) + gzip.compress(json.dumps(_POD).encode() + b"]}")
    assert len(_read(data).pods) == 1


def test_several_json_texts_in_one_file() -> None:
    """The outputs of several commands may follow each other in one file."""
    assert len(_read(json.dumps(_POD) + "\n" + json.dumps({**_POD, "status": None})).pods) == 2


def test_byte_order_mark() -> None:
    """A UTF-8 mark at the start, as Windows programs write it, is skipped."""
    assert _read(b"\xef\xbb\xbf" + json.dumps(_POD).encode()).pods[0].name == "p"


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (b"", "the file is empty", "kubectl get nodes"),
        (b" \n\t\n", "the file is empty", "kubectl get nodes"),
        (b"# only a comment\n", "the file holds nothing but comments", "kubectl get nodes"),
        ("{}".encode("utf-16"), "the file is UTF-16, not UTF-8", "Out-File -Encoding utf8"),
        ("{}".encode("utf-16-be"), "the file is UTF-16, not UTF-8", "Out-File -Encoding utf8"),
        (b"\x7fELF\0\0\1\0", "the file is binary, not text", "kubectl get nodes"),
        (b"name: \xff\n", "the file is no UTF-8 text: invalid start byte", "kubectl get nodes"),
        (gzip.compress(b"x" * 99, mtime=0)[:-9], "the gzip data ends too early", "cut off"),
        (
            b"\x1f\x8b" + b"x" * 20,
            "broken gzip data: Unknown compression method",
            "compress the file anew",
        ),
        ('{"kind": "Pod", "metadata"', "the JSON ends too early", "cut off"),
        ('{"kind": "Pod" "x"}', "broken JSON: expecting ',' delimiter", "kubectl get nodes"),
        ("kind: [Pod", "broken YAML: did not find expected ',' or ']'", "kubectl get nodes"),
        ("kind: Pod\nkind: Pod", "broken YAML: a key stands twice in one mapping", "kubectl"),
        ("[1, 2]", "no reader knows this content: a list", "kubectl get nodes"),
        ("hello", "no reader knows this content: 'hello'", "kubectl get nodes"),
        ("5", "no reader knows this content: 5", "kubectl get nodes"),
        ("a: 1", "no reader knows a document with the keys: 'a'", "kubectl get nodes"),
        ("version: v1\nmig-configs: {}", "this is a configuration, not a cluster", "partita check"),
        ("==============NVSMI LOG==============", "this is the text of `nvidia-smi -q`", "-q -x"),
        ("| NVIDIA-SMI 550.54", "this is a table of `nvidia-smi`", "-q -x"),
        ("index, name\n0, A", "this is a table of `nvidia-smi`", "-q -x"),
        ("# HELP up Up\n", "these are Prometheus metrics", "-q -x"),
        ("NAME   READY   STATUS", "this is a table of `kubectl get`", "-o json"),
        ("Name:    node-1\nRoles: x", "this is the text of `kubectl describe`", "-o json"),
        ("NVIDIA-SMI has failed because", "nvidia-smi could not reach a GPU", "driver"),
        ("Error from server (Forbidden)", "the command that wrote this file failed", "anew"),
    ],
)
def test_unusable_content(data: bytes | str, message: str, hint: str) -> None:
    """Whatever cannot be read is one error that says what it is and what to write instead."""
    error = _failure(data)
    assert error.message.startswith(message)
    assert hint in error.hint


def test_broken_places() -> None:
    """Broken JSON, YAML and encodings carry line and column."""
    json_error = _failure('{\n "kind": ?}')
    yaml_error = _failure("a: b\n  c: d\n")
    encoding_error = _failure(b"a: b\nc: \xff")
    assert (json_error.line, json_error.column) == (2, 10)
    assert (yaml_error.line, yaml_error.column) == (2, 4)
    assert encoding_error.line == 2


def test_checkpoint_needs_a_node(tmp_path: Path) -> None:
    """The kubelet's file under its own name does not tell the node."""
    path = tmp_path / "kubelet_internal_checkpoint"
    path.write_bytes((_CASES / "checkpoint/current.json").read_bytes())
    with pytest.raises(InputError, match="does not say its node"):
        sources.read([str(path)])


def test_unusable_file_name(tmp_path: Path) -> None:
    """A file name that is no node name is refused where the node comes from it."""
    path = tmp_path / "my gpus.xml"
    path.write_bytes((_CASES / "xml/v100_old_driver.xml").read_bytes())
    with pytest.raises(InputError, match="no usable node name: 'my gpus'"):
        sources.read([str(path)])


def test_missing_paths(tmp_path: Path) -> None:
    """A path that is not there, empty, looping or no path at all is an error with a hint."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").mkdir()
    expected = {
        str(tmp_path / "none.json"): "no such file or directory",
        str(tmp_path / "empty"): "no file in this directory",
        str(tmp_path / "loop"): "cannot be read: ",
        "a\0b": "no path holds a zero byte",
    }
    for path, message in expected.items():
        with pytest.raises(InputError) as caught:
            sources.read([path])
        assert caught.value.message.startswith(message)
        assert caught.value.hint


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may not be read is an error with a hint.

    The refusal is simulated, because a superuser may read everything.
    """
    path = tmp_path / "a.json"
    path.write_text("{}", encoding="utf-8")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match="no permission to read it"):
        sources.read([str(path)])


@pytest.mark.slow
def test_large_json(tmp_path: Path) -> None:
    """A list of pods of 50 MB is read in seconds."""
    pod = json.dumps(_POD)
    count = 50_000_000 // len(pod)
    path = tmp_path / "pods.json"
    path.write_text('{"kind": "List", "items": [' + ",".join([pod] * count) + "]}", "utf-8")
    start = time.monotonic()
    (found,) = sources.read([str(path)])
    assert len(found.pods) == count
    assert time.monotonic() - start < 15


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bytes", "words", "braces", "rows"])
def test_large_garbage(tmp_path: Path, kind: str) -> None:
    """Garbage of 50 MB is refused at once, whatever it starts like."""
    size = 50_000_000
    content = {
        "bytes": random.Random(7).randbytes(size),  # noqa: S311 - reproducible garbage
        "words": b"lorem ipsum: dolor\n" * (size // 19),
        "braces": b"{" * size,
        "rows": b"GPU 0: A (UUID: GPU-a)\n" + b"| 0 MIG\n" * (size // 8),
    }[kind]
    path = tmp_path / "garbage"
    path.write_bytes(content)
    start = time.monotonic()
    if kind == "rows":
        assert "lines beside the list" in str(sources.read([str(path)])[0].notes)
    else:
        with pytest.raises(InputError):
            sources.read([str(path)])
    assert time.monotonic() - start < 15


@pytest.mark.slow
def test_large_yaml(tmp_path: Path) -> None:
    """YAML of more than 20 MiB is refused with the advice to write JSON."""
    path = tmp_path / "pods.yaml"
    path.write_bytes(b"kind: Pod\n---\n" * (21 << 20 >> 3))
    with pytest.raises(InputError) as caught:
        sources.read([str(path)])
    assert "-o json" in caught.value.hint


def test_compressed_bomb(tmp_path: Path) -> None:
    """A small file that unpacks to more than the limit is refused."""
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for _ in range(520):
            stream.write(b" " * (1 << 20))
    with pytest.raises(InputError, match="larger than 512 MiB"):
        sources.read([str(path)])


def test_pipe() -> None:
    """A path may be a pipe, as a shell's process substitution makes it."""
    receiver, sender = os.pipe()
    os.write(sender, b"nodes: [{name: piped}]")
    os.close(sender)
    try:
        (found,) = sources.read([f"/dev/fd/{receiver}"])
    finally:
        os.close(receiver)
    assert found.nodes[0].name == "piped"
