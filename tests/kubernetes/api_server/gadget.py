"""A custom resource with everything that partita's own have."""

from typing import Any

PATH = "/apis/facts.example.com/v1/gadgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PART = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "string", "minLength": 1}, "colour": {"type": "string"}},
}
_SPEC = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": 10},
        "mode": {"type": "string", "enum": ["Fast", "Slow"], "default": "Slow"},
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id"],
            "items": _PART,
        },
    },
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.facts.example.com"},
    "spec": {
        "group": "facts.example.com",
        "scope": "Cluster",
        "names": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Count", "type": "integer", "jsonPath": ".spec.count"},
                    {"name": "Parts", "type": "string", "jsonPath": ".spec.parts[*].id"},
                    {
                        "name": "Ready",
                        "type": "string",
                        "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
                    },
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": _SPEC,
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
            }
        ],
    },
}


def gadget(name: str, spec: Any = None, **metadata: Any) -> dict[str, Any]:
    """Return a gadget."""
    head = {"apiVersion": "facts.example.com/v1", "kind": "Gadget"}
    return head | {"metadata": {"name": name, **metadata}, "spec": {} if spec is None else spec}
