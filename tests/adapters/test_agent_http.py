"""The agent's pages over HTTP."""

import http.client
import logging
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from partita.adapters import agent_http
from partita.errors import UsageError

_PAGES: dict[str, Any] = {
    "/healthz": lambda: (200, "text/plain", "ok\n"),
    "/readyz": lambda: (503, "text/plain", "OtherOwner: somebody\n"),
    "/fault": lambda: divmod(1, 0),
}


@pytest.fixture
def address() -> Iterator[str]:
    """Serve the pages at a free port."""
    with agent_http.serve(("127.0.0.1", 0), _PAGES) as (host, port):
        yield f"http://{host}:{port}"


def _get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - http, see above
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_page_answers_with_its_code_and_text(address: str) -> None:
    """A probe needs the code, its reader the text."""
    assert _get(f"{address}/healthz") == (200, "ok\n")
    assert _get(f"{address}/readyz?verbose") == (503, "OtherOwner: somebody\n")


def test_another_path_names_the_pages(address: str) -> None:
    """Who asks for something else is told what there is."""
    assert _get(f"{address}/metrics") == (404, "/fault\n/healthz\n/readyz\n")


def test_an_address_in_use_is_an_error_with_a_hint() -> None:
    """The agent does not start without the probes that it was told to answer."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with (
            pytest.raises(UsageError, match=f"cannot listen at 127.0.0.1:{port}"),
            agent_http.serve(("127.0.0.1", port), _PAGES),
        ):
            pass


@pytest.mark.parametrize(
    ("request_line", "answer"),
    [
        (b"POST /healthz HTTP/1.1", (501, "501 Unsupported method ('POST')\n")),
        (b"GET /a b HTTP/1.1", (400, "400 Bad request syntax ('GET /a b HTTP/1.1')\n")),
    ],
)
def test_a_request_that_is_not_understood_is_answered_in_plain_text(
    address: str, request_line: bytes, answer: tuple[int, str]
) -> None:
    """Like everything else here: no page of HTML."""
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as ours:
        ours.sendall(request_line + b"\r\nHost: here\r\n\r\n")
        with http.client.HTTPResponse(ours) as response:
            response.begin()
            assert (response.status, response.read().decode()) == answer
            assert response.headers.get_content_type() == "text/plain"


def test_a_request_that_fails_is_told_to_the_log_alone(
    address: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing is written between the lines of the log, and the next request is answered."""
    caplog.set_level(logging.DEBUG, logger="partita.adapters.agent_http")
    with pytest.raises(http.client.RemoteDisconnected):
        _get(f"{address}/fault")
    assert _get(f"{address}/healthz") == (200, "ok\n")
    (record,) = caplog.records
    assert (record.levelname, record.exc_info is not None) == ("DEBUG", True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("host", "asked"), [("::1", ("[::1]",)), ("::", ("[::1]", "127.0.0.1"))])
def test_ipv6_addresses_are_served(host: str, asked: tuple[str, ...]) -> None:
    """On nodes whose network has nothing else; all addresses are those of IPv4 too."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6")
    with agent_http.serve((host, 0), _PAGES) as (_, port):
        answers = [_get(f"http://{one}:{port}/healthz") for one in asked]
    assert answers == [(200, "ok\n")] * len(asked)


def test_an_ipv6_address_is_told_in_brackets() -> None:
    """As the option is written."""
    with (
        pytest.raises(UsageError, match=r"cannot listen at \[2001:db8::1\]:9: "),
        agent_http.serve(("2001:db8::1", 9), _PAGES),
    ):
        pass


def test_no_name_server_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not answer would hold up the start of the agent."""

    def refuse(*_: object) -> str:
        raise AssertionError

    monkeypatch.setattr(socket, "getfqdn", refuse)
    monkeypatch.setattr(socket, "gethostbyaddr", refuse)
    with agent_http.serve(("127.0.0.1", 0), _PAGES) as (host, port):
        assert _get(f"http://{host}:{port}/healthz") == (200, "ok\n")
