"""A copy of a kubelet's ``kubelet_internal_checkpoint``: which device each container was given.

No object of the API says it. The file lies in ``/var/lib/kubelet/device-plugins`` of a node and
does not name the node.
"""

from collections import Counter
from dataclasses import replace

from partita.config import device_checkpoint
from partita.config.untyped import Untyped
from partita.model import resource
from partita.model.report import DeviceClaim, Observation

__all__ = ["HINT", "read", "recognises"]

HINT = "copy /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint to NODE.checkpoint.json"


def recognises(value: object) -> bool:
    """Tell whether a document looks like the checkpoint."""
    return isinstance(value, dict) and "Data" in value and "Checksum" in value


def read(document: Untyped, *, node: str) -> Observation:
    """Return the claims on NVIDIA's devices of one node.

    Raises:
        InputError: When an entry lacks a field or a value has the wrong type.
    """
    hinted = replace(document, hint=HINT, where="checkpoint")
    claims, foreign = [], Counter[str]()
    for name, raw in device_checkpoint.entries(hinted):
        if not name.startswith(resource.DOMAIN):
            foreign[name] += 1
            continue
        entry = device_checkpoint.read_entry(raw, Untyped.name)
        claims.append(
            DeviceClaim(
                node=node,
                pod_uid=entry.pod_uid,
                container=entry.container,
                resource=entry.resource,
                device_ids=entry.device_ids,
            )
        )
    notes = [f"node {node}: skipped devices of resource {name}: {n}" for name, n in foreign.items()]
    if not claims:
        notes.append(f"node {node}: the kubelet remembers no NVIDIA device that a pod holds")
    return Observation(claims=tuple(claims), checkpoints=frozenset({node}), notes=tuple(notes))
