"""A simulated kubelet on the real protocols: sockets in one folder, and nothing outside of it.

Plugins register, or wait in the plugin registry; monitors ask the PodResources API and read the
checkpoint; pods are objects as in the Kubernetes API, and their containers are values that can be
looked into. What it does otherwise than a real one, on purpose:

- Nothing runs: a container that has started stays until ``end``, an init container ends at once.
- A container that cannot be started is not tried again, and none ever restarts.
- Every pod is of the QoS class ``BestEffort``.
- Every status of a pod is up to date at once; the node's status is so when it is reported.
- See also ``device_manager`` and, for the plugin registry, ``registration``.
"""

import asyncio
import copy
import uuid
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from partita.errors import ImpossibleWorldError
from partita.simulator.kubelet.admission import AdmissionRefusedError, KubeletCrashedError
from partita.simulator.kubelet.containers import RunningContainer, StartFailedError, make
from partita.simulator.kubelet.folders import Folders
from partita.simulator.kubelet.plugins import Total
from partita.simulator.kubelet.pod_objects import Object, PodOfNode, parse
from partita.simulator.kubelet.pods import Pod
from partita.simulator.kubelet.process import KubeletProcess, Settings

__all__ = ["SimulatedKubelet"]

_Step = Callable[[], Awaitable[None]]


