"""What stands in a fleet, concluded from partial sources.

Node objects count, ``nvidia-smi`` lists, pods ask, the kubelet remembers: no source tells
everything, and some tell what is long gone. Here they become one ``Fleet``. What cannot be
concluded is said in notes and treated as in use; nothing is guessed to be free.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from partita.inventory import advertisement, boards, health, hearsay, holders, standing
from partita.model import resource
from partita.model.fleet import Fleet
from partita.model.gpu import Gpu
from partita.model.node import Node
from partita.model.pod import Phase, Pod
from partita.model.report import NodeReport, Observation

__all__ = ["assemble"]


def assemble(observations: Sequence[Observation]) -> Fleet:
    """Return what stands, given everything that was read.

    Nodes are ordered by name, GPUs by node and index, instances by placement, pods by full name.
    """
    nodes = _nodes(node for observation in observations for node in observation.nodes)
    reports: dict[str, list[NodeReport]] = {}
    for report in (report for observation in observations for report in observation.reports):
        reports.setdefault(report.node, []).append(report)
    claims = [claim for observation in observations for claim in observation.claims]
    for name in (*reports, *(claim.node for claim in claims)):
        nodes.setdefault(name, Node(name=name))
    pods, notes = _pods(pod for observation in observations for pod in observation.pods)
    notes = [*(note for observation in observations for note in observation.notes), *notes]
    gpus: list[Gpu] = []
    shares: dict[tuple[str, str], int] = {}
    for name in sorted(nodes):
        joined, contradictions = boards.join(name, reports.get(name, ()))
        said = advertisement.read(nodes[name])
        stood = standing.conclude(name, joined, said)
        gpus += stood.gpus
        notes += [*contradictions, *said.notes, *stood.notes]
        for profile, slots in said.slice_replicas.items():
            shares[name, resource.mig_resource(profile)] = slots
    heard = hearsay.listen(observations, gpus)
    holding = holders.attach(gpus, pods, claims, shares, silent=heard.silent)
    offered = health.withhold(nodes, holding.gpus, holding.held)
    notes += [*heard.notes, *holding.notes, *offered.notes, *_strays(pods, nodes)]
    return Fleet(
        nodes=tuple(nodes[name] for name in sorted(nodes)),
        gpus=offered.gpus,
        pods=tuple(pod for pod in pods if pod.phase is not Phase.FINISHED),
        held=offered.held,
        notes=tuple(dict.fromkeys(notes)),
    )


def _nodes(given: Iterable[Node]) -> dict[str, Node]:
    """Join node objects and excerpts of the same node; what comes first counts."""
    found: dict[str, Node] = {}
    for node in given:
        own = found.get(node.name)
        if own is None:
            found[node.name] = node
            continue
        found[node.name] = replace(
            own,
            labels={**node.labels, **own.labels},
            annotations={**node.annotations, **own.annotations},
            capacity=own.capacity or node.capacity,
            allocatable=own.allocatable or node.allocatable,
            taints=own.taints or node.taints,
            schedulable=own.schedulable and node.schedulable,
            reason=own.reason or node.reason,
        )
    return found


def _pods(given: Iterable[Pod]) -> tuple[list[Pod], list[str]]:
    """Return each pod once, by full name; of two states the one that holds something counts."""
    found: dict[str, Pod] = {}
    notes = []
    for pod in given:
        own = found.get(pod.full_name)
        if own is None or own == pod:
            found[pod.full_name] = pod
            continue
        if (own.node, own.phase) != (pod.node, pod.phase):
            notes.append(f"pod {pod.full_name} is given in two states; the bound one counts")
        found[pod.full_name] = max(own, pod, key=_grip)
    return [found[name] for name in sorted(found)], notes


def _grip(pod: Pod) -> tuple[bool, bool]:
    bound = pod.node is not None and pod.phase is not Phase.FINISHED
    return (bound, pod.gpu_index is not None)


def _strays(pods: Iterable[Pod], nodes: Mapping[str, Node]) -> list[str]:
    away: dict[str, int] = {}
    for pod in pods:
        if pod.node is not None and pod.node not in nodes and pod.phase is not Phase.FINISHED:
            away[pod.node] = away.get(pod.node, 0) + 1
    return [
        f"node {name}: pods are bound to it, but nothing else is given of it: {count}"
        for name, count in sorted(away.items())
    ]
