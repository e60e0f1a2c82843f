"""What a request asks for: which resource, which object, with which verb and options."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from partita.simulator.api_server import failures
from partita.simulator.api_server.failures import Cause
from partita.simulator.api_server.resource_types import Resources, ResourceType

__all__ = ["JSON", "Request", "find"]

JSON = "application/json"
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_CORE_PARTS = ["api"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for a resource.

    Attributes:
        method: HTTP method.
        resource: What it is about.
        namespace: Where; empty for cluster-scoped objects and for all namespaces.
        name: Which object; empty for a collection.
        subresource: Path below the object, or empty.
        query: Parameters; of one that stands there twice the first.
        content_type: What the body is, without parameters.
        body: The body.
        agent: Who asks, by ``User-Agent``.
    """

    method: str
    resource: ResourceType
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    content_type: str = JSON
    body: bytes = b""
    agent: str = ""

    @property
    def verb(self) -> str:
        """What is to be done, in the words of Kubernetes."""
        if self.method == "GET":
            if self.name:
                return "get"
            return "watch" if self.flag("watch") else "list"
        if self.method == "DELETE":
            return "delete" if self.name else "deletecollection"
        return _VERBS.get(self.method, self.method.lower())

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is to be kept."""
        return bool(self.query.get("dryRun"))

    @property
    def manager(self) -> str:
        """Name of the field manager."""
        return self.query.get("fieldManager") or self.agent.partition("/")[0][:128] or "unknown"

    def flag(self, name: str) -> bool:
        """Tell whether a parameter is set."""
        return name in self.query and self.query[name] not in {"false", "0"}

    def number(self, name: str) -> int | None:
        """Return a whole number, None when the parameter is absent.

        Raises:
            ApiFailure: When it is no number.
        """
        text = self.query.get(name, "")
        try:
            return int(text) if text else None
        except ValueError:
            message = f'strconv.ParseInt: parsing "{text}": invalid syntax'
            raise failures.bad_request(message) from None

    def check(self) -> None:
        """Refuse what the resource does not know, and options that make no sense.

        Raises:
            ApiFailure: When there is such a thing.
        """
        known = {"GET", "PUT", "PATCH", "DELETE"} if self.name else {"GET", "POST", "DELETE"}
        if self.subresource:
            known = {"POST"} if self.subresource == "binding" else {"GET", "PUT", "PATCH"}
        if self.method not in known:
            raise failures.method_not_allowed()
        if self.verb == "deletecollection" and self.verb not in self.resource.verbs:
            raise failures.method_not_allowed()
        if self.method != "GET" and self.query.get("dryRun", "All") not in {"", "All"}:
            options = {"POST": "Create", "PUT": "Update", "PATCH": "Patch", "DELETE": "Delete"}
            shown = [self.query["dryRun"]]
            cause = Cause.unsupported("dryRun", shown, ["All"])
            raise failures.unprocessable(f"{options[self.method]}Options", [cause])


def find(path: str, resources: Resources) -> tuple[ResourceType, str, str, str]:
    """Return resource, namespace, name and subresource of a path.

    Raises:
        ApiFailure: When nobody serves it.
    """
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and parts[1:2] == ["v1"]:
        return _find(resources, ("", "v1"), parts[2:])
    if parts[:1] == ["apis"] and len(parts) > len(["apis", "group", "version"]):
        return _find(resources, (parts[1], parts[2]), parts[3:])
    raise failures.no_such_path()


def _find(
    resources: Resources, version: tuple[str, str], parts: list[str]
) -> tuple[ResourceType, str, str, str]:
    namespace, rest = "", parts
    is_inside = parts[:1] == ["namespaces"] and len(parts) > len(["namespaces", "name"])
    if is_inside and parts[2] not in _NAMESPACE_PATHS:
        namespace, rest = parts[1], parts[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    found = resources.find(*version, plural)
    if found is None or (namespace and not found.is_namespaced):
        is_known = any(
            (one.group, one.version) == version and not one.is_custom for one in resources.served
        )
        raise failures.no_such_path(resource_unknown=is_known)
    if subresource and subresource not in found.subresources:
        raise failures.no_such_path(resource_unknown=not found.is_custom)
    if found.is_namespaced and name and not namespace:
        raise failures.no_such_path(resource_unknown=True)
    return found, namespace, name, subresource


_NAMESPACE_PATHS = ("status", "finalize")
