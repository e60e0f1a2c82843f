"""What a fleet file has built so far, and what it refuses: two holders of one slice, a giant."""

from collections import Counter
from dataclasses import dataclass, field

from partita.adapters.fleet_file.record import Field
from partita.model.node import Node
from partita.model.pod import Pod
from partita.model.report import GpuReport, NodeReport

__all__ = ["World"]

_MOST_THINGS = 200_000  # nodes, GPUs and pods together; a slip in a count must not fill the memory


@dataclass(kw_only=True)
class World:
    """The nodes, GPUs and pods of a fleet file.

    Attributes:
        nodes: Nodes so far.
        reports: Their GPUs.
        pods: Pods so far, holders among them.
    """

    nodes: list[Node] = field(default_factory=list)
    reports: list[NodeReport] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    gpus: dict[str, tuple[GpuReport, ...]] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)
    _holders: Counter[tuple[str, int, int | None]] = field(default_factory=Counter)
    _things: int = 0

    def spend(self, things: int, at: Field) -> None:
        """Count things to be made, and refuse too many."""
        self._things += things
        if self._things > _MOST_THINGS:
            at.fail(f"more than {_MOST_THINGS} things in one file", "lower a count")

    def add_node(self, node: Node, report: NodeReport, at: Field) -> None:
        """Add a node with its GPUs."""
        if node.name in self.gpus:
            at.fail(f"two nodes have the name: {node.name}", "rename one of them")
        self.nodes.append(node)
        self.reports.append(report)
        self.gpus[node.name] = report.gpus

    def add_pod(self, pod: Pod, at: Field) -> None:
        """Add a pod; what it holds must be free."""
        if pod.full_name in self._names:
            at.fail(f"two pods have the name: {pod.full_name}", "rename one, or use `count`")
        self._names.add(pod.full_name)
        self.pods.append(pod)
        if pod.node is not None and pod.gpu_index is not None:
            self._hold(pod.node, pod.gpu_index, pod.placement_start, at)

    def _hold(self, node: str, index: int, start: int | None, at: Field) -> None:
        gpus = self.gpus.get(node, ())
        shares = gpus[index].replicas or 1 if index < len(gpus) and start is None else 1
        self._holders[node, index, start] += 1
        if self._holders[node, index, start] > shares:
            gpu = f"GPU {index} of {node}"
            slot = gpu if start is None else f"slice {start} of {gpu}"
            at.fail(f"more pods than it can have hold {slot}", "give each slice one holder")
