"""What ``kubectl get nodes|pods -o json|yaml`` prints: node objects and pods that want GPUs.

Accepted are a single object, a ``List``, ``NodeList`` or ``PodList``, a bare array of objects (what
``jq .items`` leaves), several documents in one file, and two excerpts of a node that people paste:
its labels alone and its allocatable resources alone. Objects of other kinds become a note.

A list that has pods, and a ``PodList`` also when it is empty, tells who runs. A pod that stands
alone, as in a manifest, says nothing of others; nor does an empty ``List``, which does not say what
it lists: ``kubectl get pods`` without ``-A`` prints it in a namespace that has none.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from partita.adapters.kubectl import excerpts, layouts, nodes, pods
from partita.config.untyped import Untyped
from partita.model.node import Node
from partita.model.pod import Pod
from partita.model.report import NodeReport, Observation

__all__ = ["HINT", "read", "recognises"]

HINT = "write the file with `kubectl get nodes -o json` or `kubectl get pods -A -o json`"


def recognises(documents: Sequence[Untyped]) -> bool:
    """Tell whether the documents look like Kubernetes objects or an excerpt of a node."""
    return bool(documents) and all(
        _is_object(document.value) or excerpts.recognises(document.value) for document in documents
    )


def read(documents: Sequence[Untyped], *, node: str) -> Observation:
    """Return the nodes and the pods of the documents.

    Args:
        documents: The documents of one file.
        node: Name of the node when the file holds only an excerpt that does not say it.

    Raises:
        InputError: When an object lacks what Kubernetes demands or a value has the wrong type.
    """
    found = _Found()
    for document in documents:
        hinted = replace(document, hint=HINT)
        if excerpts.recognises(document.value):
            excerpt, notes = excerpts.read(hinted, node=node)
            found.nodes.append(excerpt)
            found.notes += notes
            continue
        listing = _lists(document.value)
        if listing == "PodList":
            found.lists_pods = True
        for kind, item in _objects(hinted):
            found.take(kind, item, listed=listing is not None)
    return found.observation()


@dataclass(kw_only=True)
class _Found:
    """What has been read so far of one file."""

    nodes: list[Node] = field(default_factory=list)
    reports: list[NodeReport] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lists_pods: bool = False
    namespaces: set[str] = field(default_factory=set)
    without_gpu: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    def take(self, kind: str, item: Untyped, *, listed: bool) -> None:
        if kind == "Node":
            self._take_node(item)
        elif kind == "Pod":
            self._take_pod(item)
            self.lists_pods = self.lists_pods or listed
        else:
            self.skipped[kind] += 1

    def observation(self) -> Observation:
        notes = list(self.notes)
        notes += [f"skipped objects of kind {kind}: {n}" for kind, n in self.skipped.items()]
        if self.without_gpu:
            notes.append(f"skipped pods that ask for no nvidia.com/ resource: {self.without_gpu}")
        if not (self.nodes or self.pods or notes):
            notes.append("the file lists no objects")
        return Observation(
            nodes=tuple(self.nodes),
            reports=tuple(self.reports),
            pods=tuple(self.pods),
            pod_namespaces=frozenset(self.namespaces) if self.lists_pods else None,
            notes=tuple(notes),
        )

    def _take_node(self, item: Untyped) -> None:
        node = nodes.read(item)
        report, notes = layouts.read(node, source=item.path)
        self.nodes.append(node)
        self.notes += notes
        if report is not None:
            self.reports.append(report)

    def _take_pod(self, item: Untyped) -> None:
        pod, notes = pods.read(item)
        self.notes += notes
        namespace = item.need("metadata").get("namespace")
        self.namespaces.add("default" if namespace is None else namespace.name())
        if pod is None:
            self.without_gpu += 1
        else:
            self.pods.append(pod)


def _is_object(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, dict) and "metadata" in item for item in value)
    return isinstance(value, dict) and "kind" in value


def _lists(value: object) -> str | None:
    """Return the kind of a list, empty for a bare array; None when it is a single object."""
    if isinstance(value, list):
        return ""
    kind = value.get("kind") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) and kind.endswith("List") else None


def _objects(document: Untyped) -> Iterator[tuple[str, Untyped]]:
    """Yield kind and object; the kind of another API group than core comes with its group."""
    if isinstance(document.value, list):
        yield from _listed(document, None)
        return
    kind = document.need("kind").name()
    if kind.endswith("List"):
        items = document.get("items")
        if items is not None:
            yield from _listed(replace(items, where="items"), kind.removesuffix("List") or None)
    else:
        yield _qualified(document, kind), replace(document, where=kind)


def _listed(items: Untyped, kind: str | None) -> Iterator[tuple[str, Untyped]]:
    """Yield the members; the API server leaves their kind out of a ``PodList``."""
    for item in items.elements():
        own = item.get("kind")
        if own is None and kind is None:
            item.fail("kind is missing")
        yield _qualified(item, own.name() if own is not None else kind or ""), item


def _qualified(item: Untyped, kind: str) -> str:
    version = item.get("apiVersion")
    written = "v1" if version is None else version.name()
    return kind if written == "v1" else f"{kind} ({written})"
