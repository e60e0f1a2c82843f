"""A small client of the API server: plain objects, and waiting by watching.

It is the tests' own, so that what they see does not depend on the client that partita uses.
"""

import contextlib
import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from testbed.errors import ApiError, WaitError

type_of_patch = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
Object = dict[str, Any]
"""A Kubernetes object, or any other JSON object of the API."""


class Api:
    """The API server as one user sees it. Paths begin with ``/api`` or ``/apis``."""

    def __init__(self, *, address: str, token: str, authority: Path) -> None:
        self.address = address
        self.token = token
        self.authority = authority

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content: str = "application/json",
        seconds: float = 30,
    ) -> Any:
        """Send a request and return the decoded answer; text that is not JSON as it is."""
        with self._answer(method, path, body, content, seconds) as response:
            data = response.read()
            is_json = response.headers.get_content_type() == "application/json"
            return json.loads(data) if is_json else data.decode(errors="replace")

    def get(self, path: str) -> Any:
        """Return what is at the path."""
        return self.request("GET", path)

    def find(self, path: str) -> Object | None:
        """Return the object at the path, or None when there is none."""
        try:
            return dict(self.get(path))
        except ApiError as error:
            if error.status == http.HTTPStatus.NOT_FOUND:
                return None
            raise

    def create(self, collection: str, body: Object) -> Object:
        """Create an object in a collection such as ``/api/v1/namespaces/default/pods``."""
        return dict(self.request("POST", collection, body))

    def patch(self, path: str, body: object, *, kind: str = "merge") -> Object:
        """Change an object, by a patch of kind ``merge``, ``strategic`` or ``json``."""
        return dict(self.request("PATCH", path, body, content=type_of_patch[kind]))

    def delete(self, path: str, *, grace_seconds: int = 0) -> None:
        """Ask for the deletion of an object or collection; what is gone already is no error."""
        with contextlib.suppress(ApiError):
            self.request("DELETE", path, {"gracePeriodSeconds": grace_seconds})

    def first_lines(self, path: str, *, until: Callable[[str], bool], seconds: float = 30) -> str:
        """Read an endless text, such as a log that is followed, until the condition holds of it."""
        text = ""
        with self._answer("GET", path, None, "", seconds) as response:
            while not until(text):
                line = response.readline()
                if not line:
                    raise WaitError(f"{path} ended too early: {text}")
                text += line.decode(errors="replace")
        return text

    def wait(
        self,
        path: str,
        condition: Callable[[Object | None], bool],
        *,
        seconds: float = 30,
    ) -> Object | None:
        """Watch one object until the condition holds of it (or of None, when there is none)."""
        collection, name = path.rsplit("/", 1)
        fields = {"metadata.name": name}
        if self.find(path) is None and condition(None):
            return None
        return self._first(
            collection,
            fields,
            lambda there, found: condition(found if there else None),
            seconds=seconds,
        )

    def wait_any(
        self, collection: str, condition: Callable[[Object], bool], *, seconds: float = 30
    ) -> Object:
        """Watch a collection until the condition holds of any of its objects; return that one."""
        found = self._first(
            collection, {}, lambda there, found: there and condition(found), seconds=seconds
        )
        assert found is not None
        return found

    def watch(
        self, collection: str, fields: Mapping[str, str], *, seconds: float
    ) -> Iterator[tuple[bool, Object]]:
        """Yield every object that has these fields, now and after each change; False for gone.

        Ends when the server ends the watch.

        Raises:
            TimeoutError: after the given time.
        """
        end = time.monotonic() + seconds
        selector = {"fieldSelector": ",".join(f"{key}={fields[key]}" for key in fields)}
        now = self.get(f"{collection}?{urlencode(selector)}")
        for found in now["items"]:
            yield True, found
        since = {"watch": 1, "resourceVersion": now["metadata"]["resourceVersion"]}
        query = urlencode({**selector, **since})
        with self._answer("GET", f"{collection}?{query}", None, "", seconds) as response:
            while line := response.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                yield event["type"] != "DELETED", event["object"]
                if time.monotonic() > end:
                    raise TimeoutError

    def _first(
        self,
        collection: str,
        fields: Mapping[str, str],
        condition: Callable[[bool, Object], bool],
        *,
        seconds: float,
    ) -> Object | None:
        """Return the first object of which the condition holds; None when that is its absence."""
        end = time.monotonic() + seconds
        last: Object | None = None
        with contextlib.suppress(TimeoutError):
            while (remaining := end - time.monotonic()) > 0:
                for there, last in self.watch(collection, fields, seconds=remaining):
                    if condition(there, last):
                        return last if there else None
        what = ",".join(fields.values())
        raise WaitError(
            f"{collection}/{what}: not within {seconds:g} s what was awaited; last seen: {last}"
        )

    @contextlib.contextmanager
    def _answer(
        self, method: str, path: str, body: object, content: str, seconds: float
    ) -> Iterator[http.client.HTTPResponse]:
        context = ssl.create_default_context(cafile=str(self.authority))
        connection = http.client.HTTPSConnection(self.address, timeout=seconds, context=context)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content}
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            if response.status >= http.HTTPStatus.BAD_REQUEST:
                raise _refused(response)
            yield response
        finally:
            connection.close()


def _refused(response: http.client.HTTPResponse) -> ApiError:
    data = response.read().decode(errors="replace")
    try:
        status = json.loads(data)
        message, reason = str(status["message"]), str(status.get("reason", ""))
    except (ValueError, KeyError):
        message, reason = data, ""
    return ApiError(message, status=response.status, reason=reason)
