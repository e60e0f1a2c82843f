"""Everything the test bed raises on purpose.

TestbedError
├── MissingError  this machine lacks something that the test bed needs
├── BuildError    a Go module did not build
├── ClusterError  a program of the cluster ended, or was used where it cannot run
├── WaitError     what was awaited did not happen in time
└── ApiError      the API server answered with an error
"""


class TestbedError(Exception):
    """Something the test bed can explain; ``hint`` says what would help."""

    __test__ = False  # a name that begins with Test is no test

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Return the message and, on a line of its own, the hint."""
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class MissingError(TestbedError):
    """This machine lacks something that the test bed needs."""


class BuildError(TestbedError):
    """A Go module did not build."""


class ClusterError(TestbedError):
    """A program of the cluster ended unasked, or the cluster was started where it cannot run."""


class WaitError(TestbedError):
    """What was awaited did not happen in time."""


class ApiError(TestbedError):
    """The API server answered with an error: ``status`` is the HTTP code, ``reason`` its word."""

    def __init__(self, message: str, *, status: int, reason: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
