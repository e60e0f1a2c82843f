"""What all requests share: the store, the resources that are served, a clock, chance."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from uuid import UUID

from partita.ports.clock import Clock
from partita.simulator.api_server import failures
from partita.simulator.api_server.requests import Request
from partita.simulator.api_server.resource_types import Resources, ResourceType
from partita.simulator.api_server.shapes import Object
from partita.simulator.api_server.store import Key, Store, Stored

__all__ = ["DEFINITIONS", "ClusterState", "key_of"]

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


@dataclass(slots=True, kw_only=True)
class ClusterState:
    """The state of a simulated cluster's API server.

    Attributes:
        clock: Tells the time of creation and deletion.
        random: Makes UIDs and generated names.
        store: The objects.
        resources: The resources that are served.
    """

    clock: Clock
    random: Random
    store: Store = field(default_factory=Store)
    resources: Resources = field(default_factory=Resources)

    def now(self, *, later_seconds: int = 0) -> str:
        """Return the time of day as objects tell it."""
        moment = self.clock.now().timestamp() + later_seconds
        return _written(moment)

    def new_uid(self) -> str:
        """Return a UID that nothing has."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def find(self, resource: ResourceType, key: Key) -> Stored | None:
        """Return an object, None when there is none."""
        return self.store.collection(resource.collection).objects.get(key)

    def get(self, request: Request) -> Stored:
        """Return the object that a request names.

        Raises:
            ApiFailure: When there is none.
        """
        found = self.find(request.resource, (request.namespace, request.name))
        if found is None:
            raise failures.not_found(request.resource, request.name)
        return found

    def refresh_resources(self) -> None:
        """Serve what the CRDs define now."""
        definitions = self.store.collection(DEFINITIONS).now()
        known = {one.collection for one in self.resources.served}
        self.resources.define(found.object for _, found in definitions)
        for one in self.resources.served:
            if one.collection not in known:
                self.store.collection(one.collection).oldest = self.store.version


def _written(moment: float) -> str:
    return datetime.fromtimestamp(int(moment), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def key_of(found: Object) -> Key:
    """Return the key of an object."""
    metadata = found["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
