"""Our short fleet file: a fleet one can write by hand, for what-if questions and examples.

::

    nodes:
      - name: gpu-a
        count: 2                    # gpu-a-0 and gpu-a-1
        labels: {pool: training}
        gpus:
          - model: h100-80gb-sxm5   # any name the catalogue knows
            count: 3                # of this kind on each node
            mig: on
            instances:
              - {profile: 3g.40gb, start: 0, held_by: team/train}
              - {profile: 1g.10gb, start: 4}
          - {model: a30, replicas: 4, held_by: notebook}
    pods:
      - {name: infer, namespace: team, request: 1g.10gb, count: 4, priority: 10, memory: 8Gi}
      - {name: old, request: {gpu: 2}, node: gpu-a-0, created: "2024-05-01T08:00:00Z"}

A thing with ``count`` becomes ``name-0``, ``name-1`` …; a holder too, when its place is repeated.
Errors carry line and column. What cannot be cut like this on the hardware is refused.
"""

from collections.abc import Mapping

from partita.adapters.fleet_file import nodes, pods
from partita.adapters.fleet_file.record import HINT, document
from partita.adapters.fleet_file.world import World
from partita.model.report import Observation

__all__ = ["HINT", "read", "recognises"]


def recognises(value: object) -> bool:
    """Tell whether a document looks like a fleet file."""
    return (
        isinstance(value, Mapping)
        and "kind" not in value
        and not {"nodes", "pods"}.isdisjoint(value)
    )


def read(text: str, *, source: str) -> Observation:
    """Return the nodes, their GPUs and the pods of a fleet file.

    Raises:
        InputError: With line and column, when the file is not one, a key or a GPU model is
            unknown, or something stands where it cannot.
    """
    top = document(text, source, keys=("nodes", "pods"))
    world = World()
    for entry in top.records("nodes", "a node", nodes.KEYS):
        nodes.read(entry, world)
    for entry in top.records("pods", "a pod", pods.KEYS):
        pods.read(entry, world)
    notes = () if world.nodes or world.pods else ("the fleet file lists neither nodes nor pods",)
    return Observation(
        nodes=tuple(world.nodes),
        reports=tuple(world.reports),
        pods=tuple(world.pods),
        notes=notes,
    )
