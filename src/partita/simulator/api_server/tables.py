"""Objects as tables, and objects of which only the metadata are wanted."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from partita.simulator.api_server import ages, built_in_columns, json_path
from partita.simulator.api_server.resource_types import ResourceType
from partita.simulator.api_server.shapes import Object

__all__ = ["partial", "table"]

_META = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_NAME = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}


def partial(found: Object) -> Object:
    """Return an object of which only the metadata are left."""
    return _META | {"metadata": found["metadata"]}


def table(
    resource: ResourceType,
    objects: Iterable[Object],
    metadata: Object,
    *,
    now: datetime,
    include: str = "Metadata",
) -> Object:
    """Return objects as a table; ``include`` is how much of an object goes with its row."""
    rows = [{"cells": _cells(resource, one, now), **_included(one, include)} for one in objects]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": _columns(resource),
        "rows": rows,
    }


def _included(found: Object, include: str) -> Object:
    if include == "None":
        return {}
    return {"object": found if include == "Object" else partial(found)}


def _columns(resource: ResourceType) -> list[Any]:
    if not resource.is_custom:
        return built_in_columns.COLUMNS[resource.collection]
    return [_NAME] + [
        {
            "name": one["name"],
            "type": one["type"],
            "format": one.get("format", ""),
            "description": one.get("description", ""),
            "priority": one.get("priority", 0),
        }
        for one in resource.columns or (_AGE,)
    ]


def _cells(resource: ResourceType, found: Object, now: datetime) -> list[Any]:
    if not resource.is_custom:
        return built_in_columns.CELLS[resource.collection](found, now)
    name = found["metadata"]["name"]
    return [name, *(_cell(one, found, now) for one in resource.columns or (_AGE,))]


def _cell(column: Any, found: Object, now: datetime) -> Any:
    values = json_path.find(column["jsonPath"], found)  # of several the first is shown
    if not values or values[0] is None:
        return None
    value = values[0]
    kind = column["type"]
    if kind == "date":
        return ages.age(str(value), now)
    if kind in {"integer", "number"}:
        return value if isinstance(value, int | float) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
