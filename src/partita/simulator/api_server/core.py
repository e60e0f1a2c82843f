"""The API server without its network: requests in, answers out, nothing in between waits."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from random import Random

from partita.ports.clock import Clock
from partita.simulator.api_server.cluster_state import ClusterState
from partita.simulator.api_server.deleting import Deletions
from partita.simulator.api_server.reading import Page, Reader, Watch
from partita.simulator.api_server.requests import Request
from partita.simulator.api_server.resource_types import BUILT_IN
from partita.simulator.api_server.shapes import Object
from partita.simulator.api_server.store import Store, Stored, encode
from partita.simulator.api_server.writing import Reply, Writer

__all__ = ["Answer", "ApiCore"]

Answer = Reply | Page | Watch | Stored
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class ApiCore:
    """A cluster's API, with the namespaces that every cluster has."""

    def __init__(self, *, clock: Clock, random: Random, history_length: int = 10_000) -> None:
        store = Store(history_length=history_length)
        self.state = ClusterState(clock=clock, random=random, store=store)
        self._deletions = Deletions(self.state)
        self._writer = Writer(self.state, self._deletions)
        self._reader = Reader(self.state)
        self._verbs: Mapping[str, Callable[[Request], Answer]] = {
            "get": self.state.get,
            "list": self._reader.list,
            "watch": self._reader.watch,
            "create": self._writer.create,
            "update": self._writer.update,
            "patch": self._writer.patch,
            "delete": self._delete,
            "deletecollection": self._delete_all,
        }
        resource = next(one for one in BUILT_IN if one.plural == "namespaces")
        for name in _NAMESPACES:
            body = encode({"metadata": {"name": name}})
            self.answer(Request(method="POST", resource=resource, body=body, agent="partita"))

    def answer(self, request: Request) -> Answer:
        """Carry out a request.

        Raises:
            ApiFailure: When it is refused.
        """
        request.check()
        return self._verbs[request.verb](request)

    def _delete(self, request: Request) -> Reply:
        return Reply(body=self._deletions.delete(request), code=HTTPStatus.OK)

    def _delete_all(self, request: Request) -> Page:
        page = self._reader.list(request)
        found: list[Object] = [one.object for one in page.items]
        left = self._deletions.delete_all(request, found)
        return Page(items=tuple(map(Stored, left)), version=page.version)
