"""The parts of the API server that need no server."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.simulator.api_server import (
    ages,
    field_sets,
    json_path,
    managed_fields,
    patches,
    quantity,
    server_side_apply,
    shapes,
    strategic_merge,
)
from partita.simulator.api_server.managed_fields import Manager
from partita.simulator.api_server.shapes import Shape

_POD = shapes.built_in("io.k8s.api.core.v1.Pod")
_NOW = "2026-01-01T00:00:00Z"
_JSON = st.recursive(
    st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: (
        st.dictionaries(st.sampled_from("xyz"), inner, max_size=3) | st.lists(inner, max_size=3)
    ),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.sampled_from("xyz"), _JSON, max_size=3)
_PARTS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["red", "blue"]), max_size=3)
_LIST = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["id"],
    "items": {
        "type": "object",
        "properties": {"id": {"type": "string"}, "colour": {"type": "string"}},
    },
}
_SHAPE = Shape(
    {
        "type": "object",
        "properties": {
            "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "parts": _LIST,
        },
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("8", "8"),
        ("12000", "12k"),
        ("0", "0"),
        ("-2000m", "-2"),
    ],
)
def test_a_quantity_has_one_form(text: str, expected: str) -> None:
    """Without fractions, with the largest suffix; the amount stays."""
    assert quantity.canonical(text) == expected
    assert quantity.parse(expected) == quantity.parse(text)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (3_600, "60m"),
        (4 * 3_600, "4h"),
        (30 * 3_600, "30h"),
        (3 * 86_400 + 7_200, "3d2h"),
        (100 * 86_400, "100d"),
        (3 * 365 * 86_400, "3y"),
    ],
)
def test_ages_are_short(seconds: int, expected: str) -> None:
    """One or two units, as kubectl shows them."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    now = datetime.fromtimestamp(start.timestamp() + seconds, tz=UTC)
    assert ages.age(_NOW, now) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.count", [3]),
        (".spec.parts[*].id", ["a", "b"]),
        (".spec.parts[1].id", ["b"]),
        (".spec.parts[-1].id", ["b"]),
        ('.spec.parts[?(@.id=="b")].n', [2]),
        (".metadata.labels.example\\.com/x", ["y"]),
        (".metadata.labels['example.com/x']", ["y"]),
        (".spec.none", []),
        ("..spec", []),
    ],
)
def test_a_path_leads_to_values(path: str, expected: list[Any]) -> None:
    """To all of them; a path that is not understood leads nowhere."""
    parts = [{"id": "a", "n": 1}, {"id": "b", "n": 2}]
    metadata = {"labels": {"example.com/x": "y"}}
    assert json_path.find(path, {"spec": {"count": 3, "parts": parts}, "metadata": metadata}) == (
        expected
    )


@given(_OBJECTS, _OBJECTS)
def test_a_merge_patch_is_applied_once(value: Any, patch: Any) -> None:
    """To apply it again changes nothing; what it was given is not changed."""
    before = repr(value)
    merged = patches.apply_merge_patch(value, patch)
    assert patches.apply_merge_patch(merged, patch) == merged
    assert repr(value) == before


@given(_PARTS, _PARTS, _PARTS)
def test_owners_cover_what_was_applied(
    first: dict[str, str], second: dict[str, str], third: dict[str, str]
) -> None:
    """Whatever two managers apply by force, each item is there exactly as long as it has one."""
    one, two = (Manager(name=name, applies=True, api_version="v1") for name in ("one", "two"))
    live: dict[str, Any] = {"metadata": {}}
    for manager, parts in ((one, first), (two, second), (one, third)):
        items = [{"id": key, "colour": colour} for key, colour in parts.items()]
        applied = {"metadata": {}, "parts": items}
        live = managed_fields.after_apply(_SHAPE, live, applied, manager, force=True, now=_NOW)
    found = {part["id"]: part["colour"] for part in live.get("parts", [])}
    assert found == {**second, **third}


@given(_PARTS, _PARTS)
def test_a_merge_contains_what_was_applied(old: dict[str, str], new: dict[str, str]) -> None:
    """And keeps every item that was not."""
    both = [
        {"parts": [{"id": key, "colour": one} for key, one in parts.items()]}
        for parts in (old, new)
    ]
    merged = server_side_apply.merge(_SHAPE, *both)
    assert {part["id"]: part["colour"] for part in merged["parts"]} == {**old, **new}


@given(st.frozensets(st.lists(st.sampled_from(["f:a", "f:b", 'v:"x"']), min_size=1).map(tuple)))
def test_field_sets_are_written_and_read(paths: frozenset[tuple[str, ...]]) -> None:
    """FieldsV1 loses nothing."""
    assert field_sets.parse(field_sets.encode(paths)) == paths


def test_a_path_is_written_for_people() -> None:
    """Fields, keys and values."""
    path = ("f:spec", "f:containers", 'k:{"name":"main"}', "f:image")
    assert field_sets.write_path(path) == '.spec.containers[name="main"].image'
    assert field_sets.write_path(("f:finalizers", 'v:"a"')) == '.finalizers[="a"]'


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"env": [{"name": "A", "value": "9"}]}, [("A", "9"), ("B", "2")]),
        ({"env": [{"name": "A", "$patch": "delete"}]}, [("B", "2")]),
        ({"env": [{"$patch": "replace"}, {"name": "C", "value": "3"}]}, [("C", "3")]),
        ({"env": [{"name": "C"}], "$setElementOrder/env": [{"name": "C"}, {"name": "B"}]},
         [("C", None), ("A", "1"), ("B", "2")]),
        ({"$setElementOrder/env": [{"name": "B"}, {"name": "A"}]}, [("B", "2"), ("A", "1")]),
    ],
)  # fmt: skip
def test_strategic_directives(patch: Any, expected: Any) -> None:
    """Lists with a merge key are merged, cleared, ordered and thinned out."""
    container = shapes.built_in("io.k8s.api.core.v1.Container")
    old = {"name": "main", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    found = strategic_merge.apply_strategic_merge(container, old, patch)
    assert [(one["name"], one.get("value")) for one in found["env"]] == expected


def test_primitives_are_deleted_by_name() -> None:
    """Finalizers are a list of plain values that is merged."""
    old = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}}
    found = strategic_merge.apply_strategic_merge(_POD, old, patch)
    assert sorted(found["metadata"]["finalizers"]) == ["b", "c"]
