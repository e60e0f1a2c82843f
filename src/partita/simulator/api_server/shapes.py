"""The shape of objects: which fields there are, and how lists and maps are told apart.

Built-in kinds and custom resources are described in the same terms, those of Kubernetes' OpenAPI
documents; everything that walks an object (decoding, defaulting, patches, field sets) walks a
shape beside it. ``built_in_schemas.json`` holds the facts of Kubernetes 1.37 for the built-in
kinds: names, types, list keys and patch strategies as its API server publishes them, no texts.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib import resources
from typing import Any

__all__ = ["ANYTHING", "OBJECT_META", "Object", "Shape", "built_in", "built_in_definitions"]

Object = dict[str, Any]
"""A JSON object, such as every object of the API; what is stored is never changed in place."""

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
OBJECT_META = f"{_META}.ObjectMeta"
_REF = "$ref"


class Shape:
    """What may stand at one place of an object."""

    def __init__(
        self, node: Mapping[str, Any], definitions: Mapping[str, Any] | None = None
    ) -> None:
        self._definitions = definitions
        reference = str(node.get(_REF, ""))
        self.definition = reference
        """Full name of the type, of built-in kinds."""
        self.name = reference.rpartition(".")[2]
        """Its last part."""
        referred = (definitions or {}).get(reference.rpartition("/")[2], {})
        self.node: Mapping[str, Any] = {**referred, **node} if reference else node

    @property
    def is_built_in(self) -> bool:
        """Whether it is of a built-in kind."""
        return self._definitions is not None

    @cached_property
    def type(self) -> str:
        """A JSON type, ``int-or-string``, ``quantity``, or ``any``."""
        node = self.node
        if node.get("x-kubernetes-int-or-string") or node.get("format") == "int-or-string":
            return "int-or-string"
        if "type" in node:
            return str(node["type"])
        return "quantity" if "oneOf" in node and self.is_built_in else "any"

    @cached_property
    def fields(self) -> Mapping[str, "Shape"]:
        """Known fields of an object."""
        return _Fields(self.node.get("properties", {}), self._definitions)

    @cached_property
    def values(self) -> "Shape | None":
        """What the values of a map are; None when it is not a map."""
        additional = self.node.get("additionalProperties")
        if isinstance(additional, Mapping):
            return Shape(additional, self._definitions)
        return ANYTHING if additional is True else None

    @cached_property
    def items(self) -> "Shape":
        """What the items of a list are."""
        items = self.node.get("items")
        return Shape(items, self._definitions) if isinstance(items, Mapping) else ANYTHING

    @cached_property
    def keeps_unknown(self) -> bool:
        """Whether fields stay that it does not know."""
        if self.type == "any" or self.node.get("x-kubernetes-preserve-unknown-fields"):
            return True
        plain = "properties" not in self.node and self.values is None
        return self.is_built_in and self.type == "object" and plain

    @cached_property
    def is_atomic(self) -> bool:
        """Whether it has one owner as a whole."""
        if self.type == "array":
            return bool(self.node.get("x-kubernetes-list-type", "atomic") == "atomic")
        return bool(self.node.get("x-kubernetes-map-type") == "atomic")

    @property
    def is_set(self) -> bool:
        """Whether it is a list whose items are told apart by their value."""
        return self.node.get("x-kubernetes-list-type") == "set"

    @property
    def keys(self) -> tuple[str, ...]:
        """Fields by which the items of a list are told apart."""
        return tuple(self.node.get("x-kubernetes-list-map-keys", ()))

    @property
    def required(self) -> tuple[str, ...]:
        """Fields that must be there."""
        return tuple(self.node.get("required", ()))

    @property
    def patch_strategies(self) -> frozenset[str]:
        """How a strategic merge patch treats it."""
        return frozenset(str(self.node.get("x-kubernetes-patch-strategy", "")).split(","))

    @property
    def merge_key(self) -> str | None:
        """Field by which a strategic merge patch tells the items of a list apart."""
        return self.node.get("x-kubernetes-patch-merge-key")

    def child(self, key: str) -> "Shape | None":
        """Return the shape under a key of an object or map; None for an unknown field."""
        found = self.fields.get(key)
        if found is None:
            found = self.values
        return ANYTHING if found is None and self.keeps_unknown else found


class _Fields(Mapping[str, Shape]):
    """Shapes of fields, made when they are asked for: some contain themselves."""

    def __init__(
        self, nodes: Mapping[str, Mapping[str, Any]], definitions: Mapping[str, Any] | None
    ) -> None:
        self._nodes = nodes
        self._definitions = definitions
        self._made: dict[str, Shape] = {}

    def __getitem__(self, key: str) -> Shape:
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = Shape(self._nodes[key], self._definitions)
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


ANYTHING = Shape({})
"""No shape: whatever stands there stays, and has one owner as a whole."""


@cache
def built_in_definitions() -> Mapping[str, Any]:
    """Return definition → schema of every built-in type."""
    text = resources.files(__package__).joinpath("built_in_schemas.json").read_text("utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


@cache
def built_in(definition: str) -> Shape:
    """Return the shape of a built-in type by the name of its definition."""
    return Shape({_REF: definition}, built_in_definitions())
