"""The agent over HTTP: whether it lives, whether it serves, and what it says of itself."""

import contextlib
import logging
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from partita.errors import UsageError

__all__ = ["Page", "serve"]

_LOG = logging.getLogger(__name__)

Page = Callable[[], tuple[int, str, str]]
"""Returns status code, content type and text."""


@contextlib.contextmanager
def serve(address: tuple[str, int], pages: Mapping[str, Page]) -> Iterator[tuple[str, int]]:
    """Serve pages by their path, in threads of their own, and yield the address they have.

    The host may be an IPv6 address, without brackets; ``::`` takes IPv4 as well.

    Raises:
        UsageError: When the address cannot be had.
    """
    handler = type("Handler", (_Handler,), {"pages": dict(pages)})
    try:
        server = _Server(address, handler)
    except OSError as error:
        raise UsageError(
            message=f"cannot listen at {_text(address)}: {error.strerror}",
            hint="give another --listen, or --listen '' for none",
        ) from error
    thread = threading.Thread(target=server.serve_forever, name="http", daemon=True)
    thread.start()
    try:
        yield server.server_address[0], server.server_address[1]  # type: ignore[misc]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind, and ask no name server for the name of the host, as the base would."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what went wrong with a request: mostly a client that has gone."""
        del request
        _LOG.debug("a request from %s failed", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    pages: Mapping[str, Page]
    protocol_version = "HTTP/1.1"
    server_version = "partita"
    sys_version = ""
    error_message_format = "%(code)d %(message)s\n"
    error_content_type = "text/plain; charset=utf-8"
    timeout = 10

    def do_GET(self) -> None:
        self._answer(with_text=True)

    def do_HEAD(self) -> None:
        self._answer(with_text=False)

    def log_message(self, *_: Any) -> None:
        """Say nothing: probes come every few seconds."""

    def _answer(self, *, with_text: bool) -> None:
        page = self.pages.get(self.path.partition("?")[0])
        known = "".join(f"{path}\n" for path in sorted(self.pages))
        code, kind, text = page() if page is not None else (404, "text/plain", known)
        data = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if with_text:
            self.wfile.write(data)


def _text(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
