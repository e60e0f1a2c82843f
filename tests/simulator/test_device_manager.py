"""The device manager alone: what it gives, what it forgets, and where it falls."""

import json
from random import Random

import pytest

from partita.errors import ImpossibleWorldError
from partita.simulator.kubelet.admission import (
    Admission,
    AdmissionRefusedError,
    Allocate,
    KubeletCrashedError,
    OutOfResourceError,
    Prefer,
)
from partita.simulator.kubelet.checkpoint import Checkpoint
from partita.simulator.kubelet.device_manager import DeviceManager
from partita.simulator.kubelet.plugins import (
    GRACE_SECONDS,
    Device,
    RegistrationRefusedError,
    Total,
)
from partita.simulator.kubelet.pods import Container, Pod

RESOURCE = "nvidia.com/mig-1g.5gb"


def _pod(name: str, *counts: int, initial: int = 0, sidecar: int = 0) -> Pod:
    """Return a pod; each count is a container that asks for so many devices."""
    first = [
        Container(
            name=f"first-{number}",
            requests={RESOURCE: count},
            initial=True,
            restartable=number == 1,
        )
        for number, count in enumerate((initial, sidecar))
        if count
    ]
    others = [
        Container(name=f"main-{number}", requests={RESOURCE: count})
        for number, count in enumerate(counts)
    ]
    return Pod(uid=f"uid-{name}", name=name, containers=(*first, *others))


def _devices(*names: str, ill: str = "") -> tuple[Device, ...]:
    return tuple(Device(device_id=name, healthy=name not in ill) for name in names)


def _started(*names: str, ill: str = "", prefers: bool = False) -> DeviceManager:
    manager = DeviceManager()
    manager.pods_are_known()
    manager.connect(RESOURCE, "one.sock", prefers=prefers)
    manager.take_list(RESOURCE, _devices(*names, ill=ill))
    return manager


def _begin(manager: DeviceManager, pod: Pod) -> Admission:
    manager.add_pod(pod)
    return manager.admit(pod)


def _give(manager: DeviceManager, pod: Pod) -> list[tuple[str, ...]]:
    """Admit a pod, and return what its plugin was asked to allocate."""
    asked = []
    admission = _begin(manager, pod)
    while (question := admission.question) is not None:
        assert isinstance(question, Allocate)
        asked.append(question.devices)
        admission.answer(b"")
    return asked


def _remembered(manager: DeviceManager) -> dict[str, frozenset[str]]:
    return {entry.pod_uid: entry.devices for entry in manager.checkpoint.entries}


def test_a_device_is_given_once() -> None:
    """The second pod gets another one, the third is refused in the kubelet's words."""
    manager = _started("a", "b")

    assert _give(manager, _pod("one", 1)) == [("a",)]
    assert _give(manager, _pod("two", 1)) == [("b",)]
    with pytest.raises(AdmissionRefusedError) as error:
        _begin(manager, _pod("three", 1))

    assert error.value.message == (
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
        f"{RESOURCE}. Requested: 1, Available: 0, which is unexpected"
    )


def test_nothing_healthy_is_another_refusal() -> None:
    """The kubelet says so before it counts."""
    manager = _started("a", ill="a")

    with pytest.raises(AdmissionRefusedError, match="no healthy devices present; cannot allocate"):
        _begin(manager, _pod("one", 1))


def test_a_resource_that_nobody_ever_served_is_passed_over() -> None:
    """Such a pod is let in without devices."""
    manager = DeviceManager()
    manager.pods_are_known()

    assert _give(manager, _pod("one", 1)) == []


def test_an_init_container_leaves_its_devices() -> None:
    """A sidecar takes them over and keeps them: it runs on beside the others."""
    manager = _started("a", "b", "c")

    assert _give(manager, _pod("one", 1, initial=1, sidecar=1)) == [("a",), ("a",), ("b",)]
    assert _give(manager, _pod("two", 1, initial=1)) == [("c",), ("c",)]


def test_a_pod_that_ends_is_let_go_at_the_next_look() -> None:
    """The next admission and the next list of pods are such looks, and nothing else is."""
    manager = _started("a")
    pod = _pod("one", 1)
    _give(manager, pod)

    manager.end_pod(pod.uid)
    manager.take_list(RESOURCE, _devices("a"))
    manager.totals()
    manager.allocatable()
    assert _remembered(manager) == {pod.uid: {"a"}}

    assert manager.list_pods() == ()
    assert _remembered(manager) == {pod.uid: {"a"}}
    manager.take_list(RESOURCE, _devices("a"))
    assert _remembered(manager) == {}
    assert _give(manager, _pod("two", 1)) == [("a",)]


