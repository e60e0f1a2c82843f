"""What the API server remembers: objects, their versions, and what happened lately.

There is one count of versions for everything, as in etcd, and a history of bounded length for each
collection: whoever asks for what is older is told that it has expired. Nothing here waits or knows
kinds; objects that are in here are never changed in place.
"""

import json
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from partita.simulator.api_server.failures import expired
from partita.simulator.api_server.shapes import Object

__all__ = ["Change", "ChangeType", "Collection", "Key", "Store", "Stored", "encode"]

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""

_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def encode(value: object) -> bytes:
    """Return JSON as the server sends it."""
    return _ENCODER.encode(value).encode()


class Stored:
    """One object in one version, and its JSON once somebody asked for it."""

    __slots__ = ("_encoded", "object")

    def __init__(self, found: Object) -> None:
        self.object = found
        self._encoded: bytes | None = None

    @property
    def encoded(self) -> bytes:
        """Its JSON; made once, however many ask."""
        if self._encoded is None:
            self._encoded = encode(self.object)
        return self._encoded


class ChangeType(Enum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that happened.

    Attributes:
        type: What it was.
        version: When, in the count of versions.
        key: Whose.
        now: The object after it; what was deleted, in the version of its deletion.
        before: The object before it, None when there was none.
    """

    type: ChangeType
    version: int
    key: Key
    now: Stored
    before: Stored | None


Listener = Callable[[Change], None]


@dataclass(slots=True)
class Collection:
    """All objects of one resource.

    Attributes:
        objects: The objects.
        keys: Their keys, sorted.
        history: What happened, oldest first.
        oldest: Version after which everything is still in the history.
        listeners: Who is told at once of what happens.
    """

    objects: dict[Key, Stored] = field(default_factory=dict)
    keys: list[Key] = field(default_factory=list)
    history: deque[Change] = field(default_factory=deque)
    oldest: int = 0
    listeners: list[Listener] = field(default_factory=list)

    def now(self) -> Iterator[tuple[Key, Stored]]:
        """Yield what there is, in order."""
        return ((key, self.objects[key]) for key in self.keys)

    def since(self, version: int) -> list[Change]:
        """Return what happened after a version.

        Raises:
            ApiFailure: When that is no longer known.
        """
        if version < self.oldest:
            raise expired(f"too old resource version: {version} ({self.oldest})")
        found = []
        for change in reversed(self.history):
            if change.version <= version:
                break
            found.append(change)
        return found[::-1]

    def at(self, version: int) -> Mapping[Key, Stored]:
        """Return what there was at a version, in order.

        Raises:
            ApiFailure: When that is no longer known.
        """
        changes = self.since(version)
        if not changes:
            return dict(self.now())
        objects = dict(self.objects)
        for change in reversed(changes):
            if change.before is None:
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.before
        return {key: objects[key] for key in sorted(objects)}


class Store:
    """The store; ``history_length`` is how many changes it remembers of each collection."""

    def __init__(self, *, history_length: int = 10_000) -> None:
        self.version = 1
        self._history_length = history_length
        self._collections: dict[str, Collection] = {}

    def collection(self, name: str) -> Collection:
        """Return a collection; an unknown one is empty."""
        found = self._collections.get(name)
        if found is None:
            found = self._collections[name] = Collection()
        return found

    def put(self, name: str, key: Key, found: Object) -> Stored:
        """Keep an object in a new version, and return it as it is kept."""
        collection = self.collection(name)
        before = collection.objects.get(key)
        if before is None:
            insort(collection.keys, key)
        kind = ChangeType.ADDED if before is None else ChangeType.MODIFIED
        stored = self._next(found)
        collection.objects[key] = stored
        self._remember(collection, kind, key, (stored, before))
        return stored

    def remove(self, name: str, key: Key, last: Object) -> Stored:
        """Forget an object; ``last`` is how it is told to have been."""
        collection = self.collection(name)
        before = collection.objects.pop(key)
        del collection.keys[bisect_left(collection.keys, key)]
        stored = self._next(last)
        self._remember(collection, ChangeType.DELETED, key, (stored, before))
        return stored

    def compact(self) -> None:
        """Forget everything that happened."""
        for collection in self._collections.values():
            collection.history.clear()
            collection.oldest = self.version

    def _next(self, found: Object) -> Stored:
        self.version += 1
        metadata = found["metadata"] | {"resourceVersion": str(self.version)}
        return Stored(found | {"metadata": metadata})

    def _remember(
        self, collection: Collection, kind: ChangeType, key: Key, pair: tuple[Stored, Stored | None]
    ) -> None:
        now, before = pair
        change = Change(type=kind, version=self.version, key=key, now=now, before=before)
        collection.history.append(change)
        if len(collection.history) > self._history_length:
            collection.oldest = collection.history.popleft().version
        for listener in tuple(collection.listeners):
            listener(change)
