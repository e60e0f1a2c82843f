"""The whole of what stands: nodes with GPUs, and the pods that hold or want them."""

from dataclasses import dataclass

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
        notes: What is unknown or contradictory in the input, in words for the user.
    """

    nodes: tuple[Node, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    pods: tuple[Pod, ...] = ()
    notes: tuple[str, ...] = ()
