"""The whole of what stands: nodes with GPUs, and the pods that hold or want them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from partita.model.gpu import Gpu
from partita.model.node import Node
from partita.model.pod import Pod

__all__ = ["Fleet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What stands, as one value.

    Attributes:
        nodes: Nodes by name.
        gpus: GPUs ordered by node and index.
        pods: Pods that ask for GPU resources and have not finished.
        held: (node, resource) → how many slices of it (slots, of shared GPUs) are in use on that
            node, by pods or, where there are more, by processes or other signs of use; all of
            them where nobody said what pods hold there. Every resource that has
            slices there is in it, also with 0; a MIG profile is named as in the catalogue.
        notes: What is unknown or contradictory in the input, in words for the user.
    """

    nodes: tuple[Node, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    pods: tuple[Pod, ...] = ()
    held: Mapping[tuple[str, str], int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
