"""The device manager of a kubelet: who was given which device, and what of it is remembered.

It follows the one of Kubernetes 1.37 (``pkg/kubelet/cm/devicemanager``) with its traps, and does
no I/O and reads no clock: the same calls give the same answers. Not safe for use from several
threads. What it does otherwise, or not at all:

- The real one takes any of the devices it could take. This one takes the first by ID, or, given a
  source of randomness, any.
- The topology manager has the policy ``none``, which is its default: NUMA nodes are recorded and
  do not decide.
- The node's numbers, by which a pod is refused after it was given devices, are those of now; the
  real ones are of the last report of the node's status. Pods that run over a restart, and pods
  that were given none, are not refused by them.
- Devices of Dynamic Resource Allocation do not exist.
- Writing the checkpoint never fails.
"""

from collections.abc import Iterable, Mapping
from random import Random

from partita.errors import ImpossibleWorldError
from partita.simulator.kubelet.admission import Admission
from partita.simulator.kubelet.allocation import Allocation
from partita.simulator.kubelet.checkpoint import Checkpoint, Entry
from partita.simulator.kubelet.ledger import Ledger
from partita.simulator.kubelet.plugins import Device, Plugins, Total
from partita.simulator.kubelet.pods import Pod

__all__ = ["DeviceManager"]

_NONE = frozenset[str]()


class DeviceManager:
    """The device manager of one process of a kubelet. After a restart there is another one.

    A kubelet that has just started knows no pods. It is told of them one by one, and in the end
    that these were all (``pods_are_known``); only then does it let go of what others held.

    Attributes:
        checkpoint: What it last wrote; a new device manager begins with that of the one before.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | None = None,
        *,
        now: float = 0.0,
        random: Random | None = None,
    ) -> None:
        """Begin with what the kubelet before it wrote, None on a new node."""
        self.checkpoint = checkpoint if checkpoint is not None else Checkpoint()
        self._plugins = Plugins()
        self._ledger = Ledger()
        self._allocation = Allocation(self._plugins, self._ledger, self._write, random)
        self._admission: Admission | None = None
        for entry in self.checkpoint.entries:
            self._ledger.record(entry)
        self._ledger.count_anew()
        for resource in self.checkpoint.registered:
            self._plugins.remember(resource, now)

    # ---- plugins ---------------------------------------------------------------------------

    def connect(self, resource: str, socket: str, *, prefers: bool = False) -> None:
        """Take a plugin that has registered and was asked for its options.

        Raises:
            RegistrationRefusedError: When that socket is connected already.
        """
        self._plugins.connect(resource, socket, prefers=prefers)

    def disconnect(self, resource: str, socket: str, *, now: float = 0.0) -> None:
        """Let the stream of a plugin end."""
        self._plugins.disconnect(resource, socket, now)

    def take_list(self, resource: str, devices: Iterable[Device]) -> None:
        """Take a list that a plugin sent, and write the checkpoint."""
        self._plugins.take_list(resource, devices)
        self._write()

    def totals(self, *, now: float = 0.0) -> Mapping[str, Total]:
        """Return by resource what the node's status says.

        A resource whose plugin left more than ``GRACE_SECONDS`` ago is dropped by this, and the
        checkpoint written.
        """
        totals, dropped = self._plugins.totals(now)
        if dropped:
            self._write()
        return totals

    def sockets(self, resource: str) -> tuple[str, ...]:
        """Return the sockets of the plugins of a resource whose streams are open, or seem so."""
        return tuple(self._plugins.present.get(resource, ()))

    def asked(self, resource: str) -> str | None:
        """Return the socket of the plugin of a resource that is asked; it may have left."""
        plugin = self._plugins.asked.get(resource)
        return plugin.socket if plugin is not None else None

    # ---- pods ------------------------------------------------------------------------------

    def add_pod(self, pod: Pod) -> None:
        """Hear of an active pod, before it is admitted or on the way back after a restart."""
        self._ledger.pods[pod.uid] = pod

    def end_pod(self, uid: str) -> None:
        """Hear that a pod has ended or was refused. Nothing is let go by that."""
        self._ledger.pods.pop(uid, None)

    def pods_are_known(self) -> None:
        """Hear that the active pods are exactly those told of so far."""
        self._ledger.all_pods_known = True

    def admit(self, pod: Pod, *, running: frozenset[str] = _NONE) -> Admission:
        """Begin to give an active pod its devices. The kubelet admits one pod after the other.

        Args:
            pod: The pod.
            running: Containers of it that the runtime said at the kubelet's start to run. Until
                all pods are known they are not looked at: they have what they need.

        Raises:
            AdmissionRefusedError: When no plugin needs to be asked for it to be refused.
            ImpossibleWorldError: When another admission has not ended.
        """
        if pod.uid not in self._ledger.pods:
            raise _impossible(f"the kubelet has not heard of pod: {pod.uid}", "add it first")
        if self._admission is not None:
            raise _impossible("a kubelet admits one pod at a time", "end the other admission")
        conversation = self._allocation.converse(pod, running)
        admission = Admission(conversation, self._end_admission)
        if admission.question is not None:
            self._admission = admission
        return admission

    def _end_admission(self) -> None:
        self._admission = None

    # ---- what monitors are told --------------------------------------------------------------

    def list_pods(self) -> tuple[Pod, ...]:
        """Return the active pods, and let go of what others held, as each ``List`` does."""
        self._ledger.let_go()
        return tuple(self._ledger.pods.values())

    def held(self, uid: str, container: str) -> Mapping[str, Entry]:
        """Return by resource what a container was given."""
        return self._ledger.of(uid, container)

    def allocatable(self) -> Mapping[str, tuple[Device, ...]]:
        """Return by resource the healthy devices, given out or not (GetAllocatableResources)."""
        return {
            resource: tuple(self._plugins.devices[resource][one] for one in sorted(healthy))
            for resource, healthy in self._plugins.healthy.items()
            if resource in self._plugins.devices
        }

    def is_healthy(self, resource: str, device_id: str) -> bool:
        """Tell what a pod's status says of its device: one that is not listed is healthy."""
        device = self._plugins.devices.get(resource, {}).get(device_id)
        return device is None or device.healthy

    def _write(self) -> None:
        registered = dict(self._plugins.healthy)
        self.checkpoint = Checkpoint(entries=self._ledger.entries(), registered=registered)


def _impossible(message: str, hint: str) -> ImpossibleWorldError:
    return ImpossibleWorldError(message=message, hint=hint)
