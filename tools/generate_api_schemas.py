"""Writes ``built_in_schemas.json`` of the simulated API server from what a real one publishes.

Only names, types, list keys and patch strategies are taken, no texts. Needs the test bed:
``python -m testbed run python tools/generate_api_schemas.py``.
"""  # noqa: INP001 - a script, not a package

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "src/partita/simulator/api_server/built_in_schemas.json"
DOCUMENTS = (
    *("api/v1", "apis/apps/v1", "apis/events.k8s.io/v1", "apis/coordination.k8s.io/v1"),
    "apis/apiextensions.k8s.io/v1",
)
"""Paths below ``/openapi/v3``."""
_API = "io.k8s.api"
_KINDS = (
    *(f"{_API}.core.v1.{kind}" for kind in ("Binding", "ConfigMap", "Event", "LimitRange")),
    *(f"{_API}.core.v1.{kind}" for kind in ("Namespace", "Node", "Pod", "ResourceQuota")),
    f"{_API}.core.v1.ServiceAccount",
    *(f"{_API}.apps.v1.{kind}" for kind in ("DaemonSet", "Deployment")),
    f"{_API}.coordination.v1.Lease",
    f"{_API}.events.v1.Event",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
)
_LEFT_OUT = {"description", "x-kubernetes-group-version-kind"}


def extracted(documents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the definitions that our kinds need, without texts."""
    published: dict[str, Any] = {}
    for document in documents:
        published |= document["components"]["schemas"]
    found: dict[str, Any] = {}
    waiting = list(_KINDS)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _schema(published[name], waiting)
    return found


def _schema(node: Mapping[str, Any], waiting: list[str]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in node.items():
        if key in _LEFT_OUT:
            continue
        if key == "allOf" and len(value) == 1:  # a reference with a default beside it
            kept |= _schema(value[0], waiting)
        elif key == "$ref":
            kept[key] = value.rsplit("/", 1)[1]
            waiting.append(kept[key])
        elif key == "properties":
            kept[key] = {name: _schema(one, waiting) for name, one in value.items()}
        elif key in {"items", "additionalProperties"} and isinstance(value, Mapping):
            kept[key] = _schema(value, waiting)
        else:
            kept[key] = value
    return kept


def written(schemas: Mapping[str, Any]) -> str:
    """Return the text of the file: one definition a line, so that changes can be read."""
    lines = [
        f"{json.dumps(name)}:{json.dumps(schemas[name], separators=(',', ':'), sort_keys=True)}"
        for name in sorted(schemas)
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    """Start a control plane, ask it, and write the file."""
    sys.path.insert(0, str(ROOT))
    from testbed.cluster import Cluster  # noqa: PLC0415 - after the path is set

    with Cluster(nodes=0) as cluster:
        documents = [cluster.api.get(f"/openapi/v3/{path}") for path in DOCUMENTS]
    TARGET.write_text(written(extracted(documents)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
