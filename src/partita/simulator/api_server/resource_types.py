"""The resources that are served: the built-in ones, and those that CRDs add."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from partita.simulator.api_server import shapes
from partita.simulator.api_server.shapes import Shape

__all__ = ["BUILT_IN", "ResourceType", "Resources", "custom_types"]

_CORE = "io.k8s.api"
_CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResourceType:
    """One resource in one version.

    Attributes:
        group: API group, empty for the core.
        version: Such as ``v1``.
        plural: Name in paths.
        kind: Name of the kind.
        singular: Name that people may use.
        is_namespaced: Whether its objects live in namespaces.
        shape: What its objects look like.
        short_names: Further names for people.
        categories: Names of groups of resources, such as ``all``.
        subresources: Paths below an object.
        is_custom: Whether a CRD brought it.
        columns: Printer columns of a CRD.
        collection: Where the store keeps its objects; versions of a resource share one.
    """

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    singular: str
    is_namespaced: bool = True
    shape: Shape
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    is_custom: bool = False
    columns: tuple[Mapping[str, Any], ...] = ()
    collection: str

    @property
    def api_version(self) -> str:
        """The ``apiVersion`` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        """The ``kind`` of its lists."""
        return f"{self.kind}List"

    @property
    def has_status(self) -> bool:
        """Whether the status is changed by a path of its own."""
        return "status" in self.subresources

    @property
    def verbs(self) -> tuple[str, ...]:
        """What can be done with it, in the order in which the API server tells it."""
        if self.is_custom:
            return (*_CUSTOM_FIRST, "create", "update", "watch")
        collective = ("deletecollection",) if self.plural != "namespaces" else ()
        return ("create", "delete", *collective, "get", "list", "patch", "update", "watch")


_CUSTOM_FIRST = ("delete", "deletecollection", "get", "list", "patch")


def _built_in(group: str, kind: str, plural: str, short: str = "", **more: Any) -> ResourceType:
    package = group.partition(".")[0] or "core"
    definition = more.pop("definition", f"{_CORE}.{package}.v1.{kind}")
    return ResourceType(
        group=group,
        plural=plural,
        kind=kind,
        singular=kind.lower(),
        shape=shapes.built_in(definition),
        short_names=tuple(short.split()),
        collection=more.pop("collection", f"{plural}.{group}" if group else plural),
        **more,
    )


_GLOBAL = {"is_namespaced": False}
_STATUS = {"subresources": ("status",)}
BUILT_IN = (
    _built_in("", "ConfigMap", "configmaps", "cm"),
    _built_in("", "Event", "events", "ev"),
    _built_in("", "LimitRange", "limitranges", "limits"),
    _built_in("", "Namespace", "namespaces", "ns", **_GLOBAL, **_STATUS),
    _built_in("", "Node", "nodes", "no", **_GLOBAL, **_STATUS),
    _built_in("", "Pod", "pods", "po", categories=("all",), subresources=("binding", "status")),
    _built_in("", "ResourceQuota", "resourcequotas", "quota", **_STATUS),
    _built_in("", "ServiceAccount", "serviceaccounts", "sa"),
    _built_in("apps", "DaemonSet", "daemonsets", "ds", categories=("all",), **_STATUS),
    _built_in("apps", "Deployment", "deployments", "deploy", categories=("all",), **_STATUS),
    _built_in("events.k8s.io", "Event", "events", "ev", collection="events"),
    _built_in("coordination.k8s.io", "Lease", "leases"),
    _built_in(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd crds",
        categories=("api-extensions",),
        definition=_CRD,
        **_GLOBAL,
        **_STATUS,
    ),
)


def custom_types(definition: Mapping[str, Any]) -> Iterator[ResourceType]:
    """Yield the resource types that a CRD defines, the stored version first."""
    spec = definition["spec"]
    names = spec["names"]
    versions = sorted(spec["versions"], key=lambda one: not one.get("storage"))
    for version in versions:
        if version.get("served"):
            yield ResourceType(
                group=spec["group"],
                version=version["name"],
                plural=names["plural"],
                kind=names["kind"],
                singular=names.get("singular") or names["kind"].lower(),
                is_namespaced=spec["scope"] == "Namespaced",
                shape=_custom_shape(version),
                short_names=tuple(names.get("shortNames", ())),
                categories=tuple(names.get("categories", ())),
                subresources=("status",) if "status" in version.get("subresources", {}) else (),
                is_custom=True,
                columns=tuple(version.get("additionalPrinterColumns", ())),
                collection=f"{names['plural']}.{spec['group']}",
            )


def _custom_shape(version: Mapping[str, Any]) -> Shape:
    schema = version.get("schema", {}).get("openAPIV3Schema", {})
    properties = {**schema.get("properties", {}), "metadata": {"type": "object"}}
    properties |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    return _Custom({**schema, "type": "object", "properties": properties})


class _Custom(Shape):
    """The shape of a custom resource: its metadata are those of every kind."""

    def child(self, key: str) -> Shape | None:
        return shapes.built_in(shapes.OBJECT_META) if key == "metadata" else super().child(key)


@dataclass(slots=True)
class Resources:
    """All resources that are served now.

    Attributes:
        served: The resources, in the order of discovery.
    """

    served: tuple[ResourceType, ...] = BUILT_IN
    _found: dict[tuple[str, str, str], ResourceType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index what is served."""
        self._index()

    def define(self, definitions: Iterator[Mapping[str, Any]]) -> None:
        """Serve the built-in resources and what these CRDs define."""
        custom = (found for one in definitions for found in custom_types(one))
        self.served = (*BUILT_IN, *custom)
        self._index()

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        """Return the resource of a path."""
        return self._found.get((group, version, plural))

    def in_group(self, group: str) -> tuple[ResourceType, ...]:
        """Return the resources of a group."""
        return tuple(one for one in self.served if one.group == group)

    def sharing(self, collection: str) -> ResourceType:
        """Return the resource in whose form a collection keeps its objects."""
        return next(one for one in self.served if one.collection == collection)

    def _index(self) -> None:
        self._found = {(one.group, one.version, one.plural): one for one in self.served}
