"""Whatever is done to a good file, reading it ends in an observation or in one clear error."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from partita.cli import sources
from partita.errors import InputError, PartitaError
from partita.model.report import Observation

_CASES = Path(__file__).parent / "cases"
_FILES = sorted(path.relative_to(_CASES).as_posix() for path in _CASES.glob("*/*"))
_TREES = [name for name in _FILES if name.endswith((".json", ".yaml"))]
_XML = [name for name in _FILES if name.endswith(".xml")]
_TABLES = [name for name in _FILES if name.endswith(".txt")]
_WORDS = [
    *("[N/A]", "N/A", "ERR!", "Unknown Error", "[Unknown Error]", "GPU is lost", "None", ""),
    *("0", "-1", "1e99", "9" * 5000, "x" * 100_000, "\N{SNOWMAN}", "a\nb", "1::2", "$(x)"),
]
_JUNK = [
    *_WORDS,
    *(None, True, 0, -1, 1.5, 2**70, 10**400, float("1e300"), "\ud800", "\x1b[31m", "\0"),
    *([], {}, ["[N/A]"], [[[]]], {"a": 1}, {"kind": "Pod"}, [{"name": None}]),
]
_SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _check(data: bytes) -> None:
    """Read the data and accept only an observation or an error of two printable lines."""
    try:
        (found,) = sources.read(["-"], stdin=io.BytesIO(data))
    except InputError as error:
        text = str(error)
        message, hint = text.split("\n")
        assert message.startswith("-")
        assert hint.startswith("hint: ")
        assert len(text) < 2000
        text.encode()
        assert message.isprintable()
    else:
        assert isinstance(found, Observation)
        assert all(note.isprintable() for note in found.notes)
        repr(found).encode()


def _places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything inside a document."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _places(inner, (*path, index))


def _document(name: str) -> Any:
    text = (_CASES / name).read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else next(iter(yaml.safe_load_all(text)))


def _mutated(name: str, path: tuple[Any, ...], junk: object) -> object:
    document = _document(name)
    step = document
    for key in path[:-1]:
        step = step[key]
    step[path[-1]] = junk
    return document


@pytest.mark.parametrize("name", _FILES)
@_SETTINGS
@given(data=st.data())
def test_cut_off_anywhere(name: str, data: st.DataObject) -> None:
    """A file that ends at any byte."""
    content = (_CASES / name).read_bytes()
    _check(content[: data.draw(st.integers(0, len(content)))])


@pytest.mark.parametrize("name", _FILES)
@_SETTINGS
@given(data=st.data())
def test_any_byte_changed(name: str, data: st.DataObject) -> None:
    """A file in which a few bytes are replaced by any others."""
    content = bytearray((_CASES / name).read_bytes())
    places = st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)
    for place in data.draw(places):
        content[place : place + 1] = data.draw(st.binary(max_size=3))
    _check(bytes(content))


@pytest.mark.parametrize("name", _TREES)
@_SETTINGS
@given(data=st.data())
def test_any_value_replaced(name: str, data: st.DataObject) -> None:
    """A JSON or YAML document in which any value is replaced by junk, written as either."""
    path = data.draw(st.sampled_from(list(_places(_document(name)))))
    document = _mutated(name, path, data.draw(st.sampled_from(_JUNK)))
    _check(json.dumps(document, default=str).encode())
    try:
        written = yaml.safe_dump(document, allow_unicode=False).encode()
    except (ValueError, UnicodeEncodeError):
        return  # neither half a surrogate pair nor an endless number can be written as YAML
    _check(written)


@pytest.mark.parametrize("name", _XML)
@_SETTINGS
@given(data=st.data())
def test_any_element_replaced(name: str, data: st.DataObject) -> None:
    """An XML file in which the text of any element, children included, is replaced by a word."""
    text = (_CASES / name).read_text(encoding="utf-8")
    root = ET.fromstring(text[text.index("<?xml") :])  # noqa: S314 - our own file
    element = data.draw(st.sampled_from(list(root.iter())))
    for child in list(element):
        element.remove(child)
    element.text = data.draw(st.sampled_from(_WORDS))
    _check(ET.tostring(root))


@pytest.mark.parametrize("name", _TABLES)
@_SETTINGS
@given(data=st.data())
def test_any_word_replaced(name: str, data: st.DataObject) -> None:
    """A table in which any word is replaced by another."""
    words = (_CASES / name).read_text(encoding="utf-8").split(" ")
    words[data.draw(st.integers(0, len(words) - 1))] = data.draw(st.sampled_from(_WORDS))
    _check(" ".join(words).encode())


@_SETTINGS
@given(data=st.binary(max_size=300))
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b"- " * 100_000)
@example(b"<a>" * 100_000)
@example(b"{a: " * 100_000)
@example(b"a: &a [" + b"*a, " * 10 + b"]")
@example(b"kind: Node\nmetadata: &m {name: *m}")
@example(b"nodes: &n [*n]")
@example(b"a: !!int ''")
@example(b"a: !!python/name:os.system")
@example(b'{"a": NaN}')
@example(b'{"a": ' + b"9" * 5000 + b"}")
@example(b"nvidia.com/gpu: 0x" + b"f" * 5000)
@example(b'{"kind": "\\ud800"}')
def test_arbitrary_bytes(data: bytes) -> None:
    """Any bytes at all, and texts that are known to break parsers."""
    _check(data)


def test_error_tree() -> None:
    """What the readers raise is caught by whoever catches partita's errors."""
    assert issubclass(InputError, PartitaError)
