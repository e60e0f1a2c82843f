"""Of which nodes anybody said what pods hold there.

A list of pods speaks for every node, the kubelet's checkpoint and a fleet file for their own. Where
none of them is given, that no pod is known there means nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from partita.model.gpu import Gpu
from partita.model.report import Observation

__all__ = ["Hearsay", "listen"]

_GIVE = "`kubectl get pods -A -o json`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearsay:
    """What is known of who was asked.

    Attributes:
        silent: Nodes with GPUs of which nobody said what pods hold.
        notes: What was not given, in words for the user.
    """

    silent: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def listen(observations: Sequence[Observation], gpus: Iterable[Gpu]) -> Hearsay:
    """Return the nodes with GPUs of which nobody said what pods hold there."""
    open_nodes = {gpu.node for gpu in gpus} - _complete(observations)
    lists = [o.pod_namespaces for o in observations if o.pod_namespaces is not None]
    if lists:
        namespaces = sorted(frozenset[str]().union(*lists))
        if open_nodes and len(namespaces) == 1:
            note = f"all given pods are of namespace {namespaces[0]}; use -A when that is not all"
            return Hearsay(notes=(note,))
        return Hearsay()
    silent = open_nodes.difference(*(observation.checkpoints for observation in observations))
    if not silent:
        return Hearsay()
    named = ("node " if len(silent) == 1 else "nodes ") + ", ".join(sorted(silent))
    note = f"no pods were given: nothing of {named} is known to be free; add {_GIVE}"
    return Hearsay(silent=frozenset(silent), notes=(note,))


def _complete(observations: Sequence[Observation]) -> set[str]:
    """Return the nodes that are described by files only which tell who holds what as well."""
    reports = [report for observation in observations for report in observation.reports]
    partial = {report.node for report in reports if not report.complete}
    return {report.node for report in reports if report.complete} - partial
