"""``status`` of a ``PartitionPolicy``: written by the controller, read by whoever shows it."""

from collections.abc import Mapping
from typing import Any

from partita.config import condition_document, plain_nodes, schema_reader
from partita.config.inspection import Decoded, Inspection
from partita.config.policy_schema import STATUS
from partita.config.yaml_nodes import YamlMapping
from partita.model.policy_status import PolicyStatus

__all__ = ["decode_object", "encode"]


def encode(status: PolicyStatus) -> Mapping[str, object]:
    """Return the document of a status; what is unknown is left out."""
    document = {
        "observedGeneration": status.observed_generation,
        "nodes": status.nodes,
        "conditions": condition_document.encode_all(status.conditions) or None,
    }
    return {key: value for key, value in document.items() if value is not None}


def decode_object(value: Mapping[str, object], path: str) -> Decoded[PolicyStatus]:
    """Read the status of a policy as an API server returns it; unknown keys are warnings.

    Raises:
        InputError: When it is nested too deeply.
    """
    inspection = Inspection(path=path)
    node = inspection.mapping(plain_nodes.of(value, path), "status")
    checked: Mapping[str, Any] | None = None
    if isinstance(node, YamlMapping):
        checked = schema_reader.read(STATUS, node, "status", inspection, newer_keys=True)
    findings = plain_nodes.placeless(inspection.findings)
    if checked is None:
        return Decoded(values=(), findings=findings)
    status = PolicyStatus(
        observed_generation=checked.get("observedGeneration"),
        nodes=checked.get("nodes"),
        conditions=tuple(map(condition_document.decode, checked.get("conditions", ()))),
    )
    return Decoded(values=(status,), findings=findings)
