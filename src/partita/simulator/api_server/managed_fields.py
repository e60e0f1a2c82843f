"""``managedFields``: who owns which field, after an update and after a server-side apply."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from partita.simulator.api_server import field_sets, server_side_apply
from partita.simulator.api_server.failures import ApiFailure, status
from partita.simulator.api_server.field_sets import FieldSet, Path
from partita.simulator.api_server.shapes import Object, Shape

__all__ = ["Manager", "after_apply", "after_update"]

_CONFLICT = 409


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """Whoever changes objects, in the way in which it does so.

    Attributes:
        name: Name of the manager.
        applies: Whether by server-side apply.
        api_version: Version of the objects that it speaks of.
        subresource: Path below the object, or empty.
    """

    name: str
    applies: bool
    api_version: str
    subresource: str = ""

    @property
    def operation(self) -> str:
        """How the API calls it."""
        return "Apply" if self.applies else "Update"

    def describe(self) -> str:
        """Return its name in a conflict."""
        tail = f' with subresource "{self.subresource}"' if self.subresource else ""
        using = "" if self.applies else f" using {self.api_version}"
        return f'"{self.name}"{tail}{using}'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    fields: FieldSet
    time: str


_Shares = Mapping[Manager, _Share]


def _read(found: Object) -> dict[Manager, _Share]:
    shares = {}
    for entry in found["metadata"].get("managedFields", ()):
        manager = Manager(
            name=entry.get("manager", ""),
            applies=entry.get("operation") == "Apply",
            api_version=entry.get("apiVersion", ""),
            subresource=entry.get("subresource", ""),
        )
        fields = field_sets.parse(entry.get("fieldsV1", {}))
        shares[manager] = _Share(fields=fields, time=entry.get("time", ""))
    return shares


def _write(found: Object, shares: _Shares) -> Object:
    entries = [_entry(manager, share) for manager, share in sorted(shares.items(), key=_order)]
    metadata = {key: one for key, one in found["metadata"].items() if key != "managedFields"}
    return found | {"metadata": metadata | ({"managedFields": entries} if entries else {})}


def _order(share: tuple[Manager, _Share]) -> tuple[bool, str, str, str]:
    manager, found = share
    return not manager.applies, found.time, manager.name, manager.subresource


def _entry(manager: Manager, share: _Share) -> Object:
    entry: Object = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": share.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": field_sets.encode(share.fields),
    }
    return entry | ({"subresource": manager.subresource} if manager.subresource else {})


def after_update(
    shape: Shape,
    old: Object | None,
    new: Object,
    manager: Manager,
    *,
    now: str,
    ignored: str = "",
) -> Object:
    """Return the new object with what its manager and all others own now.

    ``old`` is None for a creation; ``ignored`` is the top field that this path cannot change. A
    request that empties ``managedFields`` starts them afresh.
    """
    if old is not None and new["metadata"].get("managedFields") == [{}]:
        return _write(new, {})
    shares = _read(new) or _read(old or new)
    if old is None:
        old = {"metadata": {}}
    found = field_sets.compare(shape, old, new)
    if found.changed or found.removed:
        touched = [path for path in found.changed if path[0] != ignored]
        shares = _taken(shares, manager, touched, now)
        shares = _without(shares, found.removed)
    return _write(new, {one: share for one, share in shares.items() if share.fields})


def _taken(
    shares: _Shares, manager: Manager, changed: Iterable[Path], now: str
) -> dict[Manager, _Share]:
    fields = frozenset(changed)
    left = {one: replace(share, fields=share.fields - fields) for one, share in shares.items()}
    own = shares[manager].fields if manager in shares else frozenset()
    if fields:
        left[manager] = _Share(fields=own | fields, time=now)
    return left


def _without(shares: _Shares, removed: Iterable[Path]) -> dict[Manager, _Share]:
    gone = frozenset(removed)
    if not gone:
        return dict(shares)
    return {
        manager: replace(share, fields=frozenset(_outside(share.fields, gone)))
        for manager, share in shares.items()
    }


def _outside(fields: FieldSet, gone: FieldSet) -> Iterable[Path]:
    for path in fields:
        if not any(path[:length] in gone for length in range(1, len(path) + 1)):
            yield path


def after_apply(  # noqa: PLR0913 - two objects and what the request says
    shape: Shape,
    live: Object,
    applied: Object,
    manager: Manager,
    *,
    force: bool,
    now: str,
    ignored: str = "",
) -> Object:
    """Return the object after a configuration was applied to it.

    ``ignored`` is the top field that this path cannot change.

    Raises:
        ApiFailure: When others own fields that it would change, unless by force.
        TypeMismatchError: When the configuration does not fit its kind.
    """
    server_side_apply.check(shape, applied)
    shares = _read(live)
    before = shares.get(manager, _Share(fields=frozenset(), time=""))
    named = frozenset(one for one in field_sets.fields_of(shape, applied) if one[0] != ignored)
    shares[manager] = _Share(fields=named, time=before.time)
    merged = server_side_apply.merge(shape, live, applied)
    owned = frozenset[Path]().union(*(share.fields for share in shares.values()))
    merged = server_side_apply.remove(shape, merged, before.fields - named, owned)
    found = field_sets.compare(shape, live, merged)
    others = {one: share for one, share in shares.items() if one != manager}
    if not force:
        _refuse_conflicts(others, found.changed)
    shares = _taken(others, manager, (), now) | {manager: shares[manager]}
    for one, share in others.items():
        shares[one] = replace(share, fields=share.fields - found.changed)
    shares = _without(shares, found.removed)
    if found.changed or found.removed or named != before.fields:
        shares[manager] = replace(shares[manager], time=now)
    return _write(merged, {one: share for one, share in shares.items() if share.fields})


def _refuse_conflicts(others: _Shares, changed: set[Path]) -> None:
    conflicts = sorted(
        (manager.describe(), field_sets.write_path(path))
        for manager, share in others.items()
        for path in share.fields & changed
    )
    if not conflicts:
        return
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path}
        for who, path in conflicts
    ]
    plural = "s" if len(conflicts) > 1 else ""
    message = f"Apply failed with {len(conflicts)} conflict{plural}: {_listed(conflicts)}"
    details: dict[str, Any] = {"causes": causes}
    raise ApiFailure(_CONFLICT, status(_CONFLICT, message, "Conflict", details))


def _listed(conflicts: list[tuple[str, str]]) -> str:
    if len(conflicts) == 1:
        who, path = conflicts[0]
        return f"conflict with {who}: {path}"
    lines = []
    for who in Counter(who for who, _ in conflicts):
        lines.append(f"conflicts with {who}:")
        lines.extend(f"- {path}" for name, path in conflicts if name == who)
    return "\n".join(lines)