def test_a_container_of_two_resources_is_written_when_both_are_given() -> None:
    """A refusal of the second leaves the first given in memory only, until it is let go."""
    manager = _started("a")
    other = "nvidia.com/gpu"
    manager.connect(other, "other.sock")
    manager.take_list(other, ())
    container = Container(name="main", requests={RESOURCE: 1, other: 1})
    pod = Pod(uid="uid", name="one", containers=(container,))

    admission = _begin(manager, pod)
    with pytest.raises(AdmissionRefusedError):
        admission.answer(b"")

    assert manager.held("uid", "main").keys() == {RESOURCE}
    assert _remembered(manager) == {}
    manager.end_pod("uid")
    assert _give(manager, _pod("two", 1)) == [("a",)]


def test_a_refusal_of_the_plugin_frees_what_was_picked() -> None:
    """The pod fails with its words, the device goes to the next."""
    manager = _started("a")
    pod = _pod("one", 1)

    with pytest.raises(AdmissionRefusedError, match="not now"):
        _begin(manager, pod).refuse("not now")
    manager.end_pod(pod.uid)

    assert _give(manager, _pod("two", 1)) == [("a",)]


def test_an_empty_response_keeps_what_was_picked() -> None:
    """The device is neither held nor free until the kubelet lets go of some pod."""
    manager = _started("a", "b")
    pod = _pod("one", 1)
    with pytest.raises(AdmissionRefusedError, match="no containers return"):
        _begin(manager, pod).answer(None)
    manager.end_pod(pod.uid)

    assert _give(manager, _pod("two", 1)) == [("b",)]
    with pytest.raises(AdmissionRefusedError, match="Available: 0"):
        _begin(manager, _pod("three", 1))


def test_a_preference_is_followed_as_far_as_it_goes() -> None:
    """What is not available of it is passed over, what lacks is picked as always."""
    manager = _started("a", "b", "c", prefers=True)

    admission = _begin(manager, _pod("one", 2))
    assert admission.question == Prefer(
        resource=RESOURCE,
        socket="one.sock",
        available=("a", "b", "c"),
        must_include=(),
        count=2,
    )
    admission.answer(("c", "x"))

    assert isinstance(admission.question, Allocate)
    assert admission.question.devices == ("c", "a")


def test_any_device_is_picked_with_randomness() -> None:
    """The real kubelet makes no promise; the same seed gives the same history."""

    def picks(seed: int) -> list[tuple[str, ...]]:
        manager = DeviceManager(random=Random(seed))  # noqa: S311 - no secret
        manager.pods_are_known()
        manager.connect(RESOURCE, "one.sock")
        manager.take_list(RESOURCE, _devices(*"abcdefgh"))
        return [picked for name in "123" for picked in _give(manager, _pod(name, 1))]

    assert picks(1) == picks(1)
    assert len({tuple(picks(seed)) for seed in range(10)}) > 1


@pytest.mark.parametrize("prefers", [False, True])
def test_a_device_that_leaves_the_list_during_allocate_ends_the_kubelet(*, prefers: bool) -> None:
    """The same holds for one that leaves while the plugin is asked for its preference."""
    manager = _started("a", "b", prefers=prefers)
    admission = _begin(manager, _pod("one", 1))
    manager.take_list(RESOURCE, _devices("b"))
    if prefers:
        admission.answer(("a",))

    with pytest.raises(KubeletCrashedError):
        admission.answer(b"")

    assert _remembered(manager) == {}


def test_a_device_that_falls_ill_during_allocate_is_given() -> None:
    """Withdrawing a device as unhealthy first is what keeps the kubelet alive."""
    manager = _started("a")
    admission = _begin(manager, _pod("one", 1))

    manager.take_list(RESOURCE, _devices("a", ill="a"))
    admission.answer(b"")

    assert _remembered(manager) == {"uid-one": {"a"}}


def test_a_list_of_pods_during_allocate_can_give_a_device_twice() -> None:
    """Letting go of an ended pod forgets what is on its way; seen on a real kubelet as well."""
    manager = _started("a", "b")
    two = _pod("two", 1)
    admission = _begin_while_another_ends(manager, two)
    admission.answer(b"")

    manager.take_list(RESOURCE, _devices("a", "b", "c", ill="a"))
    assert _give(manager, _pod("three", 1)) == [("b",)]
    assert manager.held(two.uid, "main-0")[RESOURCE].devices == {"b"}


def test_a_pod_that_got_devices_is_refused_by_numbers() -> None:
    """That saves a device from a second holder when the node has no more; it was written down."""
    manager = _started("a", "b")
    _begin_while_another_ends(manager, _pod("two", 1)).answer(b"")

    with pytest.raises(OutOfResourceError) as error:
        _give(manager, _pod("three", 2))

    assert error.value.reason == f"OutOf{RESOURCE}"
    assert error.value.message == (
        f"Pod was rejected: Node didn't have enough resource: {RESOURCE}, "
        "requested: 2, used: 1, capacity: 2"
    )
    assert _remembered(manager) == {"uid-two": {"b"}, "uid-three": {"a", "b"}}


