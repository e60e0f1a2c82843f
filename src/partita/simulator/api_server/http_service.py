"""The HTTP side: addresses to requests, answers and failures to responses."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from partita.simulator.api_server import discovery, failures, open_api, requests
from partita.simulator.api_server.core import ApiCore
from partita.simulator.api_server.failures import ApiFailure
from partita.simulator.api_server.faults import Faults
from partita.simulator.api_server.negotiation import negotiate
from partita.simulator.api_server.reading import Page, Watch
from partita.simulator.api_server.rendering import Rendering
from partita.simulator.api_server.requests import Request
from partita.simulator.api_server.store import Stored, encode
from partita.simulator.api_server.watch_stream import WatchOptions, WatchStream
from partita.simulator.api_server.writing import Reply

__all__ = ["HttpService"]

_JSON = "application/json"
_LONGEST_WATCH_SECONDS = 3_600.0
_HEALTH = ("/healthz", "/livez", "/readyz")


class HttpService:
    """Answers HTTP requests to a simulated API server.

    ``bookmark_seconds`` is how often watches that want it are told how far they have come.
    """

    def __init__(self, core: ApiCore, faults: Faults, *, bookmark_seconds: float) -> None:
        self._core = core
        self._faults = faults
        self._bookmark_seconds = bookmark_seconds
        self.watches: set[WatchStream] = set()
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    async def idle(self) -> None:
        """Wait until no watch is served."""
        await self._is_idle.wait()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        try:
            document = self._document(request)
            if document is not None:
                return document
            return await self._resource(request)
        except ApiFailure as failure:
            return _refusal(failure)

    def _document(self, request: web.BaseRequest) -> web.Response | None:
        """Answer what is about the server and not about objects; None for anything else."""
        parts = [part for part in request.path.split("/") if part]
        if request.path.rstrip("/") in _HEALTH:
            return web.Response(text="ok")
        if parts == ["version"]:
            return _json(discovery.VERSION)
        match parts:
            case ["openapi", "v2"]:
                return _response(open_api.empty_v2(), open_api.V2_MEDIA_TYPE)
            case ["openapi", "v3", *rest]:
                return self._open_api(rest)
            case ["api"] | ["apis"] | ["api", "v1"] | ["apis", _] | ["apis", _, _]:
                return self._discovery(request, parts)
            case _:
                return None

    def _open_api(self, parts: list[str]) -> web.Response:
        resources = self._core.state.resources
        if not parts:
            return _json(open_api.index(resources))
        *_, group, version = ("", "", *parts)
        found = open_api.document(resources, "" if group == "api" else group, version)
        if found is None:
            raise failures.no_such_path()
        return _json(found)

    def _discovery(self, request: web.BaseRequest, parts: list[str]) -> web.Response:
        resources = self._core.state.resources
        accept = request.headers.get("Accept", "")
        if len(parts) == 1 and discovery.AGGREGATED in accept.replace(" ", ""):
            found = discovery.aggregated(resources, core=parts == ["api"])
            return _json(found, content_type=discovery.AGGREGATED)
        if parts == ["api"]:
            return _json(discovery.versions(request.host))
        groups = {one["name"]: one for one in discovery.groups(resources)}
        if parts == ["apis"]:
            head = {"kind": "APIGroupList", "apiVersion": "v1"}
            return _json(head | {"groups": list(groups.values())})
        if len(parts) == len(["apis", "group"]) and parts[0] == "apis":
            if parts[1] not in groups:
                raise failures.no_such_path()
            return _json({"kind": "APIGroup", "apiVersion": "v1"} | groups[parts[1]])
        group, version = ("", "v1") if parts[0] == "api" else (parts[1], parts[2])
        listed = discovery.resource_list(resources, group, version)
        if listed is None:
            raise failures.no_such_path()
        return _json(listed)

    async def _resource(self, http: web.BaseRequest) -> web.StreamResponse:
        request = await self._read(http)
        fault = self._faults.take(request)
        if fault is not None:
            await asyncio.sleep(fault.delay_seconds)
            if failure := fault.failure():
                raise failure
        rendering = self._rendering(http, request)
        answer = self._core.answer(request)
        if isinstance(answer, Watch):
            return await self._watch(http, request, answer, rendering)
        media_type = rendering.form.media_type
        if isinstance(answer, Page):
            return _response(rendering.page(answer), media_type)
        if isinstance(answer, Stored):
            return _response(rendering.one(answer), media_type)
        return _changed(answer, rendering)

    async def _read(self, http: web.BaseRequest) -> Request:
        path = "/".join(unquote(part) for part in http.path.split("/"))
        resource, namespace, name, subresource = requests.find(path, self._core.state.resources)
        return Request(
            method=http.method,
            resource=resource,
            namespace=namespace,
            name=name,
            subresource=subresource,
            query=dict(reversed(list(http.query.items()))),
            content_type=http.content_type if "Content-Type" in http.headers else _JSON,
            body=await http.read(),
            agent=http.headers.get("User-Agent", ""),
        )

    def _rendering(self, http: web.BaseRequest, request: Request) -> Rendering:
        return Rendering(
            resource=request.resource,
            form=negotiate(http.headers.get("Accept", "")),
            now=self._core.state.clock.now(),
            include=request.query.get("includeObject") or "Metadata",
        )

    async def _watch(
        self, http: web.BaseRequest, request: Request, watch: Watch, rendering: Rendering
    ) -> web.StreamResponse:
        wants_bookmarks = request.flag("allowWatchBookmarks")
        options = WatchOptions(
            seconds=request.number("timeoutSeconds") or _LONGEST_WATCH_SECONDS,
            bookmark_seconds=self._bookmark_seconds if wants_bookmarks else None,
            marks_initial_events=wants_bookmarks and request.flag("sendInitialEvents"),
        )
        response = web.StreamResponse(headers={"Content-Type": _JSON})
        await response.prepare(http)
        stream = WatchStream(watch, rendering, options)
        self.watches.add(stream)
        self._is_idle.clear()
        try:
            with contextlib.suppress(ConnectionResetError):  # the client has gone
                await stream.run(_sender(response))
        finally:
            self.watches.discard(stream)
            if not self.watches:
                self._is_idle.set()
        return response


def _sender(response: web.StreamResponse) -> Callable[[bytes], Any]:
    async def send(told: bytes) -> None:
        if told:
            await response.write(told)

    return send


def _changed(reply: Reply, rendering: Rendering) -> web.Response:
    is_object = reply.body["kind"] != "Status"
    shown = rendering.one(Stored(reply.body)) if is_object else encode(reply.body)
    response = _response(shown, rendering.form.media_type if is_object else _JSON, reply.code)
    for warning in reply.warnings:
        escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{escaped}"')
    return response


def _response(body: bytes, media_type: str, code: int = 200) -> web.Response:
    return web.Response(body=body, status=int(code), headers={"Content-Type": media_type})


def _json(found: Mapping[str, Any], *, content_type: str = _JSON) -> web.Response:
    return _response(encode(found), content_type)


def _refusal(failure: ApiFailure) -> web.Response:
    if isinstance(failure.status, str):
        return web.Response(text=failure.status, status=int(failure.code))
    response = _response(encode(failure.status), _JSON, failure.code)
    if failure.retry_seconds is not None:
        response.headers["Retry-After"] = str(failure.retry_seconds)
    return response
