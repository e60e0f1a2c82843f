"""Files, directories and stdin to observations: finds out what each file is and has it read.

What a file is shows in its content, never in its name; the name only tells the node of files that
belong to one node (``gpu-a1.xml``, ``gpu-a1.lgi.txt``). All access to the file system is here.
"""

import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from partita.adapters import (
    fleet_file,
    kubectl,
    kubelet_checkpoint,
    nvidia_smi_lgi,
    nvidia_smi_list,
    nvidia_smi_xml,
)
from partita.config import untyped_parser
from partita.config.untyped import Untyped, shown
from partita.errors import InputError
from partita.model.report import Observation

__all__ = [
    "is_large_json",
    "is_tool_output",
    "node_name",
    "read",
    "read_text",
    "refuse_large",
]

_STDIN = "-"
_MOST_BYTES = 512 << 20
_MOST_YAML_BYTES = 20 << 20
_MOST_XML_BYTES = 16 << 20  # 16 GPUs with thousands of processes each stay below
_KUBELET_NAME = "kubelet_internal_checkpoint"
_SUFFIXES = (
    *(".xml", ".json", ".yaml", ".yml", ".txt", ".log", ".gz", ".nvidia-smi", ".smi", ".lgi"),
    *(".list", ".checkpoint", ".labels", ".allocatable", ".node", ".fleet"),
)
_KINDS = (
    "it must be the output of `kubectl get nodes -o json`, `kubectl get pods -A -o json`,"
    " `nvidia-smi -q -x`, `nvidia-smi mig -lgi` or `nvidia-smi -L`, a kubelet checkpoint, or a"
    " fleet file with `nodes:` and `pods:`"
)
_JSON = re.compile(r"\s*(?:\{\s*(?:[\"}]|\Z)|\[)")
_XML_HINT = "use `nvidia-smi -q -x` instead"
_KUBECTL_HINT = "use `kubectl get … -o json` instead"
_FOREIGN = (  # start of a line, what it tells, hint
    (r"=+NVSMI LOG=+", "this is the text of `nvidia-smi -q`", "add `-x`: `nvidia-smi -q -x`"),
    (
        r"(# |\$ )*GPU +\d+ Profile ID",
        "this lists possible placements",
        "use `nvidia-smi mig -lgi`",
    ),
    (r"\|\s*GPU instance profiles:", "this lists possible profiles", "use `nvidia-smi mig -lgi`"),
    (r"\| NVIDIA-SMI \d|\+[-+=]+\+$", "this is a table of `nvidia-smi`", _XML_HINT),
    (r"(index|name|uuid|timestamp|gpu_[a-z_]+), ", "this is a table of `nvidia-smi`", _XML_HINT),
    (r"# (HELP|TYPE) \w+", "these are Prometheus metrics", _XML_HINT),
    (r"NAME(SPACE)? +\S", "this is a table of `kubectl get`", _KUBECTL_HINT),
    (r"Name: +\S+$", "this is the text of `kubectl describe`", _KUBECTL_HINT),
    (
        r"NVIDIA-SMI has failed|Failed to initialize NVML|Unable to determine the device handle",
        "nvidia-smi could not reach a GPU when this was written",
        "look at the driver on that node (`dmesg`), then write the file anew",
    ),
    (
        r"(error|Error|Unable to connect|The connection to the server)\b",
        "the command that wrote this file failed",
        "see what it says, then write the file anew",
    ),
)


def read(paths: Sequence[str], *, stdin: BinaryIO | None = None) -> tuple[Observation, ...]:
    """Return what each file says, in the order of the paths.

    Args:
        paths: Files, directories (all files in them, by name, dotfiles and subdirectories left
            out), or ``-`` for stdin. Files may be compressed with gzip.
        stdin: Read for ``-``; the process's own when not given.

    Raises:
        InputError: When a path or the content of a file is not usable.
    """
    found: list[Observation] = []
    for path in paths:
        if path == _STDIN:
            data = _bytes(path, stdin or sys.stdin.buffer)
            found.append(_observation(data, path=path, name="stdin"))
        else:
            found += _at(path)
    return tuple(found)


