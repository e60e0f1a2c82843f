"""An API server as the facts of this folder need it: the real one, and the simulated one.

Spoken to in plain HTTP, so that no client library stands between a fact and its test.
"""

import http.client
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_SECONDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an API server answered."""

    code: int
    body: Any
    warnings: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """What a refusal says."""
        return str(self.body["message"])

    @property
    def reason(self) -> str:
        """Why, in one word."""
        return str(self.body.get("reason", ""))


Connect = Callable[[], http.client.HTTPConnection]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiUnderTest:
    """An API server, as a user with all rights sees it."""

    connect: Connect
    headers: Mapping[str, str]

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content: str = "application/json",
        agent: str = "facts/1.0",
        accept: str = "application/json",
        **query: object,
    ) -> Answer:
        """Send a request and return the answer."""
        headers = {"Content-Type": content, "User-Agent": agent, "Accept": accept}
        with self._answer(method, _with(path, query), body, headers) as response:
            data = response.read().decode()
            is_json = response.headers.get_content_type() == "application/json"
            warnings = response.headers.get_all("Warning") or []
            return Answer(
                code=response.status,
                body=json.loads(data) if is_json else data,
                warnings=tuple(warnings),
            )

    def get(self, path: str, **query: object) -> Answer:
        """Read."""
        return self.ask("GET", path, **query)

    def create(self, path: str, body: object, **query: object) -> Answer:
        """Create."""
        return self.ask("POST", path, body, **query)

    def patch(self, path: str, body: object, *, content: str = MERGE, **query: object) -> Answer:
        """Patch."""
        return self.ask("PATCH", path, body, content=content, **query)

    def apply(self, path: str, body: object, *, manager: str, **query: object) -> Answer:
        """Apply a configuration."""
        return self.ask("PATCH", path, body, content=APPLY, fieldManager=manager, **query)

    def delete(self, path: str, body: object = None, **query: object) -> Answer:
        """Delete."""
        return self.ask("DELETE", path, body, **query)

    @contextmanager
    def watch(self, path: str, *, as_table: bool = False, **query: object) -> Iterator["Events"]:
        """Open a watch, and close it at the end of the block."""
        headers = {"Accept": TABLE if as_table else "application/json"}
        asked = _with(path, {"watch": 1, "timeoutSeconds": _SECONDS, **query})
        with self._answer("GET", asked, None, headers) as response:
            yield Events(response)

    @contextmanager
    def _answer(
        self, method: str, path: str, body: object, headers: Mapping[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        connection = self.connect()
        data = body if isinstance(body, str) or body is None else json.dumps(body)
        connection.request(method, path, data, {**headers, **self.headers})
        response = connection.getresponse()
        try:
            yield response
        finally:
            response.close()
            connection.close()


class Events:
    """The events of a watch, as they come."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.code = response.status

    def next(self) -> tuple[str, Object]:
        """Wait for an event; return its type and its object, an empty type for the end."""
        line = self._response.readline()
        if not line:
            return "", {}
        event = json.loads(line)
        return event["type"], event["object"]

    def types(self, count: int) -> list[str]:
        """Wait for events; return their types."""
        return [self.next()[0] for _ in range(count)]


def _with(path: str, query: Mapping[str, object]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def over_http(address: str) -> ApiUnderTest:
    """Return the API at an address such as ``127.0.0.1:8001``."""
    return ApiUnderTest(
        connect=lambda: http.client.HTTPConnection(address, timeout=_SECONDS), headers={}
    )


def over_https(address: str, token: str, authority: str) -> ApiUnderTest:
    """Return the API at an address, for the bearer of a token."""
    context = ssl.create_default_context(cafile=authority)
    return ApiUnderTest(
        connect=lambda: http.client.HTTPSConnection(address, timeout=_SECONDS, context=context),
        headers={"Authorization": f"Bearer {token}"},
    )


def config_map(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> Object:
    """Return a ConfigMap."""
    head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return head | {"data": {"a": "1"} if data is None else data}


def pod(name: str, *, limits: Object | None = None, **spec: Any) -> Object:
    """Return a pod that no scheduler binds."""
    container: Object = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    if limits is not None:
        container["resources"] = {"limits": limits}
    spec = {"schedulerName": "nobody", "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def names_of(answer: Answer) -> list[str]:
    """Return the names of a list's items."""
    return [one["metadata"]["name"] for one in answer.body["items"]]
