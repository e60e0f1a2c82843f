"""The CustomResourceDefinitions of ``PartitionPolicy`` and ``GPUNode``."""

from collections.abc import Mapping
from dataclasses import dataclass

from partita.config import gpu_node_schema, partition_policy, policy_schema
from partita.config.schema import Record
from partita.manifests import open_api

__all__ = ["DEFINITIONS", "Column", "Definition", "document"]

_READY = '.status.conditions[?(@.type=="Ready")]'


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of ``kubectl get``.

    Attributes:
        name: Its title.
        path: JSONPath of its value.
        type: ``string``, ``integer`` or ``date``.
        wide: Whether only ``-o wide`` shows it.
    """

    name: str
    path: str
    type: str = "string"
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A kind of object of ours; both are cluster-scoped.

    Attributes:
        kind: Its kind.
        plural: Its name in addresses.
        short: Its short name.
        summary: What an object of it is.
        spec: What people and the controller write.
        spec_meaning: The same in words.
        status: What programs report.
        status_meaning: The same in words.
        columns: Columns, those with the name and before the age.
        needs_spec: Whether an object without ``spec`` makes no sense.
    """

    kind: str
    plural: str
    short: str
    summary: str
    spec: Record
    spec_meaning: str
    status: Record
    status_meaning: str
    columns: tuple[Column, ...]
    needs_spec: bool

    @property
    def name(self) -> str:
        """Name of the definition itself."""
        return f"{self.plural}.{_GROUP}"


_GROUP, _, _VERSION = partition_policy.API_VERSION.partition("/")

DEFINITIONS = (
    Definition(
        kind=gpu_node_schema.KIND,
        plural="gpunodes",
        short="gpun",
        summary="One node with GPUs: what each GPU is to be, and what the agent reports.",
        spec=gpu_node_schema.SPEC,
        spec_meaning="What each GPU is to be; one that is not listed stays as it stands.",
        status=gpu_node_schema.STATUS,
        status_meaning="What the agent of the node reports.",
        columns=(
            Column(name="GPUs", path=".status.counts.gpus", type="integer"),
            Column(name="Slices", path=".status.counts.slices", type="integer"),
            Column(name="Held", path=".status.counts.held", type="integer"),
            Column(name="Ready", path=f"{_READY}.status"),
            Column(name="Reason", path=f"{_READY}.reason"),
            Column(name="Models", path=".status.counts.models", wide=True),
            Column(name="Message", path=f"{_READY}.message", wide=True),
            Column(name="Agent", path=".status.agent.version", wide=True),
        ),
        needs_spec=False,
    ),
    Definition(
        kind=partition_policy.KIND,
        plural="partitionpolicies",
        short="pp",
        summary="What an operator wants of a set of GPUs.",
        spec=policy_schema.SPEC,
        spec_meaning="Which GPUs are meant, and what is wanted of them.",
        status=policy_schema.STATUS,
        status_meaning="How the policy fares, as the controller reports it.",
        columns=(
            Column(name="Strategy", path=".spec.strategy"),
            Column(name="Follow", path=".spec.follow"),
            Column(name="Nodes", path=".status.nodes", type="integer"),
            Column(name="Ready", path=f"{_READY}.status"),
            Column(name="Reason", path=f"{_READY}.reason", wide=True),
            Column(name="Message", path=f"{_READY}.message", wide=True),
            Column(name="Via", path=".spec.via", wide=True),
        ),
        needs_spec=True,
    ),
)
"""The kinds, by plural."""

_AGE = Column(name="Age", path=".metadata.creationTimestamp", type="date")


def document(definition: Definition) -> Mapping[str, object]:
    """Return the CustomResourceDefinition of a kind."""
    names = {
        "kind": definition.kind,
        "listKind": f"{definition.kind}List",
        "plural": definition.plural,
        "singular": definition.kind.lower(),
        "shortNames": [definition.short],
        "categories": ["partita"],
    }
    version = {
        "name": _VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(one) for one in (*definition.columns, _AGE)],
        "schema": {"openAPIV3Schema": _schema(definition)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": definition.name},
        "spec": {"group": _GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }


def _schema(definition: Definition) -> Mapping[str, object]:
    own = {
        "spec": (definition.spec_meaning, definition.spec),
        "status": (definition.status_meaning, definition.status),
    }
    return {
        "description": definition.summary,
        "type": "object",
        **({"required": ["spec"]} if definition.needs_spec else {}),
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            **{key: {"description": text, **open_api.of(one)} for key, (text, one) in own.items()},
        },
    }


def _column(column: Column) -> Mapping[str, object]:
    document: dict[str, object] = {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.path,
    }
    return document | ({"priority": 1} if column.wide else {})