def read_text(path: str, *, hint: str = _KINDS) -> str:
    """Return the text of one file, ``-`` is stdin; gzip is undone.

    Args:
        path: The file.
        hint: What to give instead of a file that is empty or no text.

    Raises:
        InputError: When it cannot be read or is not UTF-8.
    """
    if path == _STDIN:
        return _text(_bytes(path, sys.stdin.buffer), path, hint)
    if "\0" in path:
        raise InputError(message="no path holds a zero byte", hint="check it", path=ascii(path))
    try:
        with Path(path).open("rb") as stream:
            data = _bytes(path, stream)
    except OSError as error:
        raise _no_access(path, error) from error
    return _text(data, path, hint)


def is_tool_output(text: str) -> bool:
    """Tell whether a text is what a tool printed for people or as XML, read here or not."""
    if _JSON.match(text):
        return False
    readers = (nvidia_smi_xml, nvidia_smi_lgi, nvidia_smi_list)
    return any(one.recognises(text) for one in readers) or _foreign(text) is not None


def is_large_json(text: str) -> bool:
    """Tell whether a text is JSON beyond what the YAML parser is given."""
    return len(text) > _MOST_YAML_BYTES and _JSON.match(text) is not None


def refuse_large(text: str, path: str) -> None:
    """Refuse YAML that would take minutes.

    Raises:
        InputError: When the text is larger than 20 MiB.
    """
    if len(text) > _MOST_YAML_BYTES:  # characters: a byte more or less makes no difference
        message = f"YAML of more than {_MOST_YAML_BYTES >> 20} MiB takes minutes to parse"
        hint = "write it with `-o json`, which is read in seconds"
        raise InputError(message=message, hint=hint, path=path)


def node_name(file_name: str) -> str:
    """Return the node that a file name tells: ``gpu-a1.lgi.txt`` → ``gpu-a1``.

    Only known endings go, because node names contain dots.
    """
    name = file_name
    while (suffix := Path(name).suffix).lower() in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _at(path: str) -> Iterator[Observation]:
    if "\0" in path:
        raise InputError(message="no path holds a zero byte", hint="check it", path=ascii(path))
    try:
        directory = Path(path).is_dir()
        entries = sorted(Path(path).iterdir()) if directory else []
        shown = [entry for entry in entries if not entry.name.startswith(".")]
        files = [entry for entry in shown if entry.is_file() and entry.suffix.lower() != ".md"]
    except OSError as error:
        raise _no_access(path, error) from error
    if directory and not files:
        hint = f"name files, or put some there; {_KINDS}"
        raise InputError(message="no file in this directory", hint=hint, path=path)
    yield from (_of_file(file) for file in files or [Path(path)])
    left = [entry.name for entry in shown if entry.is_dir()] if directory else []
    if left:
        yield Observation(notes=(f"{path}: directories in it are not read: {', '.join(left)!a}",))


def _of_file(file: Path) -> Observation:
    path = str(file)
    try:
        with file.open("rb") as stream:
            data = _bytes(path, stream)
    except OSError as error:
        raise _no_access(path, error) from error
    return _observation(data, path=path, name=file.name)


def _no_access(path: str, error: OSError) -> InputError:
    match error:
        case FileNotFoundError():
            message, hint = "no such file or directory", "check the path"
        case PermissionError():
            message, hint = "no permission to read it", "make it readable, or pipe it in as `-`"
        case _:
            message = f"cannot be read: {error.strerror or error}"
            hint = "check the path and the file system"
    return InputError(message=message, hint=hint, path=path)


def _bytes(path: str, stream: BinaryIO) -> bytes:
    data = stream.read(_MOST_BYTES + 1)
    if data.startswith(b"\x1f\x8b"):
        data = _unzipped(path, data)
    if len(data) > _MOST_BYTES:
        message = f"larger than {_MOST_BYTES >> 20} MiB"
        hint = "leave out what is not needed, for example all but nodes and pods"
        raise InputError(message=message, hint=hint, path=path)
    return data


