"""The file in which the agent of a node says how it goes; ``partita status`` reads it."""

import contextlib
import tempfile
from pathlib import Path

from partita.config import untyped_parser
from partita.config.untyped import Untyped
from partita.errors import InputError
from partita.model.agent_status import (
    SCHEMA,
    AgentStatus,
    Condition,
    GpuStatus,
    ResourceStatus,
    SliceStatus,
)

__all__ = ["read", "write"]

_HINT = "the agent of this node writes it anew as soon as it runs"
_MODE = 0o644  # whoever is on the node may know


def write(path: Path, text: str) -> None:
    """Replace the file as a whole; whoever reads it sees the old text or the new one.

    Raises:
        InputError: When it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text)
    except OSError as error:
        raise InputError(
            message=f"cannot write the agent's state: {error.strerror}",
            hint="give another --state, or make its folder writable",
            path=str(path),
        ) from error


def _replace(path: Path, text: str) -> None:
    """Write beside the file and rename; nothing stays behind when that fails."""
    with tempfile.NamedTemporaryFile(
        "w",
        encoding="utf-8",
        errors="replace",  # a file name that is no text must not keep the rest from being told
        dir=path.parent,
        prefix=f".{path.name}-",
        delete=False,
    ) as file:
        beside = Path(file.name)
        try:
            file.write(text)
            file.flush()
            beside.chmod(_MODE)
            beside.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise


def read(path: Path) -> AgentStatus:
    """Return what the agent wrote last.

    Raises:
        InputError: When there is no such file, or it is none of the agent's.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(
            message="no agent has written its state here",
            hint="is `partita agent` running on this node? it tells of no other node; if it writes"
            " elsewhere, give its --state",
            path=str(path),
        ) from error
    except OSError as error:
        raise InputError(
            message=f"cannot be read: {error.strerror}",
            hint="give the file that the agent writes, as a user who may read it",
            path=str(path),
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            message=f"not UTF-8: byte {error.start}", hint=_HINT, path=str(path)
        ) from error
    documents = untyped_parser.parse(text, path=str(path), hint=_HINT)
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        raise InputError(message="not a state of an agent", hint=_HINT, path=str(path))
    (root,) = documents
    if root.need("schema").text() != SCHEMA:
        root.fail("the schema is not of this version of partita:", root.need("schema").text())
    return _status(root)


def _status(root: Untyped) -> AgentStatus:
    return AgentStatus(
        node=root.need("node").text(),
        version=root.need("version").text(),
        process_id=root.need("process_id").whole(),
        at=root.need("at").text(),
        source=root.need("source").text(),
        conditions=tuple(map(_condition, root.need("conditions").elements())),
        gpus=tuple(map(_gpu, root.need("gpus").elements())),
        resources=tuple(map(_resource, root.need("resources").elements())),
    )


def _condition(one: Untyped) -> Condition:
    holds = one.get("holds")
    return Condition(
        type=one.need("type").text(),
        holds=holds.flag() if holds is not None else None,
        reason=one.need("reason").text(),
        message=one.need("message").text(),
        hint=_text(one, "hint"),
        since=one.need("since").text(),
    )


def _gpu(one: Untyped) -> GpuStatus:
    return GpuStatus(
        index=one.need("index").whole(),
        uuid=one.need("uuid").text(),
        product=one.need("product").text(),
        memory_mib=_whole(one, "memory_mib"),
        mig_mode=_text(one, "mig_mode"),
        phase=one.need("phase").text(),
        reason=_text(one, "reason"),
        since=one.need("since").text(),
        processes=_texts(one, "processes"),
        slices=tuple(map(_slice, one.need("slices").elements())),
    )


def _slice(one: Untyped) -> SliceStatus:
    return SliceStatus(
        device_id=one.need("device_id").text(),
        resource=one.need("resource").text(),
        profile=_text(one, "profile"),
        placement=_text(one, "placement"),
        usable=one.need("usable").flag(),
        leaving=one.need("leaving").flag(),
        holders=_texts(one, "holders"),
        budget_mib=_whole(one, "budget_mib"),
    )


def _resource(one: Untyped) -> ResourceStatus:
    return ResourceStatus(
        name=one.need("name").text(),
        slices=one.need("slices").whole(),
        usable=one.need("usable").whole(),
        held=one.need("held").whole(),
        connected=one.need("connected").flag(),
        problem=_text(one, "problem"),
    )


def _text(one: Untyped, key: str) -> str | None:
    found = one.get(key)
    return found.text() if found is not None else None


def _whole(one: Untyped, key: str) -> int | None:
    found = one.get(key)
    return found.whole() if found is not None else None


def _texts(one: Untyped, key: str) -> tuple[str, ...]:
    return tuple(element.text() for element in one.need(key).elements())
