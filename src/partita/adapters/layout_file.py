"""The wanted layouts of a node from a file that is followed while it is edited.

The file is looked at, not watched: a ConfigMap that is mounted changes by a link that is exchanged,
an editor writes a new file in place of the old one, and a look finds both.
"""

import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from partita.config import agent_document
from partita.config.agent_document import AgentDocument
from partita.errors import InputError

__all__ = ["LayoutFile"]

_LOG = logging.getLogger(__name__)
_MOST_BYTES = 1 << 20  # what a ConfigMap can hold
_Look = tuple[int, ...] | None  # None where there is no file
_NO_LOOK: _Look = ()  # differs from every look


class LayoutFile:
    """A ``ports.layout_source.LayoutSource``."""

    def __init__(
        self,
        path: Path,
        *,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        allow_reset: bool = False,
    ) -> None:
        """Read the file for the first time.

        Args:
            path: The file.
            name: Which of several configurations in it.
            labels: Labels of this node, None when unknown.
            allow_reset: Whether a GPU may be reset for a mig-parted config.

        Raises:
            InputError: When it cannot be followed as it stands now.
        """
        self._path = path
        self._name = name
        self._labels = labels
        self._allow_reset = allow_reset
        self._problem: str | None = None
        self._look = self._see()
        self._document = self._read()

    def current(self) -> AgentDocument:
        """Return what is wanted; after an edit that cannot be followed, what was before it."""
        look = self._see()
        if look != self._look:
            self._look = look
            self._follow()
        return self._document

    def problem(self) -> str | None:
        """Return why the newest edit cannot be followed, None when it is followed."""
        return self._problem

    def _follow(self) -> None:
        try:
            document = self._read()
        except InputError as error:
            self._complain(error)
            return
        was_followed, self._problem = self._problem is None, None
        if document == self._document and not was_followed:
            _LOG.info("back to the layouts in force: %s", self._path)
        if document != self._document:
            _LOG.info("layouts wanted were edited: %s", self._path)
            self._document = document

    def _complain(self, error: InputError) -> None:
        """Note the problem; when the file could not be read, it is tried again at the next look."""
        if isinstance(error.__cause__, OSError):
            self._look = _NO_LOOK
        before, self._problem = self._problem, str(error).partition("\n")[0]
        if self._problem != before:
            _LOG.warning("edit not followed: %s (%s)", self._problem, error.hint)

    def _read(self) -> AgentDocument:
        try:
            text = self._text()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                message=f"cannot be read: {error}",
                hint="give a readable file in UTF-8",
                path=str(self._path),
            ) from error
        if len(text) > _MOST_BYTES:
            raise InputError(
                message=f"the file is larger than bytes: {_MOST_BYTES}",
                hint="give the agent a configuration, not a dump of a cluster",
                path=str(self._path),
            )
        return agent_document.read(
            text,
            str(self._path),
            name=self._name,
            labels=self._labels,
            allow_reset=self._allow_reset,
        )

    def _text(self) -> str:
        """Return the text; whatever is in the place of the file, this does not wait."""
        if not stat.S_ISREG(self._path.stat().st_mode):
            raise InputError(
                message="not a regular file",
                hint="give a file, or a link to one; a pipe or a device cannot be followed",
                path=str(self._path),
            )
        with open(self._path, encoding="utf-8", opener=_at_once) as file:
            return file.read(_MOST_BYTES + 1)

    def _see(self) -> _Look:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # if it has just become a pipe