def _begin_while_another_ends(manager: DeviceManager, pod: Pod) -> Admission:
    """Ask Allocate for a pod; until it is answered another ends, and a monitor lists pods."""
    other = _pod("one", 1)
    _give(manager, other)
    admission = _begin(manager, pod)
    manager.end_pod(other.uid)
    manager.list_pods()
    return admission


def test_one_pod_is_admitted_at_a_time() -> None:
    """The kubelet's loop waits for the plugin; there is no world with two at once."""
    manager = _started("a", "b")
    _begin(manager, _pod("one", 1))

    with pytest.raises(ImpossibleWorldError):
        _begin(manager, _pod("two", 1))


def test_a_restart_knows_holders_and_no_pods() -> None:
    """Nothing is let go before all pods are known; then only what none of them holds."""
    manager = _started("a", "b")
    one, two = _pod("one", 1), _pod("two", 1)
    _give(manager, one)
    _give(manager, two)

    again = DeviceManager(manager.checkpoint)
    assert again.list_pods() == ()
    assert again.totals() == {RESOURCE: Total(capacity=0, allocatable=0)}
    again.add_pod(one)
    assert again.admit(one, running=frozenset({"main-0"})).question is None
    assert [pod.name for pod in again.list_pods()] == ["one"]

    again.connect(RESOURCE, "two.sock")
    again.take_list(RESOURCE, _devices("a", "b"))
    assert _remembered(again) == {one.uid: {"a"}, two.uid: {"b"}}
    again.pods_are_known()
    assert _give(again, _pod("three", 1)) == [("b",)]
    assert _remembered(again) == {one.uid: {"a"}, "uid-three": {"b"}}


def test_a_pod_that_does_not_run_needs_its_plugin_after_a_restart() -> None:
    """As after a reboot of the node: it fails when the plugin is not back yet."""
    manager = _started("a")
    pod = _pod("one", 1)
    _give(manager, pod)

    again = DeviceManager(manager.checkpoint)
    with pytest.raises(AdmissionRefusedError, match="no healthy devices present"):
        _begin(again, pod)


def test_the_last_plugin_takes_the_health_of_its_devices_along() -> None:
    """They are still counted for five minutes; then the resource is gone, and that is written."""
    manager = _started("a", "b")
    manager.connect(RESOURCE, "two.sock")

    manager.disconnect(RESOURCE, "one.sock", now=1)
    assert manager.totals(now=1) == {RESOURCE: Total(capacity=2, allocatable=2)}
    assert manager.asked(RESOURCE) == "two.sock"
    manager.disconnect(RESOURCE, "two.sock", now=2)
    assert manager.totals(now=2 + GRACE_SECONDS) == {RESOURCE: Total(capacity=2, allocatable=0)}
    assert RESOURCE in manager.checkpoint.registered
    assert manager.totals(now=2.1 + GRACE_SECONDS) == {}
    assert RESOURCE not in manager.checkpoint.registered


def test_a_socket_that_registers_twice_is_never_missed() -> None:
    """The refusal makes the kubelet blind for the end of the stream, until it restarts."""
    manager = _started("a")
    with pytest.raises(RegistrationRefusedError, match="already connected"):
        manager.connect(RESOURCE, "one.sock")

    manager.disconnect(RESOURCE, "one.sock")

    assert manager.totals() == {RESOURCE: Total(capacity=1, allocatable=1)}
    with pytest.raises(RegistrationRefusedError, match="already connected"):
        manager.connect(RESOURCE, "one.sock")


def test_the_document_is_the_kubelets() -> None:
    """No entries are null, NUMA nodes are text, a device of two nodes is with each."""
    manager = _started()
    assert manager.checkpoint.document()["Data"] == {
        "PodDeviceEntries": None,
        "RegisteredDevices": {RESOURCE: []},
    }
    manager.take_list(RESOURCE, [Device(device_id="a", numa_nodes=(0, 1)), Device(device_id="b")])
    _begin(manager, _pod("one", 2)).answer(b"answer")

    document = json.loads(json.dumps(manager.checkpoint.document()))
    assert document["Data"] == {
        "PodDeviceEntries": [
            {
                "PodUID": "uid-one",
                "ContainerName": "main-0",
                "ResourceName": RESOURCE,
                "DeviceIDs": {"0": ["a"], "1": ["a"], "-1": ["b"]},
                "AllocResp": "YW5zd2Vy",
            }
        ],
        "RegisteredDevices": {RESOURCE: ["a", "b"]},
    }
    assert Checkpoint.parse(document) == manager.checkpoint
