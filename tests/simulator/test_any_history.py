"""Whatever happens to a device manager, it keeps its books.

The books are checked against what the test itself saw given out and end.
"""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from partita.simulator.kubelet.admission import (
    Admission,
    AdmissionRefusedError,
    Allocate,
    KubeletCrashedError,
    PluginRefusedError,
)
from partita.simulator.kubelet.device_manager import DeviceManager
from partita.simulator.kubelet.plugins import Device
from partita.simulator.kubelet.pods import Container, Pod

RESOURCE = "nvidia.com/gpu"
NAMES = "abcdef"
Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["list", "bind", "answer", "answer", "refuse", "end", "look", "restart", "leave"]
        ),
        st.integers(0, 63),
    ),
    max_size=40,
)


class _History:
    """A device manager and what happened to it, as seen from outside."""

    def __init__(self) -> None:
        self.manager = DeviceManager()
        self.manager.pods_are_known()
        self.active: dict[str, Pod] = {}
        self.given: dict[str, frozenset[str]] = {}
        self.arriving: tuple[Pod, Admission] | None = None
        self.count = 0
        self.blurred = False
        self.crashes = 0
        self._connect()

    def apply(self, step: Step) -> None:
        kind, number = step
        steps: dict[str, Callable[[int], None]] = {
            "list": self._list,
            "bind": self._bind,
            "answer": self._answer,
            "refuse": self._refuse,
            "end": self._end,
            "look": self._look,
            "restart": self._restart,
            "leave": self._leave,
        }
        steps[kind](number)

    def _connect(self) -> None:
        self.count += 1
        self.socket = f"{self.count}.sock"
        self.manager.connect(RESOURCE, self.socket)

    def _list(self, number: int) -> None:
        """Send a list of some devices, some of them ill."""
        names = [name for bit, name in enumerate(NAMES) if number >> bit & 1]
        listed = [Device(device_id=name, healthy=name != NAMES[number % 7 % 6]) for name in names]
        self.manager.take_list(RESOURCE, listed)
        remembered = {entry.pod_uid: entry.devices for entry in self.manager.checkpoint.entries}
        assert {uid: remembered.get(uid) for uid in self.given} == self.given

    def _bind(self, number: int) -> None:
        if self.arriving is not None:
            return
        self.count += 1
        container = Container(name="main", requests={RESOURCE: number % 3 + 1})
        pod = Pod(uid=str(self.count), name=str(self.count), containers=(container,))
        self.active[pod.uid] = pod
        self.manager.add_pod(pod)
        self._go_on(pod, lambda: self.manager.admit(pod))

    def _answer(self, _: int) -> None:
        if self.arriving is not None:
            pod, admission = self.arriving
            question = admission.question
            assert isinstance(question, Allocate)
            if self._go_on(pod, lambda: _tell(admission)):
                self.given[pod.uid] = frozenset(question.devices)

    def _refuse(self, _: int) -> None:
        if self.arriving is not None:
            pod, admission = self.arriving
            self._go_on(pod, lambda: _tell(admission, refuse=True))

    def _go_on(self, pod: Pod, step: Callable[[], Admission]) -> bool:
        self.arriving = None
        try:
            admission = step()
        except AdmissionRefusedError:
            self._forget(pod.uid)
            return False
        except KubeletCrashedError:
            self.crashes += 1
            self._forget(pod.uid)
            self._restart(0)
            return False
        if admission.question is not None:
            self.arriving = (pod, admission)
        return True

    def _end(self, number: int) -> None:
        """End a pod, though not the one on its way in."""
        running = [uid for uid in self.active if uid in self.given]
        if running:
            self._forget(running[number % len(running)])
            self.blurred = self.blurred or self.arriving is not None

    def _forget(self, uid: str) -> None:
        self.active.pop(uid)
        self.given.pop(uid, None)
        self.manager.end_pod(uid)

    def _look(self, _: int) -> None:
        listed = {pod.uid for pod in self.manager.list_pods()}
        assert listed == self.active.keys()

    def _leave(self, _: int) -> None:
        self.manager.disconnect(RESOURCE, self.socket)
        self._connect()

    def _restart(self, _: int) -> None:
        """Restart the kubelet; a pod on its way in is bound no more, the others run."""
        if self.arriving is not None:
            self._forget(self.arriving[0].uid)
            self.arriving = None
        self.manager = DeviceManager(self.manager.checkpoint)
        for pod in self.active.values():
            self.manager.add_pod(pod)
            self.manager.admit(pod, running=frozenset({"main"}))
        self.manager.pods_are_known()
        self._connect()

    def check(self) -> None:
        for uid, devices in self.given.items():
            held = self.manager.held(uid, "main")
            assert held[RESOURCE].devices == devices
        if not self.blurred:  # else the fault of the real one may show
            every = [device for devices in self.given.values() for device in devices]
            assert len(every) == len(set(every))


def _tell(admission: Admission, *, refuse: bool = False) -> Admission:
    if refuse:
        admission.refuse(str(PluginRefusedError("no")))
    else:
        admission.answer(b"")
    return admission


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_active_pods_keep_what_they_were_given_and_share_nothing(steps: list[Step]) -> None:
    """Over lists, restarts, refusals and crashes; but see a list of pods during Allocate."""
    history = _History()
    for step in steps:
        history.apply(step)
        history.check()


@settings(max_examples=50, deadline=None)
@given(STEPS)
def test_the_same_history_has_the_same_end(steps: list[Step]) -> None:
    """Nothing depends on chance or on the clock."""
    ends = []
    for _ in range(2):
        history = _History()
        for step in steps:
            history.apply(step)
        ends.append((history.manager.checkpoint, history.given, history.manager.totals()))

    assert ends[0] == ends[1]
