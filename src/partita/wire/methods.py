"""A method of a gRPC service with the types of its messages, to be called or to be served."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import grpc
from google.protobuf.message import Message

__all__ = ["Served", "StreamMethod", "UnaryMethod", "service"]

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

Context: TypeAlias = "grpc.aio.ServicerContext[Request, Response]"
Answers: TypeAlias = AsyncIterator[Response] | Awaitable[None]


@dataclass(frozen=True, slots=True)
class Served:
    """A method together with the coroutine that answers it.

    Attributes:
        path: ``/package.Service/Method``.
        handler: What gRPC needs.
    """

    path: str
    handler: "grpc.RpcMethodHandler[Any, Any]"


@dataclass(frozen=True, slots=True)
class UnaryMethod(Generic[Request, Response]):
    """One request, one response.

    Attributes:
        path: ``/package.Service/Method``.
        request: Class of the request.
        response: Class of the response.
    """

    path: str
    request: type[Request]
    response: type[Response]

    def on(
        self, channel: grpc.aio.Channel
    ) -> "grpc.aio.UnaryUnaryMultiCallable[Request, Response]":
        """Return the method of whoever is at the other end of a channel."""
        return channel.unary_unary(self.path, _encode, self.response.FromString)

    def by(
        self, answer: "Callable[[Request, Context[Request, Response]], Awaitable[Response]]"
    ) -> Served:
        """Return the method as answered by a coroutine."""
        handler = grpc.unary_unary_rpc_method_handler(
            answer,
            self.request.FromString,
            _encode,
        )
        return Served(self.path, handler)


@dataclass(frozen=True, slots=True)
class StreamMethod(Generic[Request, Response]):
    """One request, any number of responses.

    Attributes:
        path: ``/package.Service/Method``.
        request: Class of the request.
        response: Class of a response.
    """

    path: str
    request: type[Request]
    response: type[Response]

    def on(
        self, channel: grpc.aio.Channel
    ) -> "grpc.aio.UnaryStreamMultiCallable[Request, Response]":
        """Return the method of whoever is at the other end of a channel."""
        return channel.unary_stream(self.path, _encode, self.response.FromString)

    def by(
        self,
        answer: "Callable[[Request, Context[Request, Response]], Answers[Response]]",
    ) -> Served:
        """Return the method as answered by a coroutine function or by a generator function.

        A coroutine writes to the context; it is cancelled when the call ends, while a generator
        that has just yielded is left to the garbage collector.
        """
        handler = grpc.unary_stream_rpc_method_handler(
            answer,
            self.request.FromString,
            _encode,
        )
        return Served(self.path, handler)


def service(*methods: Served) -> grpc.GenericRpcHandler:
    """Return what ``add_generic_rpc_handlers`` takes; the methods are all of one service."""
    (name,) = {method.path.split("/")[1] for method in methods}
    return grpc.method_handlers_generic_handler(
        name, {method.path.split("/")[2]: method.handler for method in methods}
    )


def _encode(message: Message) -> bytes:
    return message.SerializeToString()
