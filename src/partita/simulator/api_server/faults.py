"""Faults that a test can plan: what a real API server does on a bad day, and nothing else.

Events of a watch are never lost or changed in order: a real server does not do that either.
"""

from dataclasses import dataclass, field

from partita.simulator.api_server import failures
from partita.simulator.api_server.failures import ApiFailure
from partita.simulator.api_server.requests import Request

__all__ = ["Fault", "Faults"]

_REASONS = {
    401: ("Unauthorized", "Unauthorized"),
    403: ("Forbidden", "forbidden"),
    409: ("Conflict", "Operation cannot be fulfilled"),
    410: ("Expired", "The resourceVersion for the provided watch is too old."),
    429: ("TooManyRequests", "Too many requests, please try again later."),
    500: ("InternalError", "Internal error occurred: injected"),
    503: ("ServiceUnavailable", "apiserver is shutting down"),
    504: ("Timeout", "Timeout: request did not complete within the allotted duration"),
}


@dataclass(slots=True, kw_only=True)
class Fault:
    """What happens to some requests.

    Attributes:
        times: To how many of them; None = to all, until it is lifted.
        verb: Only to requests with this verb (``list``, ``watch``, ``create`` …); None = any.
        plural: Only to requests for this resource; None = any.
        code: HTTP status of the answer; None = they are carried out.
        retry_seconds: What ``Retry-After`` says, None = nothing.
        delay_seconds: How long they wait first.
    """

    times: int | None = 1
    verb: str | None = None
    plural: str | None = None
    code: int | None = None
    retry_seconds: int | None = None
    delay_seconds: float = 0.0

    def means(self, request: Request) -> bool:
        """Tell whether it happens to a request."""
        return (
            self.times != 0
            and self.verb in {None, request.verb}
            and self.plural in {None, request.resource.plural}
        )

    def failure(self) -> ApiFailure | None:
        """Return the answer, None when the request is carried out."""
        if self.code is None:
            return None
        reason, message = _REASONS.get(self.code, ("", "injected"))
        details = {"retryAfterSeconds": self.retry_seconds} if self.retry_seconds else None
        status = failures.status(self.code, message, reason, details)
        return ApiFailure(self.code, status, retry_seconds=self.retry_seconds)


@dataclass(slots=True)
class Faults:
    """The faults that are planned.

    Attributes:
        planned: The faults; the first that means a request happens to it.
    """

    planned: list[Fault] = field(default_factory=list)

    def plan(self, fault: Fault) -> None:
        """Let a fault happen from now on."""
        self.planned.append(fault)

    def lift(self) -> None:
        """Let no planned fault happen any more."""
        self.planned.clear()

    def take(self, request: Request) -> Fault | None:
        """Return what happens to a request, and count it."""
        found = next((one for one in self.planned if one.means(request)), None)
        if found is not None and found.times is not None:
            found.times -= 1
        self.planned = [one for one in self.planned if one.times != 0]
        return found
