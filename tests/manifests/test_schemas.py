"""The definitions are structural, say what every key means, and refuse what the readers refuse."""

import copy
import functools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.manifests import examples, rules, validator
from tests.manifests.examples import Document

from partita.config import schema
from partita.manifests import crds
from partita.manifests.crds import DEFINITIONS, Definition

_EXAMPLES = examples.every()
_KINDS = {one.kind: one for one in DEFINITIONS}
_BY_KIND = pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda one: one.kind)


@functools.cache  # a property test asks for it hundreds of times
def _schema_of(kind: str) -> dict[str, Any]:
    (version,) = crds.document(_KINDS[kind])["spec"]["versions"]  # type: ignore[index]
    return dict(version["schema"]["openAPIV3Schema"])


def _schema(definition: Definition) -> dict[str, Any]:
    return _schema_of(definition.kind)


def _refused(document: Document) -> list[str]:
    whole = _schema(_KINDS[document["kind"]])
    return validator.problems(whole, validator.defaulted(whole, document))


@_BY_KIND
def test_every_node_of_a_schema_has_a_type(definition: Definition) -> None:
    """Each says its type, and none uses what a structural schema may not have or we do not know."""
    for where, node in validator.nodes(_schema(definition)):
        assert node.get("type") in {"object", "array", "string", "integer", "boolean"}, where
        assert not {"properties", "additionalProperties"} <= set(node), where
        assert ("items" in node) == (node["type"] == "array"), where


@_BY_KIND
def test_every_key_says_what_it_means(definition: Definition) -> None:
    """``kubectl explain`` has a sentence for each key, without words of Python."""
    for where, node in validator.nodes(_schema(definition)):
        name = where.rpartition(".")[2]
        if name.endswith("[]") or where in ("", ".apiVersion", ".kind", ".metadata"):
            continue
        assert node["description"], where
        assert "None" not in node["description"], where
        assert "``" not in node["description"], where


@_BY_KIND
def test_keys_of_lists_are_required_in_their_items(definition: Definition) -> None:
    """The API server takes no key of a list that an item may lack."""
    for where, node in validator.nodes(_schema(definition)):
        if node.get("x-kubernetes-list-type") == "map":
            keys = node["x-kubernetes-list-map-keys"]
            assert set(keys) <= set(node["items"]["required"]), where


@_BY_KIND
def test_columns_show_what_there_is(definition: Definition) -> None:
    """The path of each column leads to a scalar of the schema."""
    leaves = {where for where, node in validator.nodes(_schema(definition)) if _is_scalar(node)}
    for column in definition.columns:
        path = column.path.replace('[?(@.type=="Ready")]', "[]")
        assert path in leaves


def test_every_rule_has_a_twin() -> None:
    """What the tests know of the CEL rules is all of them, and no more."""
    found = {
        rule["rule"]
        for definition in DEFINITIONS
        for _, node in validator.nodes(_schema(definition))
        for rule in node.get("x-kubernetes-validations", ())
    }
    assert found == rules.expressions()


@_BY_KIND
def test_a_schema_has_the_keys_of_its_reader(definition: Definition) -> None:
    """Not one more and not one less, at every depth."""
    properties = _schema(definition)["properties"]
    for name, record in (("spec", definition.spec), ("status", definition.status)):
        assert _keys(properties[name]) == _fields(record)


@pytest.mark.parametrize("name", _EXAMPLES)
def test_schema_and_reader_refuse_the_same(name: str) -> None:
    """The reader refuses more only where it takes the catalogue."""
    _agree(_EXAMPLES[name])


@settings(deadline=None)  # a loaded machine is no finding
@given(st.sampled_from(sorted(_EXAMPLES)), examples.VALUES, st.data())
def test_schema_and_reader_agree_on_any_change(name: str, value: Any, data: st.DataObject) -> None:
    """One value or key of a document is exchanged, added or removed."""
    document = copy.deepcopy(_EXAMPLES[name])
    examples.change(document.get("spec"), value, data)
    _agree(document)


def _agree(document: Document) -> None:
    refused, errors = _refused(document), examples.errors(document) - examples.HEADER
    if refused:
        assert errors, refused
    assert bool(refused) or errors <= examples.READER_ONLY, errors


def _is_scalar(node: validator.Schema) -> bool:
    return node["type"] not in ("object", "array")


def _keys(node: validator.Schema) -> Any:
    if "items" in node:
        return _keys(node["items"])
    inner = node.get("properties")
    return {key: _keys(one) for key, one in inner.items()} if inner is not None else None


def _fields(kind: schema.Kind) -> Any:
    if isinstance(kind, schema.ListOf):
        return _fields(kind.item)
    if isinstance(kind, schema.Record):
        return {key: _fields(one.kind) for key, one in kind.fields.items()}
    return None
