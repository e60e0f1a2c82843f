"""How many slots each GPU of a node is shared into, from labels and counts that may disagree.

The label ``gpu.replicas`` is per GPU (its documentation says that it is the node's total; the code
of k8s-device-plugin v0.20.0 says otherwise). Counts miss the slots of a GPU that is unhealthy.
"""

from dataclasses import dataclass

from partita.inventory.advertisement import Advertisement

__all__ = ["Slots", "slots"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """Slots per GPU.

    Attributes:
        replicas: Slots per GPU, 1 = not shared.
        note: What does not agree, in words for the user; None when all does.
    """

    replicas: int = 1
    note: str | None = None


def slots(node: str, said: Advertisement, gpus: int | None) -> Slots:
    """Return the slots per GPU.

    Args:
        node: Node name.
        said: What the node object says.
        gpus: Physical GPUs that are not cut by MIG, None when that is not known.
    """
    labelled = said.replicas if said.replicas is not None and said.replicas > 1 else None
    even = said.whole is not None and gpus and said.whole % gpus == 0 and said.whole > gpus
    counted = said.whole // gpus if even and said.whole is not None and gpus else None
    if labelled is None:
        if counted is None and said.sharing is not None and said.whole != gpus:
            return Slots(note=f"node {node}: how many slots each shared GPU has is not known")
        return Slots(replicas=counted or 1)
    if counted in (None, labelled):
        return Slots(replicas=labelled)
    note = f"node {node}: {said.whole} slots on {gpus} GPUs, but its label says {labelled} on each"
    return Slots(replicas=labelled, note=note)
