"""The agent's state file: written whole, read strictly."""

import errno
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.views.example_statuses import ALL, CUT, MIXED

from partita.adapters import agent_state
from partita.errors import InputError
from partita.model.agent_status import (
    AgentStatus,
    Condition,
    GpuStatus,
    ResourceStatus,
    SliceStatus,
)
from partita.views import agent_status

_SETTINGS = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_TEXTS = st.lists(_TEXT, max_size=3).map(tuple)
_NUMBERS = st.integers(-(2**63) + 1, 2**63 - 1)
_MAYBE_TEXT, _MAYBE_NUMBER = st.none() | _TEXT, st.none() | _NUMBERS


def _several(one: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(one, max_size=3).map(tuple)


_CONDITIONS = st.builds(
    Condition,
    type=_TEXT,
    holds=st.none() | st.booleans(),
    reason=_TEXT,
    message=_TEXT,
    hint=_MAYBE_TEXT,
    since=_TEXT,
)
_SLICES = st.builds(
    SliceStatus,
    device_id=_TEXT,
    resource=_TEXT,
    profile=_MAYBE_TEXT,
    placement=_MAYBE_TEXT,
    usable=st.booleans(),
    leaving=st.booleans(),
    holders=_TEXTS,
    budget_mib=_MAYBE_NUMBER,
)
_GPUS = st.builds(
    GpuStatus,
    index=_NUMBERS,
    uuid=_TEXT,
    product=_TEXT,
    memory_mib=_MAYBE_NUMBER,
    mig_mode=_MAYBE_TEXT,
    phase=_TEXT,
    reason=_MAYBE_TEXT,
    since=_TEXT,
    processes=_TEXTS,
    slices=_several(_SLICES),
)
_RESOURCES = st.builds(
    ResourceStatus,
    name=_TEXT,
    slices=_NUMBERS,
    usable=_NUMBERS,
    held=_NUMBERS,
    connected=st.booleans(),
    problem=_MAYBE_TEXT,
)
_STATUSES = st.builds(
    AgentStatus,
    node=_TEXT,
    version=_TEXT,
    process_id=_NUMBERS,
    at=_TEXT,
    source=_TEXT,
    conditions=_several(_CONDITIONS),
    gpus=_several(_GPUS),
    resources=_several(_RESOURCES),
)
_JUNK = (None, True, -1, 1.5, 2**70, "", "x", "\ud800", "\x1b[31m", [], {}, [None], {"a": 1})


def _places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything inside a document."""
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else ()
    pairs = enumerate(value) if isinstance(value, list) else pairs
    for key, inner in pairs:
        yield from _places(inner, (*path, key))


@pytest.mark.parametrize("status", ALL)
def test_what_is_written_is_read(tmp_path: Path, status: AgentStatus) -> None:
    """Nothing is lost on the way."""
    path = tmp_path / "folder" / "agent.json"

    agent_state.write(path, json.dumps(agent_status.document(status)))

    assert agent_state.read(path) == status
    assert [file.name for file in path.parent.iterdir()] == ["agent.json"]


@_SETTINGS
@given(status=_STATUSES)
def test_any_status_is_read_as_it_was(tmp_path: Path, status: AgentStatus) -> None:
    """Whatever the texts and numbers are, as JSON in either spelling and as YAML."""
    document = agent_status.document(status)
    path = tmp_path / "agent.json"
    for text in (
        json.dumps(document),
        json.dumps(document, ensure_ascii=False, indent=1),
        yaml.safe_dump(document),
    ):
        agent_state.write(path, text)
        assert agent_state.read(path) == status


@_SETTINGS
@given(data=st.data())
def test_any_value_replaced_is_a_status_or_an_error(tmp_path: Path, data: st.DataObject) -> None:
    """Nothing in the file can end in anything else than one clear error."""
    document = json.loads(json.dumps(agent_status.document(MIXED)))
    *way, last = data.draw(st.sampled_from(list(_places(document))))
    step = document
    for key in way:
        step = step[key]
    step[last] = data.draw(st.sampled_from(_JUNK))
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    try:
        agent_state.read(path)
    except InputError as error:
        message, hint = str(error).split("\n")
    else:
        message, hint = "read", "hint: none"
    assert message.isprintable()
    assert hint.startswith("hint: ")


def test_everybody_may_read_it(tmp_path: Path) -> None:
    """Not only the user that the agent runs as; also when it replaces a stricter file."""
    path = tmp_path / "agent.json"
    path.touch(mode=0o600)

    agent_state.write(path, "{}")

    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_reader_keeps_the_whole_old_text(tmp_path: Path) -> None:
    """The file is replaced, not written over."""
    path = tmp_path / "agent.json"
    agent_state.write(path, "old")
    with path.open(encoding="utf-8") as file:
        agent_state.write(path, "new")
        assert file.read() == "old"
    assert path.read_text(encoding="utf-8") == "new"


def test_a_name_that_is_no_text_does_not_keep_the_rest_from_being_told(tmp_path: Path) -> None:
    """File names on Linux are bytes."""
    path = tmp_path / "agent.json"

    agent_state.write(path, "/etc/\udcff")

    assert path.read_text(encoding="utf-8") == "/etc/?"


def test_nothing_stays_behind_when_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is not made fuller at every try, and what stood there before stays."""
    path = tmp_path / "agent.json"
    agent_state.write(path, "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match="cannot write the agent's state: No space left"):
        agent_state.write(path, "new")
    assert [file.read_text(encoding="utf-8") for file in tmp_path.iterdir()] == ["old"]


def test_a_file_cut_short_anywhere_is_an_error(tmp_path: Path) -> None:
    """No part of it is taken for the whole."""
    text = json.dumps(agent_status.document(CUT))
    path = tmp_path / "agent.json"
    for end in range(0, len(text) - 1, 97):
        path.write_text(text[:end], encoding="utf-8")
        with pytest.raises(InputError):
            agent_state.read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "schema is missing"),
        ('{"schema": "partita.plan/v1"}', "not of this version"),
        ("[]", "not a state of an agent"),
        ('{"schema": "partita.agent-status/v1"}', "node is missing"),
    ],
)
def test_another_file_is_an_error_with_a_hint(tmp_path: Path, text: str, message: str) -> None:
    """It says what is not as it should be."""
    path = tmp_path / "agent.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match=message) as error:
        agent_state.read(path)

    assert error.value.hint


def test_no_file_asks_for_the_agent(tmp_path: Path) -> None:
    """Most likely the agent does not run here."""
    with pytest.raises(InputError, match="no agent has written its state here"):
        agent_state.read(tmp_path / "agent.json")


def test_what_is_no_file_or_no_text_is_an_error(tmp_path: Path) -> None:
    """It says which."""
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        agent_state.read(tmp_path)
    path = tmp_path / "agent.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match="not UTF-8: byte 7"):
        agent_state.read(path)


def test_a_folder_that_cannot_be_is_an_error(tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(InputError, match="cannot write the agent's state"):
        agent_state.write(tmp_path / "file" / "agent.json", "{}")
