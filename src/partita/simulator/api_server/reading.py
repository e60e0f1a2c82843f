"""Lists and watches: what there is, page by page, and what happens from then on."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from partita.simulator.api_server import failures, selectors
from partita.simulator.api_server.cluster_state import ClusterState
from partita.simulator.api_server.failures import ApiFailure, Cause
from partita.simulator.api_server.requests import Request
from partita.simulator.api_server.selectors import Selector
from partita.simulator.api_server.store import Change, ChangeType, Collection, Key, Stored

__all__ = ["Page", "Reader", "Watch"]

_PAGING_VERSION = "meta.k8s.io/v1"
_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A list or a part of it.

    Attributes:
        items: The objects.
        version: When it was so.
        continuation: Token for the rest, None when there is none.
        remaining: How many more there are, None when nobody counted.
    """

    items: tuple[Stored, ...]
    version: int
    continuation: str | None = None
    remaining: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A watch that was asked for.

    Attributes:
        failure: Why it cannot begin; that is told in the watch, not instead of it.
        initial: What there was when it began, if that was asked for.
        version: From when on it tells what happens.
        missed: What happened between that version and now.
        collection: Where things happen.
        seen: What of a change its selector lets see, if anything.
    """

    initial: tuple[Stored, ...]
    version: int
    missed: tuple[tuple[ChangeType, Stored], ...]
    collection: Collection
    seen: Callable[[Change], tuple[ChangeType, Stored] | None]
    failure: ApiFailure | None = None


class Reader:
    """Answers requests that only read."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def list(self, request: Request) -> Page:
        """Return what a request asks to be listed."""
        selector = selectors.parse(request.resource, request.query)
        limit = request.number("limit") or 0
        collection = self._state.store.collection(request.resource.collection)
        token = request.query.get("continue", "")
        if token:
            version, start = self._continued(request, token)
        else:
            version, start = self._version(request), ("", "")
        objects = self._at(collection, version, start)
        reached = self._state.store.version if version is None else version
        keys = [
            key
            for key in objects
            if key > start and (not request.namespace or key[0] == request.namespace)
        ]
        return _page(request, objects, keys, selector, (limit, reached))

    def _at(self, collection: Collection, version: int | None, start: Key) -> Mapping[Key, Stored]:
        if version is None:
            return dict(collection.now())
        try:
            return collection.at(version)
        except ApiFailure as error:
            if start == ("", ""):
                message = "The resourceVersion for the provided list is too old."
                raise failures.expired(message) from error
            failure = failures.expired(_EXPIRED)
            status = dict(failure.status) if isinstance(failure.status, Mapping) else {}
            status["metadata"] = {"continue": _token(-1, start)}
            raise ApiFailure(failure.code, status) from error

    def _version(self, request: Request) -> int | None:
        """Return the version that a list must show, None for the present."""
        text = request.query.get("resourceVersion", "")
        match = request.query.get("resourceVersionMatch", "")
        if match and not text and not request.flag("watch"):
            detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            raise failures.unprocessable(
                "ListOptions", [Cause.forbidden("resourceVersionMatch", detail)]
            )
        if not text:
            return None
        version, current = _number(text, "invalid resource version: "), self._state.store.version
        if version > current:
            raise failures.too_large_version(version, current)
        return version if match == "Exact" else None

    def _continued(self, request: Request, token: str) -> tuple[int | None, Key]:
        if request.query.get("resourceVersion"):
            message = "specifying resource version is not allowed when using continue"
            raise failures.bad_request(message)
        try:
            read = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
            version, start = int(read["rv"]), str(read["start"]).rstrip("\0")
        except (ValueError, KeyError, TypeError) as error:
            detail = "invalid character 'i' looking for beginning of value"
            message = f"invalid continue token: continue key is not valid: {detail}"
            raise failures.bad_request(message) from error
        namespace, _, name = start.removeprefix("/").rpartition("/")
        return None if version < 0 else version, (request.namespace or namespace, name)

    def watch(self, request: Request) -> Watch:
        """Return the watch that a request asks for."""
        selector = selectors.parse(request.resource, request.query)
        collection = self._state.store.collection(request.resource.collection)
        wants_initial = _wants_initial(request)
        text = request.query.get("resourceVersion", "")
        since = _number(text, "") if text else 0
        meant = _Meant(request.namespace, selector)
        if since == 0 or wants_initial:
            standing = (found for key, found in collection.now() if meant.has(key, found))
            initial = tuple(standing) if wants_initial is not False else ()
            return self._watch(collection, meant, initial, ())
        try:
            changes = collection.since(since)
        except ApiFailure as failure:
            return replace(self._watch(collection, meant, (), ()), failure=failure)
        missed = tuple(filter(None, map(meant.seen, changes)))
        return self._watch(collection, meant, (), missed, since=since)

    def _watch(
        self,
        collection: Collection,
        meant: "_Meant",
        initial: tuple[Stored, ...],
        missed: tuple[tuple[ChangeType, Stored], ...],
        *,
        since: int = 0,
    ) -> Watch:
        version = max(since, self._state.store.version)
        return Watch(
            initial=initial,
            version=version,
            missed=missed,
            collection=collection,
            seen=lambda change: meant.seen(change) if change.version > version else None,
        )


