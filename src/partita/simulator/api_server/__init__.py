"""A simulated Kubernetes API server that real clients talk to over HTTP.

What it says is held against the real API server by one contract suite
(``tests/kubernetes/api_server``). It knows the kinds that partita meets, and every kind that a
CustomResourceDefinition brings. On purpose it differs from the real one in this:

- Nobody has to log in, and everybody may do everything. There are no controllers: nothing owned is
  collected, no node gets or loses a taint by itself. Only a deleted namespace is emptied, at once,
  and a new one gets its account, at once.
- A CRD is served as soon as it is there; the real server needs a second or two, and answers 429
  meanwhile. Rules in CEL are kept, and not judged.
- Fields that Go writes as null (``lastHeartbeatTime``, ``eventTime``) are absent.
- Protobuf is understood in the few bodies in which kubectl insists on it, and never sent.
- A version that is too large is refused at once; the real server waits three seconds for it.
- There are no services, logs, ``exec``, evictions, access reviews and admission webhooks.
- Objections to several fields come sorted; those of the real server come in any order.

Modules say more about their own part.
"""

from partita.simulator.api_server.faults import Fault, Faults
from partita.simulator.api_server.server import SimulatedApiServer

__all__ = ["Fault", "Faults", "SimulatedApiServer"]
