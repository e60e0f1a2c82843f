"""Who holds which device, from everything that may say so. Pure.

Nothing single proves that a device is free: the kubelet's list is empty after its restart, its
checkpoint also names pods that have ended, a pod that is being admitted is in neither, and a
program may use a GPU without any pod. A device is free when none of them names it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from partita.agent.observation import KubeletEvidence, Observation
from partita.model import resource
from partita.model.slice import device_of
from partita.ports.gpu_driver import DriverProcess
from partita.ports.process_table import Process

__all__ = ["Holders", "of"]

_SETTLED_SECONDS = 1.0  # how long a promise counts at least: a kubelet notes it in milliseconds
_FORGOTTEN_SECONDS = 60.0  # after that a pod that no list names was not admitted after all
_DEVICE_ID = re.compile(r"(GPU|MIG)-[^:]+(::(0|[1-9]\d*))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """Who holds what.

    Attributes:
        ids: Device UUID → device ID → (resource, holders) of all IDs of it that are held, or were
            when the kubelet last wrote its checkpoint.
        allocatable: Device UUID → device ID → resource, of all IDs that the kubelet may give away.
        stale: Device IDs that only the kubelet's checkpoint names: whether their pods still exist
            shows when it is written again.
        processes: (GPU UUID, instance id or None) → names of the processes on it.
        blind: Devices are held that cannot be told apart, or nobody can say who holds what: why.
        outdated: Whether that is only by the checkpoint, which may name pods that have ended.
        confirmed: Promises that the kubelet has known of, as (device ID, time).
        settled: Promises that need not be kept any longer: device ID → time.
    """

    ids: Mapping[str, Mapping[str, tuple[str, tuple[str, ...]]]] = field(default_factory=dict)
    allocatable: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stale: frozenset[str] = frozenset()
    processes: Mapping[tuple[str, int | None], tuple[str, ...]] = field(default_factory=dict)
    blind: str | None = None
    outdated: bool = False
    confirmed: frozenset[tuple[str, float]] = frozenset()
    settled: Mapping[str, float] = field(default_factory=dict)

    def holders(self, device: str) -> tuple[str, ...]:
        """Return who holds a device, or any slot of it, by kubelet and promise."""
        named = (name for _, names in self.ids.get(device, {}).values() for name in names)
        return tuple(dict.fromkeys(named))

    def of_id(self, device_id: str) -> tuple[str, ...]:
        """Return who holds one device ID, by kubelet and promise."""
        return self.ids.get(device_of(device_id), {}).get(device_id, ("", ()))[1]

    def is_listed(self, device_id: str) -> bool:
        """Tell whether the kubelet may give a device ID away, held or not."""
        return device_id in self.allocatable.get(device_of(device_id), ())

    def users(self, gpu: str, instance_id: int | None = None) -> tuple[str, ...]:
        """Return the processes on an instance, or without one those on the GPU as a whole."""
        return self.processes.get((gpu, instance_id), ())

    def is_used(self, gpu: str) -> bool:
        """Tell whether any process is on a GPU or its instances."""
        return any(names for (uuid, _), names in self.processes.items() if uuid == gpu)


def of(
    observation: Observation,
    names: Mapping[str, str],
    confirmed: frozenset[tuple[str, float]] = frozenset(),
) -> Holders:
    """Return who holds what by an observation.

    Args:
        observation: The observation.
        names: Device ID → resource, of what was last offered; a promise does not say it.
        confirmed: Promises that the kubelet had known of before.
    """
    evidence = observation.kubelet
    if evidence is None:
        why = observation.kubelet_problem or "the kubelet gave no answer"
        return Holders(blind=why, processes=_processes(observation), confirmed=confirmed)
    confirmed = _confirmed(evidence, observation, confirmed)
    ids: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = defaultdict(dict)
    listed = {(one.resource, one.device_id) for one in evidence.holdings}
    for resource_name, device_id, holder in _claims(evidence, listed, observation, names):
        _, before = ids[device_of(device_id)].get(device_id, ("", ()))
        held_by = tuple(dict.fromkeys((*before, holder)))
        ids[device_of(device_id)][device_id] = (resource_name, held_by)
    return Holders(
        ids=dict(ids),
        allocatable=_allocatable(evidence),
        stale=frozenset(_stale(evidence, listed, observation)),
        processes=_processes(observation),
        blind=_oddly_held(evidence) or _oddly_remembered(evidence),
        outdated=_oddly_held(evidence) is None and _oddly_remembered(evidence) is not None,
        confirmed=confirmed,
        settled=dict(_settled(observation, confirmed)),
    )


def _claims(
    evidence: KubeletEvidence,
    listed: set[tuple[str, str]],
    observation: Observation,
    names: Mapping[str, str],
) -> Iterator[tuple[str, str, str]]:
    """Yield (resource, device ID, holder) from the surest source to the least sure."""
    for holding in evidence.holdings:
        if _is_ours(holding.resource, holding.device_id):
            yield holding.resource, holding.device_id, holding.holder
    for one in evidence.remembered:
        if _is_ours(one.resource, one.device_id) and (one.resource, one.device_id) not in listed:
            yield one.resource, one.device_id, f"pod with UID {one.pod_uid}"
    for device_id in observation.serving.promised:
        if not any(device_id == known for _, known in listed):
            yield names.get(device_id, ""), device_id, "a pod that is being admitted"


def _is_ours(resource_name: str, device_id: str) -> bool:
    return resource_name.startswith(resource.DOMAIN) and _DEVICE_ID.fullmatch(device_id) is not None


def _stale(
    evidence: KubeletEvidence, listed: set[tuple[str, str]], observation: Observation
) -> Iterator[str]:
    """Yield the device IDs that nothing but the checkpoint names."""
    for one in evidence.remembered:
        promised = one.device_id in observation.serving.promised
        if (one.resource, one.device_id) not in listed and not promised:
            yield one.device_id


def _oddly_held(evidence: KubeletEvidence) -> str | None:
    """Return which pod holds a GPU of which it cannot be told which it is."""
    for holding in evidence.holdings:
        if holding.claimed and holding.resource == resource.DRA_DRIVER:
            return f"{holding.holder} holds a GPU through a claim: {holding.device_id}"
        if not holding.claimed and _is_odd(holding.resource, holding.device_id):
            return f"{holding.holder} holds a device of another plugin: {holding.device_id}"
    return None


def _oddly_remembered(evidence: KubeletEvidence) -> str | None:
    """Return which pod held such a GPU when the kubelet last wrote its checkpoint."""
    for one in evidence.remembered:
        if _is_odd(one.resource, one.device_id):
            return f"pod {one.pod_uid} holds a device of another plugin: {one.device_id}"
    return None


def _is_odd(resource_name: str, device_id: str) -> bool:
    """Tell whether a GPU is held under an ID that does not tell which."""
    return resource.is_gpu(resource_name) and _DEVICE_ID.fullmatch(device_id) is None


def _allocatable(evidence: KubeletEvidence) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for resource_name, device_ids in evidence.allocatable.items():
        for device_id in device_ids if resource_name.startswith(resource.DOMAIN) else ():
            found[device_of(device_id)][device_id] = resource_name
    return dict(found)


def _confirmed(
    evidence: KubeletEvidence, observation: Observation, before: frozenset[tuple[str, float]]
) -> frozenset[tuple[str, float]]:
    """Return the open promises whose device the kubelet has been seen to have given away."""
    known = {one.device_id for one in evidence.holdings}
    known.update(one.device_id for one in evidence.remembered)
    return frozenset(
        promise
        for promise in observation.serving.promised.items()
        if promise[0] in known or promise in before
    )


def _settled(
    observation: Observation, confirmed: frozenset[tuple[str, float]]
) -> Iterator[tuple[str, float]]:
    """Yield the promises of which the kubelet knows the outcome by now."""
    for promise in observation.serving.promised.items():
        age = observation.at - promise[1]
        if age >= (_SETTLED_SECONDS if promise in confirmed else _FORGOTTEN_SECONDS):
            yield promise


def _processes(observation: Observation) -> Mapping[tuple[str, int | None], tuple[str, ...]]:
    found: dict[tuple[str, int | None], tuple[str, ...]] = {}
    for uuid, processes in observation.processes.items():
        for instance_id in {process.instance_id for process in processes}:
            on_it = [process for process in processes if process.instance_id == instance_id]
            found[uuid, instance_id] = tuple(_names(on_it, observation.owners))
    return found


def _names(processes: Iterable[DriverProcess], owners: Mapping[int, Process]) -> Iterator[str]:
    for process in processes:
        owner = owners.get(process.process_id)
        name = f" ({owner.name})" if owner is not None else ""
        yield f"process {process.process_id}{name}"