class SimulatedKubelet:
    """A node's kubelet; it, its plugins and whoever waits for it share one event loop or not.

    All methods are for the thread of the event loop that it was started in.

    Attributes:
        status: Resource name → what the node object says of it; brought up to date by ``report``.
            A name that was there once stays, with 0.
    """

    def __init__(self, settings: Settings, *, report_seconds: float | None = None) -> None:
        """Make a kubelet that does not run.

        Args:
            settings: What its processes have in common.
            report_seconds: How often it reports the node's status, None for on demand and at its
                start. The real default is 10.
        """
        self.status: Mapping[str, Total] = {}
        self._settings = settings
        self._report_seconds = report_seconds
        self._pods: dict[tuple[str, str], PodOfNode] = {}
        self._process: KubeletProcess | None = None
        self._knows_pods = False
        self._steps: asyncio.Queue[_Step] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._change = asyncio.Event()
        self._trouble: BaseException | None = None

    @property
    def folders(self) -> Folders:
        """Where plugins and monitors meet it."""
        return self._settings.folders

    @property
    def running(self) -> bool:
        """Whether there is a process; False after a crash."""
        return self._process is not None

    async def start(self, *, pods_known: bool = True) -> None:
        """Start it, and return when plugins can register.

        Args:
            pods_known: Whether it hears of its pods at once, or only by ``learn_of_pods``.
        """
        if self._process is not None:
            raise _impossible("the kubelet runs already", "stop it first")
        self._process = KubeletProcess(self._settings, find=self._find, changed=self._notify)
        self._steps = asyncio.Queue()
        await self._process.start()
        self._spawn(self._work())
        if self._report_seconds is not None:
            self._spawn(self._report_for_ever(self._report_seconds))
        self.report()
        if pods_known:
            self.learn_of_pods()

    def learn_of_pods(self) -> None:
        """Let it hear from the API server which pods there are, which it admits in order."""
        process = self._running()
        self._knows_pods = True
        for pod in self._pods.values():
            self._steps.put_nowait(partial(self._take, pod))
        self._steps.put_nowait(partial(_pods_are_known, process))

    async def stop(self) -> None:
        """End it as by a crash; containers go on. It may have ended already."""
        process, self._process = self._process, None
        self._knows_pods = False
        others = self._tasks - {asyncio.current_task()}
        self._tasks.clear()
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)
        if process is not None:
            await process.stop()
        self._notify()

    def report(self) -> Mapping[str, Total]:
        """Report the node's status, and return it; that of before when the kubelet is down."""
        if self._process is not None:
            totals = self._process.devices.totals(now=self._settings.clock.monotonic())
            gone = dict.fromkeys(self.status, Total(capacity=0, allocatable=0))
            self.status = gone | dict(totals)
            self._process.write()
        return self.status

    def run(self, pod: Object) -> None:
        """Bind a new pod to this node."""
        made = copy.deepcopy(pod)
        made["metadata"] = {"namespace": "default", "uid": str(uuid.uuid4())} | made["metadata"]
        made["status"] = {"phase": "Pending"}
        parsed = parse(made)
        key = (parsed.namespace, parsed.name)
        if key in self._pods:
            raise _impossible(f"there is such a pod already: {parsed.name}", "delete it first")
        self._pods[key] = PodOfNode(object=made, pod=parsed)
        if self._knows_pods:
            self._steps.put_nowait(partial(self._take, self._pods[key]))

    def end(self, name: str, *, phase: str = "Succeeded", namespace: str = "default") -> None:
        """Let a pod end by itself, if it has not yet; it stays in the API until ``delete``."""
        pod = self._pods[namespace, name]
        if not pod.ended:
            pod.end(phase)
        if self._process is not None:
            self._process.devices.end_pod(pod.pod.uid)
        self._notify()

    def delete(self, name: str, *, namespace: str = "default") -> None:
        """Delete a pod, whether it has ended or not."""
        self.end(name, namespace=namespace)
        del self._pods[namespace, name]

    def pod(self, name: str, *, namespace: str = "default") -> Object | None:
        """Return a pod as the API server tells it, None when there is none."""
        pod = self._pods.get((namespace, name))
        return copy.deepcopy(pod.object) if pod is not None else None

    def look_inside(
        self, name: str, container: str, *, namespace: str = "default"
    ) -> RunningContainer | None:
        """Return a container of a pod, None when it does not run."""
        return self._pods[namespace, name].containers.get(container)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds, looking after every change of this kubelet."""
        while not condition():
            if self._trouble is not None:
                raise self._trouble
            await self._change.wait()

    # ---- inside ----------------------------------------------------------------------------

    async def _work(self) -> None:
        """Do one thing after the other, as a kubelet does: an admission holds up the next."""
        try:
            while True:
                step = await self._steps.get()
                await step()
        except KubeletCrashedError:
            await self.stop()

    async def _take(self, pod: PodOfNode) -> None:
        process = self._running()
        if pod.ended:
            return
        try:
            await process.admit(pod.pod, frozenset(pod.containers))
        except AdmissionRefusedError as error:
            pod.refuse(error.reason, error.message)
            process.devices.end_pod(pod.pod.uid)
        else:
            pod.admitted = True
            self._spawn(self._start_containers(process, pod))
        process.save()

    async def _start_containers(self, process: KubeletProcess, pod: PodOfNode) -> None:
        for container, specification in zip(pod.pod.containers, _specifications(pod), strict=True):
            if container.name in pod.containers or pod.ended:
                continue
            try:
                await process.announce(pod.pod, container)
                entries = process.devices.held(pod.pod.uid, container.name).values()
                made = make(
                    specification,
                    [entry.answer for entry in entries],
                    pod_uid=pod.pod.uid,
                    container_id=uuid.uuid4().hex * 2,
                    cdi=self.folders.cdi,
                )
            except StartFailedError as error:
                pod.failures[container.name] = error
            else:
                if container.listed and not pod.ended:
                    pod.containers[container.name] = made
        self._notify()

    async def _report_for_ever(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            self.report()
            self._notify()

    def _notify(self) -> None:
        if self._process is not None:
            for pod in self._pods.values():
                if pod.admitted and not pod.ended:
                    pod.report(self._process.devices)
        self._change.set()
        self._change = asyncio.Event()

    def _find(self, namespace: str, name: str) -> Pod | None:
        pod = self._pods.get((namespace, name)) if self._knows_pods else None
        return pod.pod if pod is not None else None

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._trouble = error  # for whoever waits: nothing will come any more
            self._notify()

    def _running(self) -> KubeletProcess:
        if self._process is None:
            raise _impossible("the kubelet is down", "start it first")
        return self._process


async def _pods_are_known(process: KubeletProcess) -> None:
    process.devices.pods_are_known()


def _specifications(pod: PodOfNode) -> list[Object]:
    specification = pod.object["spec"]
    return [*specification.get("initContainers", ()), *specification["containers"]]


def _impossible(message: str, hint: str) -> ImpossibleWorldError:
    return ImpossibleWorldError(message=message, hint=hint)
