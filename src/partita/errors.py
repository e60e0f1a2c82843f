"""Everything partita raises on purpose, in one tree.

::

    PartitaError                 base; the command line prints it and its hint, never a traceback
    ├── InputError               a file that was given cannot be used (missing, truncated …)
    ├── UsageError               the command line asks for something that makes no sense
    ├── DriverError              the GPU driver refused
    ├── KubeletError             the kubelet of the node gives no answer
    ├── ImpossibleWorldError     the simulator is told to become what no hardware can be
    ├── UnknownModelError        no GPU of that name is in the catalogue
    ├── UnknownProfileError      the GPU model has no MIG profile of that name
    └── IllegalLayoutError       instances that cannot stand together on one GPU

A foreign error (YAML, XML, the file system) is translated once, in the adapter that met it, with
``from``. Programming mistakes stay what Python makes of them.
"""

from dataclasses import dataclass

__all__ = [
    "DriverError",
    "IllegalLayoutError",
    "ImpossibleWorldError",
    "InputError",
    "KubeletError",
    "PartitaError",
    "UnknownModelError",
    "UnknownProfileError",
    "UsageError",
]


@dataclass(kw_only=True)
class PartitaError(Exception):
    """The base: what went wrong in one line, and what to do about it in another.

    Attributes:
        message: One line, no full stop; the one relevant value last, after a colon.
        hint: What the reader can do now.
    """

    message: str
    hint: str

    def __str__(self) -> str:
        """Return the message followed by the hint."""
        return f"{self.message}\nhint: {self.hint}"


@dataclass(kw_only=True)
class InputError(PartitaError):
    """When a given file cannot be used at all.

    Attributes:
        path: The file as the user named it.
        line: 1-based line of the trouble, where known.
        column: 1-based column of the trouble, where known.
    """

    path: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """Return ``path:line:column: message`` and the hint."""
        place = ":".join(
            str(part) for part in (self.path, self.line, self.column) if part is not None
        )
        return f"{place}: {self.message}\nhint: {self.hint}"


@dataclass(kw_only=True)
class UsageError(PartitaError):
    """When the command line combines things that do not go together."""


@dataclass(kw_only=True)
class DriverError(PartitaError):
    """When the GPU driver refuses what was asked of it.

    Attributes:
        failure: Its reason, a value of ``ports.gpu_driver.DriverFailure``.
        uuid: GPU it concerns, None for the driver as a whole.
    """

    failure: str
    uuid: str | None = None


@dataclass(kw_only=True)
class KubeletError(PartitaError):
    """When the kubelet of the node is absent, refuses, or cannot be understood."""


@dataclass(kw_only=True)
class ImpossibleWorldError(PartitaError):
    """When a simulation is told to become something that the real thing cannot be."""


@dataclass(kw_only=True)
class UnknownModelError(PartitaError):
    """When a GPU name is not in the catalogue.

    Attributes:
        name: The name that was looked up.
    """

    name: str


@dataclass(kw_only=True)
class UnknownProfileError(PartitaError):
    """When a GPU model has no MIG profile of a name.

    Attributes:
        model: Catalogue id of the GPU model.
        profile: The name that was looked up.
    """

    model: str
    profile: str


@dataclass(kw_only=True)
class IllegalLayoutError(PartitaError):
    """When instances cannot stand together on one GPU.

    Attributes:
        model: Catalogue id of the GPU model.
    """

    model: str
