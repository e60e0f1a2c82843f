"""YAML with places: where things stand, and what is refused instead of crashing."""

import pytest

from partita.config import yaml_nodes
from partita.config.yaml_nodes import YamlMapping, YamlScalar
from partita.errors import InputError

OUTER = """\
kind: ConfigMap
data:
  first: |-

      a: 1
      b: [2,
        3]
  second: "c: 4"
  third: >-
    d: 5
  fourth: |2
      e: 6
"""


def _data() -> YamlMapping:
    root = yaml_nodes.compose(OUTER, "map.yaml")[0]
    assert isinstance(root, YamlMapping)
    data = root.get("data")
    assert isinstance(data, YamlMapping)
    return data


def _inner(key: str) -> YamlMapping:
    scalar = _data().get(key)
    assert isinstance(scalar, YamlScalar)
    inner = yaml_nodes.compose_embedded(scalar, OUTER, "map.yaml")[0]
    assert isinstance(inner, YamlMapping)
    return inner


def test_keys_and_values_have_places_from_one() -> None:
    """The first key stands at 1:1, its value behind it."""
    root = yaml_nodes.compose("a: b\n", "x")[0]
    assert isinstance(root, YamlMapping)
    entry = root.entry("a")
    assert entry is not None
    assert (entry.at.line, entry.at.column) == (1, 1)
    assert (entry.value.at.line, entry.value.at.column) == (1, 4)


def test_places_in_a_block_text_are_those_of_the_outer_file() -> None:
    """Empty lines and indentation of the block count."""
    entry = _inner("first").entry("b")
    assert entry is not None
    assert (entry.at.line, entry.at.column) == (6, 7)


def test_block_with_indentation_indicator_keeps_its_column() -> None:
    """With ``|2`` the inner text begins further to the left than its first word."""
    entry = _inner("fourth").entry("e")
    assert entry is not None
    assert OUTER.splitlines()[entry.at.line - 1][entry.at.column - 1 :].startswith("e: 6")


@pytest.mark.parametrize(("key", "inner", "line"), [("second", "c", 8), ("third", "d", 9)])
def test_places_in_a_text_that_is_no_block_are_those_of_the_text(
    key: str, inner: str, line: int
) -> None:
    """Inner lines of a quoted or folded text are not outer lines."""
    entry = _inner(key).entry(inner)
    assert entry is not None
    assert entry.at.line == line


def test_duplicate_keys_are_kept_and_the_last_counts() -> None:
    """A lenient reader takes the last."""
    root = yaml_nodes.compose("a: 1\nb: 2\na: 3\n", "x")[0]
    assert isinstance(root, YamlMapping)
    assert [entry.at.line for entry in root.duplicates()] == [3]
    value = root.get("a")
    assert isinstance(value, YamlScalar)
    assert value.value == 3


def test_merge_keys_give_way_to_own_keys() -> None:
    """``<<`` adds what the mapping does not say itself."""
    root = yaml_nodes.compose("base: &b {a: 1, c: 2}\nuse:\n  a: 9\n  <<: *b\n", "x")[0]
    assert isinstance(root, YamlMapping)
    use = root.get("use")
    assert isinstance(use, YamlMapping)
    assert use.keys == ("a", "c")


@pytest.mark.parametrize("text", ["${SIZE}", "${SIZE:=4}", "{{ .Values.size }}", "$SIZE"])
def test_templates_are_recognised(text: str) -> None:
    """Flux, Helm and envsubst leave such values behind."""
    root = yaml_nodes.compose(f"a: {text}\n", "x")[0]
    assert isinstance(root, YamlMapping)
    value = root.get("a")
    assert isinstance(value, YamlScalar)
    assert value.text == text
    assert yaml_nodes.is_template(value)


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("a: [1,\n", 2, "ends early"),
        ("a:\n\tb: 1\n", 2, "indent with blanks"),
        ("{{- if .Values.x }}\na: 1\n{{- end }}\n", 1, "helm template"),
        ("[" * 5000, 1, "correct the text"),
        ("- " * 5000, 1, "correct the text"),
        ("a: &x [*x]\n", 1, "correct the text"),
        ("? [a]\n: b\n", 1, "correct the text"),
        ("a: \x00\n", None, "correct the text"),
        ("a: \ud800\n", None, "correct the text"),
    ],
    ids=["cut", "tab", "helm", "brackets", "dashes", "loop", "list-key", "control", "surrogate"],
)
def test_unreadable_text_is_refused_with_its_place(text: str, line: int | None, hint: str) -> None:
    """What is not YAML, or is out to exhaust the reader, is one error with a hint."""
    with pytest.raises(InputError) as caught:
        yaml_nodes.compose(text, "x.yaml")
    assert caught.value.line == line
    assert hint in caught.value.hint


def test_chain_of_aliases_is_walked_once() -> None:
    """Nine levels of nine aliases are 387 million values, and 81 distinct ones."""
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    root = yaml_nodes.compose("\n".join(lines), "x")[0]
    assert len(list(yaml_nodes.scalars(root))) == 1
