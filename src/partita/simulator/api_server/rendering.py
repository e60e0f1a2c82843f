"""Answers as bytes, in the form for which the client asked."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import yaml

from partita.simulator.api_server import event_forms, tables
from partita.simulator.api_server.failures import ApiFailure
from partita.simulator.api_server.negotiation import Form
from partita.simulator.api_server.reading import Page
from partita.simulator.api_server.resource_types import ResourceType
from partita.simulator.api_server.shapes import Object
from partita.simulator.api_server.store import ChangeType, Stored, encode

__all__ = ["Rendering"]

_TABLE = "Table"
_PARTIAL_LIST = b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """How the objects of one request are shown.

    Attributes:
        resource: What they are.
        form: The form that the client wants.
        now: The time of day, for ages.
        include: How much of an object goes with its row in a table.
    """

    resource: ResourceType
    form: Form
    now: datetime
    include: str = "Metadata"

    def one(self, found: Stored, *, names_columns: bool = True) -> bytes:
        """Return one object; a table after the first of a watch need not name its columns."""
        if self.form.kind == _TABLE:
            version = found.object["metadata"].get("resourceVersion", "")
            shown = self._table([found], {"resourceVersion": version})
            return encode(shown if names_columns else shown | {"columnDefinitions": None})
        return self._written(self._object(found))

    def page(self, page: Page) -> bytes:
        """Return a list."""
        metadata: Object = {"resourceVersion": str(page.version)}
        if page.continuation is not None or self.resource.is_custom:
            metadata["continue"] = page.continuation or ""
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        if self.form.kind == _TABLE:
            return encode(self._table(page.items, metadata))
        items = b",".join(map(self._item, page.items))
        written = b'%s,"metadata":%s,"items":[%s]}' % (self._head(), encode(metadata), items)
        return self._written(written)

    def event(self, kind: ChangeType, found: Stored, *, names_columns: bool = True) -> bytes:
        """Return one event of a watch."""
        shown = self.one(found, names_columns=names_columns)
        return b'{"type":"%s","object":%s}\n' % (kind.value.encode(), shown)

    def error(self, failure: ApiFailure) -> bytes:
        """Return the event by which a watch says that it cannot go on."""
        return b'{"type":"ERROR","object":%s}\n' % encode(failure.status)

    def bookmark(self, version: int, *, ends_initial_events: bool = False) -> bytes:
        """Return an event that only tells how far the watch has come."""
        resource = self.resource
        metadata: Object = {"resourceVersion": str(version), "creationTimestamp": None}
        if ends_initial_events:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        found = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        shown = encode(found)
        if self.form.kind == _TABLE:
            shown = encode(self._table([], metadata))
        return b'{"type":"BOOKMARK","object":%s}\n' % shown

    def _head(self) -> bytes:
        if self.form.kind:
            return _PARTIAL_LIST
        head = {"kind": self.resource.list_kind, "apiVersion": self.resource.api_version}
        return encode(head)[:-1]

    def _item(self, found: Stored) -> bytes:
        written = self._object(found)
        if self.form.kind or self.resource.is_custom:
            return written
        head = {"kind": self.resource.kind, "apiVersion": self.resource.api_version}
        return b"{" + written[len(encode(head)) :]  # items of built-in kinds do not name theirs

    def _object(self, found: Stored) -> bytes:
        if self.form.kind:
            return encode(tables.partial(found.object))
        shown = event_forms.shown(self.resource, found.object)
        return found.encoded if shown is found.object else encode(shown)

    def _written(self, written: bytes) -> bytes:
        if not self.form.is_yaml:
            return written
        return yaml.dump(json.loads(written), Dumper=yaml.CSafeDumper).encode()

    def _table(self, found: Iterable[Stored], metadata: Object) -> Object:
        objects = [one.object for one in found]
        return tables.table(self.resource, objects, metadata, now=self.now, include=self.include)