def _unzipped(path: str, data: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            return stream.read(_MOST_BYTES + 1)
    except EOFError as error:
        hint = "the file looks cut off; copy it anew"
        raise InputError(message="the gzip data ends too early", hint=hint, path=path) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        message = f"broken gzip data: {error}"
        raise InputError(message=message, hint="compress the file anew", path=path) from error


def _observation(data: bytes, *, path: str, name: str) -> Observation:
    text = _text(data, path)
    node = node_name(name)
    if not re.fullmatch(r"[!-~]{1,253}", node):
        message = f"the file name tells no usable node name: {shown(node)}"
        raise InputError(message=message, hint="rename the file to NODE.xml or alike", path=path)
    if not _JSON.match(text):
        if nvidia_smi_xml.recognises(text):
            _refuse_large_xml(text, path)
            return nvidia_smi_xml.read(text, source=path, node=node)
        if nvidia_smi_lgi.recognises(text):
            return nvidia_smi_lgi.read(text, source=path, node=node)
        if nvidia_smi_list.recognises(text):
            return nvidia_smi_list.read(text, source=path, node=node)
        foreign = _foreign(text)
        if foreign is not None:
            raise InputError(message=foreign[0], hint=foreign[1], path=path)
        refuse_large(text, path)
    documents = untyped_parser.parse(text, path=path, hint=_KINDS)
    if not documents:
        raise InputError(message="the file holds nothing but comments", hint=_KINDS, path=path)
    return _of_documents(documents, text, node)


def _of_documents(documents: Sequence[Untyped], text: str, node: str) -> Observation:
    if kubectl.recognises(documents):
        return kubectl.read(documents, node=node)
    first = documents[0]
    if kubelet_checkpoint.recognises(first.value):
        if node == _KUBELET_NAME:
            message, hint = "the file does not say its node", "rename it to NODE.checkpoint.json"
            raise InputError(message=message, hint=hint, path=first.path)
        return kubelet_checkpoint.read(first, node=node)
    if fleet_file.recognises(first.value):
        return fleet_file.read(text, source=first.path)
    raise _unknown(first)


def _text(data: bytes, path: str, kinds: str = _KINDS) -> str:
    if not data.strip():
        raise InputError(message="the file is empty", hint=kinds, path=path)
    head = data[:4096]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or _is_wide(head):
        hint = "save it as UTF-8; in PowerShell pipe it to `Out-File -Encoding utf8`"
        raise InputError(message="the file is UTF-16, not UTF-8", hint=hint, path=path)
    if b"\0" in head:
        raise InputError(message="the file is binary, not text", hint=kinds, path=path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"the file is no UTF-8 text: {error.reason}"
        raise InputError(message=message, hint=kinds, path=path, line=line) from error


def _is_wide(head: bytes) -> bool:
    """Tell whether every second byte is zero, as in UTF-16 text without a mark."""
    return len(head) > 1 and any(
        not any(head[start : len(head) & ~1 : 2]) and all(head[1 - start : len(head) & ~1 : 2])
        for start in (0, 1)
    )


def _foreign(text: str) -> tuple[str, str] | None:
    """Return what a text is that no reader takes, and what to do; None when it is not known."""
    for line in text[:65536].splitlines()[:5]:
        for pattern, message, hint in _FOREIGN:
            if re.match(pattern, line):
                return message, hint
    return None


def _refuse_large_xml(text: str, path: str) -> None:
    if len(text) > _MOST_XML_BYTES:
        message = (
            f"no node has so many GPUs that its XML is larger than {_MOST_XML_BYTES >> 20} MiB"
        )
        raise InputError(message=message, hint=nvidia_smi_xml.HINT, path=path)


def _unknown(document: Untyped) -> InputError:
    value, hint = document.value, _KINDS
    message = f"no reader knows this content: {shown(value)}"
    if isinstance(value, dict):
        keys = ", ".join(str(key) for key in list(value)[:6])
        message = f"no reader knows a document with the keys: {shown(keys)}"
        if not {"mig-configs", "sharing", "flags"}.isdisjoint(value):
            message, hint = "this is a configuration, not a cluster", "use `partita check` for it"
    return InputError(message=message, hint=hint, path=document.path)
