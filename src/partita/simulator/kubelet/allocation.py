"""Giving devices to the containers of a pod: whom to ask, what to pick, when to refuse.

Follows ``Allocate`` and ``devicesToAllocate`` of ``pkg/kubelet/cm/devicemanager/manager.go``
(Kubernetes 1.37); the texts of refusals are the kubelet's, for they reach the pod's status.
"""

from collections.abc import Callable, Generator, Iterable
from random import Random

from partita.simulator.kubelet.admission import (
    AdmissionRefusedError,
    Allocate,
    Answer,
    Conversation,
    KubeletCrashedError,
    OutOfResourceError,
    PluginRefusedError,
    Prefer,
    Question,
)
from partita.simulator.kubelet.checkpoint import NO_NUMA_NODE, Entry
from partita.simulator.kubelet.ledger import Ledger
from partita.simulator.kubelet.plugins import Plugin, Plugins
from partita.simulator.kubelet.pods import Container, Pod

__all__ = ["Allocation"]

_NOTHING = frozenset[str]()


class Allocation:
    """Gives devices of these plugins, and records it in the ledger.

    ``write`` writes the checkpoint; without a source of randomness the first devices by ID are
    picked.
    """

    def __init__(
        self,
        plugins: Plugins,
        ledger: Ledger,
        write: Callable[[], None],
        random: Random | None,
    ) -> None:
        self._plugins = plugins
        self._ledger = ledger
        self._write = write
        self._random = random

    def converse(self, pod: Pod, running: frozenset[str]) -> Conversation:
        """Give a pod's containers their devices, one after the other, init containers first."""
        reusable: dict[str, set[str]] = {}
        for container in pod.containers:
            yield from self._give(pod, container, reusable, running=container.name in running)
            for resource, entry in self._ledger.of(pod.uid, container.name).items():
                devices = reusable.setdefault(resource, set())
                if container.initial and not container.restartable:
                    devices |= entry.devices
                else:
                    devices -= entry.devices
        if not running or self._ledger.all_pods_known:
            self._count(pod)

    def _count(self, pod: Pod) -> None:
        """Refuse a pod for which the node's numbers do not suffice although devices did."""
        for resource, requested in pod.requests.items():
            healthy = self._plugins.healthy.get(resource)
            taken = self._ledger.taken.get(resource, _NOTHING)
            if healthy is None or not self._holds(pod, resource):
                continue
            used = self._ledger.requested(resource, besides=pod.uid)
            capacity = max(len(healthy), len(taken))
            if used + requested > capacity:
                raise OutOfResourceError(
                    resource, requested=requested, used=used, capacity=capacity
                )

    def _holds(self, pod: Pod, resource: str) -> bool:
        return any(resource in self._ledger.of(pod.uid, one.name) for one in pod.containers)

    def _give(
        self, pod: Pod, container: Container, reusable: dict[str, set[str]], *, running: bool
    ) -> Conversation:
        looked = given = False
        for resource, count in container.requests.items():
            if not (resource in self._plugins.healthy or resource in self._ledger.taken):
                continue  # the real kubelet lets such a pod in, too, without devices
            if not looked:
                self._ledger.let_go()
                looked = True
            if self._is_served(pod, container, resource, running=running):
                continue
            devices = yield from self._pick(resource, count, reusable.get(resource, set()))
            answer = yield from self._ask(resource, devices)
            self._record(pod, container, resource, devices, answer)
            given = True
        if given:
            self._write()

    def _is_served(self, pod: Pod, container: Container, resource: str, *, running: bool) -> bool:
        """Tell whether a container has its devices already; refuse what cannot be given."""
        count = container.requests[resource]
        held = self._ledger.of(pod.uid, container.name).get(resource)
        devices = held.devices if held is not None else _NOTHING
        if held is not None and len(devices) != count:
            raise AdmissionRefusedError(
                f'pod "{pod.uid}" container "{container.name}" changed request for resource '
                f'"{resource}" from {len(devices)} to {count}'
            )
        if running and not self._ledger.all_pods_known:
            return True
        self._refuse_unhealthy(resource, devices)
        return held is not None or count == 0

    def _refuse_unhealthy(self, resource: str, devices: frozenset[str]) -> None:
        healthy = self._plugins.healthy.get(resource)
        if healthy is None:
            raise AdmissionRefusedError(f"cannot allocate unregistered device {resource}")
        if not healthy:
            trouble = "no healthy devices present"
        elif not devices <= healthy:
            trouble = "previously allocated devices are no longer healthy"
        else:
            return
        raise AdmissionRefusedError(f"{trouble}; cannot allocate unhealthy devices {resource}")

    def _pick(
        self, resource: str, count: int, reusable: set[str]
    ) -> Generator[Question, Answer, tuple[str, ...]]:
        picked: dict[str, None] = {}
        if self._take(self._in_order(reusable), resource, count, picked):
            return tuple(picked)
        taken = self._ledger.taken.get(resource, _NOTHING)
        available = self._plugins.healthy.get(resource, _NOTHING) - taken
        missing = count - len(picked)
        if len(available) < missing:
            raise AdmissionRefusedError(
                f"requested number of devices unavailable for {resource}. "
                f"Requested: {missing}, Available: {len(available)}"
            )
        wanted = yield from self._ask_preference(resource, available, tuple(picked), count)
        if not self._take(self._in_order(wanted), resource, count, picked):
            self._take(self._in_order(available), resource, count, picked)
        return tuple(picked)

    def _take(
        self, devices: Iterable[str], resource: str, count: int, picked: dict[str, None]
    ) -> bool:
        """Add devices until there are enough, and tell whether there are."""
        taken = self._ledger.taken.setdefault(resource, set())
        for device in devices:
            if device not in picked:
                taken.add(device)
                picked[device] = None
                if len(picked) == count:
                    return True
        return False

    def _in_order(self, devices: Iterable[str]) -> list[str]:
        ordered = sorted(devices)
        if self._random is not None:
            self._random.shuffle(ordered)
        return ordered

    def _ask_preference(
        self, resource: str, available: frozenset[str], picked: tuple[str, ...], count: int
    ) -> Generator[Question, Answer, frozenset[str]]:
        """Return what the plugin had rather given out, of what is available."""
        plugin = self._plugins.asked.get(resource)
        if plugin is None:
            raise AdmissionRefusedError(
                f"endpoint not found in cache for a registered resource: {resource}"
            )
        if not plugin.prefers:
            return _NOTHING
        failed = "device plugin GetPreferredAllocation rpc failed with err: "
        if plugin.stopped_at is not None:
            raise AdmissionRefusedError(failed + _stopped(plugin))
        question = Prefer(
            resource=resource,
            socket=plugin.socket,
            available=tuple(sorted(available.union(picked))),
            must_include=tuple(sorted(picked)),
            count=count,
        )
        try:
            answer = yield question
        except PluginRefusedError as error:
            raise AdmissionRefusedError(f"{failed}{error}") from error
        assert isinstance(answer, tuple)
        return available.intersection(answer)

    def _ask(self, resource: str, devices: tuple[str, ...]) -> Generator[Question, Answer, bytes]:
        """Return the plugin's answer to Allocate."""
        plugin = self._plugins.asked.get(resource)
        if plugin is None:
            raise self._failed(f"unknown Device Plugin {resource}")
        if plugin.stopped_at is not None:
            raise self._failed(_stopped(plugin))
        try:
            answer = yield Allocate(resource=resource, socket=plugin.socket, devices=devices)
        except PluginRefusedError as error:
            raise self._failed(str(error)) from error
        if answer is None:  # the devices stay taken, in the real kubelet as well
            raise AdmissionRefusedError("no containers return in allocation response ")
        assert isinstance(answer, bytes)
        return answer

    def _failed(self, text: str) -> AdmissionRefusedError:
        self._ledger.count_anew()
        return AdmissionRefusedError(text)

    def _record(
        self,
        pod: Pod,
        container: Container,
        resource: str,
        devices: tuple[str, ...],
        answer: bytes,
    ) -> None:
        listed = self._plugins.devices.get(resource, {})
        by_node: dict[int, tuple[str, ...]] = {}
        for one in devices:
            if (device := listed.get(one)) is None:
                raise KubeletCrashedError(
                    f"{resource} {one} left the list before Allocate of it was recorded"
                )
            for node in device.numa_nodes or (NO_NUMA_NODE,):
                by_node[node] = (*by_node.get(node, ()), one)
        self._ledger.record(
            Entry(
                pod_uid=pod.uid,
                container=container.name,
                resource=resource,
                by_node=by_node,
                answer=answer,
            )
        )


def _stopped(plugin: Plugin) -> str:
    return f"endpoint {plugin.socket} has been stopped"
