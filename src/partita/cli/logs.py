"""Logs of the long-running programs: to stderr, as text for people or as JSON for collectors."""

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from enum import Enum
from types import TracebackType
from typing import TextIO

__all__ = ["LogForm", "configure"]

_LOG = logging.getLogger(__name__)
_FACTS = ("gpu", "instruction", "resource", "phase", "node")  # what log calls give beside the words


class LogForm(Enum):
    """The forms of a log line."""

    TEXT = "text"
    JSON = "json"


def configure(form: LogForm, *, level: str) -> None:
    """Send all logs to stderr in a form: ours from a level such as ``info``, warnings of others.

    Exceptions that nobody catches are logged too, so that every line has the form. Those of asyncio
    come as logs by themselves.
    """
    own = logging.getLevelName(level.upper())
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if isinstance(handler, _Stderr):  # of an earlier call
            root.removeHandler(handler)
    root.addHandler(_Stderr(_Json() if form is LogForm.JSON else _Text()))
    root.setLevel(max(own, logging.WARNING))
    logging.getLogger("partita").setLevel(own)
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_of_thread


def _log_uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):  # somebody ended the program
        sys.__excepthook__(kind, error, traceback)
    else:
        _LOG.critical("a fault ends the program: %r", error, exc_info=(kind, error, traceback))


def _log_uncaught_of_thread(given: threading.ExceptHookArgs) -> None:
    name = given.thread.name if given.thread is not None else "?"
    error = given.exc_value
    if not issubclass(given.exc_type, SystemExit):
        _LOG.critical("a fault ends the thread %s: %r", name, error, exc_info=error)


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to what stderr is when it writes."""

    def __init__(self, formatter: logging.Formatter) -> None:
        logging.Handler.__init__(self)  # that of the base would set the stream
        self.setFormatter(formatter)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        """Return stderr."""
        return sys.stderr


class _Text(logging.Formatter):
    """``2026-12-01T12:00:00Z info done: create 1g.5gb at 0:1 gpu=GPU-…``."""

    def format(self, record: logging.LogRecord) -> str:
        facts = "".join(f" {name}={value}" for name, value in _facts(record).items())
        text = f"{_time(record)} {record.levelname.lower()} {record.getMessage()}{facts}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text


class _Json(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "logger": record.name,
            **_facts(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _facts(record: logging.LogRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in _FACTS if getattr(record, name, "")}