@dataclass(frozen=True, slots=True)
class _Meant:
    namespace: str
    selector: Selector

    def has(self, key: Key, found: Stored) -> bool:
        """Tell whether an object is meant."""
        is_here = not self.namespace or key[0] == self.namespace
        return is_here and self.selector.matches(found.object)

    def seen(self, change: Change) -> tuple[ChangeType, Stored] | None:
        """Return how a change looks to somebody who sees only what is meant."""
        is_deletion = change.type is ChangeType.DELETED
        now = not is_deletion and self.has(change.key, change.now)
        before = change.before is not None and self.has(change.key, change.before)
        if now:
            return (ChangeType.MODIFIED if before else ChangeType.ADDED), change.now
        if not before:
            return None
        assert change.before is not None
        return ChangeType.DELETED, change.now if is_deletion else _in_version(change)


def _in_version(change: Change) -> Stored:
    """Return the object that is no longer meant, as it was, in the version of the change."""
    assert change.before is not None
    last = change.before.object
    metadata = last["metadata"] | {"resourceVersion": str(change.version)}
    return Stored(last | {"metadata": metadata})


def _wants_initial(request: Request) -> bool | None:
    if "sendInitialEvents" not in request.query:
        return None
    if request.query.get("resourceVersionMatch") != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise failures.unprocessable(
            "ListOptions", [Cause.forbidden("resourceVersionMatch", detail)]
        )
    return request.flag("sendInitialEvents")


def _number(text: str, prefix: str) -> int:
    if text.isdecimal():
        return int(text)
    why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
    message = f'{prefix}resourceVersion: Invalid value: "{text}": {why}'
    if prefix:
        raise failures.bad_request(message)
    raise ApiFailure(500, failures.status(500, message))


def _page(
    request: Request,
    objects: Mapping[Key, Stored],
    keys: list[Key],
    selector: Selector,
    bounds: tuple[int, int],
) -> Page:
    limit, version = bounds
    items: list[Stored] = []
    for index, key in enumerate(keys):
        if selector.matches(objects[key].object):
            items.append(objects[key])
        if limit and len(items) == limit and index + 1 < len(keys):
            shown = ("", key[1]) if request.namespace else key
            remaining = len(keys) - index - 1 if selector.is_empty else None
            token = _token(version, shown)
            return Page(
                items=tuple(items), version=version, continuation=token, remaining=remaining
            )
    return Page(items=tuple(items), version=version)


def _token(version: int, key: Key) -> str:
    start = "/".join(part for part in ("", *key) if part or key[0])
    start = start if start.startswith("/") else f"/{start}"
    content = {"v": _PAGING_VERSION, "rv": version, "start": f"{start}\0"}
    text = json.dumps(content, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
