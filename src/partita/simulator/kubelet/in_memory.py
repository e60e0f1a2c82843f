"""A node's kubelet and its slice server in one process, without sockets: our ports over the model.

Whoever drives it is the rest of the world: binds pods, ends them, crashes the kubelet. Every step
between a kubelet and a plugin can be taken by hand, so a test can put anything between: a pod is
admitted question by question, and lists can lie unread for as long as wished.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from random import Random

from partita.errors import ImpossibleWorldError, KubeletError
from partita.ports.clock import Clock
from partita.ports.kubelet import Holding, Remembered
from partita.simulator.kubelet.admission import (
    Admission,
    AdmissionRefusedError,
    Answer,
    KubeletCrashedError,
    PluginRefusedError,
    Question,
)
from partita.simulator.kubelet.checkpoint import Checkpoint
from partita.simulator.kubelet.device_manager import DeviceManager
from partita.simulator.kubelet.plugins import Device, Total
from partita.simulator.kubelet.pods import Pod

__all__ = ["InMemoryKubelet"]


class InMemoryKubelet:
    """A ``ports.kubelet.Kubelet``, with the hand on its world. Begins as one that runs.

    Attributes:
        pods: The pods bound to the node that have not ended, by UID: what the API server knows.
        refused: UIDs of pods that were refused, with what their status says.
        process: The device manager, None while the kubelet is down.
        generation: How many times a kubelet was started here; a plugin that registered with an
            earlier one is not connected.
        reads_at_once: Whether lists that plugins send are read when they are sent.
    """

    def __init__(self, clock: Clock, *, random: Random | None = None) -> None:
        self.pods: dict[str, Pod] = {}
        self.refused: dict[str, str] = {}
        self.process: DeviceManager | None = None
        self.generation = 0
        self.reads_at_once = True
        self._clock = clock
        self._random = random
        self._checkpoint = Checkpoint()
        self._knows_pods = False
        self._admitted: set[str] = set()
        self._admission: tuple[Pod, Admission] | None = None
        self._unread: dict[tuple[str, str], deque[tuple[Device, ...] | None]] = {}
        self.start()
        self.learn_of_pods()

    # ---- ports.kubelet.Kubelet ---------------------------------------------------------------

    async def holdings(self) -> Sequence[Holding]:
        """Return the devices that active pods hold."""
        process = self._running()
        return tuple(
            Holding(
                namespace=pod.namespace,
                pod=pod.name,
                container=container.name,
                resource=resource,
                device_id=device,
            )
            for pod in process.list_pods()
            for container in pod.containers
            if container.listed
            for resource, entry in process.held(pod.uid, container.name).items()
            for device in sorted(entry.devices)
        )

    async def held_by(self, namespace: str, pod: str) -> frozenset[str]:
        """Return the device IDs that one pod holds now; empty when there is no such pod."""
        process = self._running()
        return frozenset(
            device
            for one in self.pods.values()
            if (one.namespace, one.name) == (namespace, pod) and one.uid in self._admitted
            for container in one.containers
            for entry in process.held(one.uid, container.name).values()
            for device in entry.devices
        )

    async def allocatable(self) -> Mapping[str, frozenset[str]]:
        """Return by resource the device IDs that the kubelet may give to pods, held or not.

        A resource that has none is not named, for the PodResources API does not name it.
        """
        return {
            resource: frozenset(device.device_id for device in devices)
            for resource, devices in self._running().allocatable().items()
            if devices
        }

    async def remembered(self) -> Sequence[Remembered]:
        """Return the checkpoint, which is a file: it is there while the kubelet is down."""
        return tuple(
            Remembered(
                pod_uid=entry.pod_uid,
                container=entry.container,
                resource=entry.resource,
                device_id=device,
            )
            for entry in self.checkpoint.entries
            for device in sorted(entry.devices)
        )

    # ---- the kubelet's life --------------------------------------------------------------------

    @property
    def checkpoint(self) -> Checkpoint:
        """What was last written to the disk."""
        return self.process.checkpoint if self.process is not None else self._checkpoint

    def stop(self) -> None:
        """End the kubelet as by a crash; containers go on, a pod on its way in has to wait."""
        self._checkpoint = self._running().checkpoint
        self.process = self._admission = None
        self._knows_pods = False
        self._unread.clear()

    def start(self) -> None:
        """Start it. Until ``learn_of_pods`` it knows no pods, and plugins have to come back."""
        if self.process is not None:
            raise _impossible("the kubelet runs already", "stop it first")
        self.process = DeviceManager(
            self._checkpoint, now=self._clock.monotonic(), random=self._random
        )
        self.generation += 1

    def learn_of_pods(self) -> None:
        """Let it hear from the API server which pods there are.

        The real one goes on at once with those that are ``waiting``, plugins or not; here it is
        for the caller to ``admit`` them in order.
        """
        process = self._running()
        for pod in self.pods.values():
            process.add_pod(pod)
            if pod.uid in self._admitted:
                running = frozenset(container.name for container in pod.containers)
                process.admit(pod, running=running)
        process.pods_are_known()
        self._knows_pods = True

    def totals(self) -> Mapping[str, Total]:
        """Report the node's status: capacity and allocatable by resource."""
        return self._running().totals(now=self._clock.monotonic())

    # ---- pods ------------------------------------------------------------------------------

    @property
    def question(self) -> Question | None:
        """What a plugin is asked for the pod that is on its way in, None when none is."""
        return self._admission[1].question if self._admission is not None else None

    @property
    def waiting(self) -> tuple[str, ...]:
        """UIDs of bound pods that are neither in nor on their way in."""
        now = self._admission[0].uid if self._admission is not None else None
        return tuple(uid for uid in self.pods if uid not in self._admitted and uid != now)

    def bind(self, pod: Pod) -> bool:
        """Bind a pod to the node and begin to admit it; False when it was refused at once.

        It is in when no ``question`` is left. A kubelet that is down, or does not know its pods
        yet, takes it later, by ``admit``.
        """
        self.pods[pod.uid] = pod
        return not self._knows_pods or self.admit(pod.uid)

    def admit(self, uid: str) -> bool:
        """Begin to admit a pod that was bound while the kubelet was down, or when it crashed."""
        pod, process = self.pods[uid], self._running()
        process.add_pod(pod)
        try:
            admission = process.admit(pod)
        except AdmissionRefusedError as error:
            self._refuse(pod, error)
            return False
        self._proceed(pod, admission)
        return True

    def answer(self, answer: Answer | PluginRefusedError) -> bool:
        """Hand the plugin's answer to the present question over; False when the pod is refused.

        Raises:
            KubeletCrashedError: When the kubelet is down from now on, and the pod not in.
        """
        if self._admission is None:
            raise _impossible("no plugin is asked anything", "bind a pod first")
        pod, admission = self._admission
        try:
            if isinstance(answer, PluginRefusedError):
                admission.refuse(str(answer))
            else:
                admission.answer(answer)
        except AdmissionRefusedError as error:
            self._refuse(pod, error)
            return False
        except KubeletCrashedError:
            self.stop()
            raise
        self._proceed(pod, admission)
        return True

    def end(self, uid: str) -> None:
        """Let a pod end by itself or be deleted."""
        if self._admission is not None and self._admission[0].uid == uid:
            raise _impossible(f"a pod on its way in cannot end: {uid}", "answer for it first")
        del self.pods[uid]
        self._admitted.discard(uid)
        if self.process is not None:
            self.process.end_pod(uid)

    def _proceed(self, pod: Pod, admission: Admission) -> None:
        if admission.question is not None:
            self._admission = (pod, admission)
        else:
            self._admission = None
            self._admitted.add(pod.uid)

    def _refuse(self, pod: Pod, error: AdmissionRefusedError) -> None:
        self._admission = None
        self.refused[pod.uid] = error.message
        self.end(pod.uid)

    # ---- plugins ---------------------------------------------------------------------------

    def connect(self, resource: str, socket: str, *, prefers: bool = False) -> None:
        """Register a plugin.

        Raises:
            KubeletError: When the kubelet is down.
            RegistrationRefusedError: When it refuses.
        """
        self._running().connect(resource, socket, prefers=prefers)
        self._unread[resource, socket] = deque()

    def send(self, resource: str, socket: str, devices: tuple[Device, ...] | None) -> None:
        """Send a list on the stream of a connected plugin; None ends the stream."""
        self._unread[resource, socket].append(devices)
        if self.reads_at_once:
            self.read()

    def unread(self) -> bool:
        """Tell whether the kubelet has something to read."""
        return any(self._unread.values())

    def read(self, *, at_most: int | None = None) -> None:
        """Let the kubelet read what was sent to it, or only so many of the lists."""
        left = at_most
        for (resource, socket), lists in list(self._unread.items()):
            while lists and left != 0:
                self._read_one(resource, socket, lists.popleft())
                left = left - 1 if left is not None else None

    def _read_one(self, resource: str, socket: str, devices: tuple[Device, ...] | None) -> None:
        process = self._running()
        if devices is not None:
            process.take_list(resource, devices)
            return
        process.disconnect(resource, socket, now=self._clock.monotonic())
        self._unread.pop((resource, socket), None)

    def _running(self) -> DeviceManager:
        if self.process is None:
            raise KubeletError(
                message="the kubelet does not answer: it is down",
                hint="it comes back by itself; ask again",
            )
        return self.process


def _impossible(message: str, hint: str) -> ImpossibleWorldError:
    return ImpossibleWorldError(message=message, hint=hint)
