"""A device is free only when nothing names it: lists, checkpoint, promises, processes."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agent.examples import GPU, SMALL, a100, holding, look, remembered

from partita.agent import holders
from partita.agent.observation import KubeletEvidence, Observation
from partita.ports.gpu_driver import DriverProcess
from partita.ports.kubelet import Holding
from partita.ports.process_table import Process
from partita.ports.slice_server import ServingState

SLOT = "GPU-0::1"


def _look(
    evidence: KubeletEvidence | None = None,
    *,
    promised: dict[str, float] | None = None,
    at: float = 100.0,
) -> Observation:
    serving = ServingState(promised=promised or {})
    return replace(look(a100(), at=at, kubelet=evidence), serving=serving)


def test_what_the_kubelet_lists_is_held_by_the_pod() -> None:
    """Any slot of a device holds the device."""
    found = holders.of(_look(KubeletEvidence(holdings=(holding(SLOT), holding("GPU-0::2")))), {})

    assert found.of_id(SLOT) == ("lab/train",)
    assert found.holders("GPU-0") == ("lab/train",)
    assert found.ids == {"GPU-0": {SLOT: (GPU, ("lab/train",)), "GPU-0::2": (GPU, ("lab/train",))}}
    assert found.of_id("GPU-0::0") == found.holders("GPU-1") == ()


def test_what_only_the_checkpoint_names_is_held_and_stale() -> None:
    """Its pod may have ended, or the kubelet may not have heard of it yet after its restart."""
    found = holders.of(_look(KubeletEvidence(remembered=(remembered(SLOT),))), {})

    assert found.of_id(SLOT) == ("pod with UID uid-1",)
    assert found.stale == {SLOT}


def test_what_list_and_checkpoint_name_is_held_by_the_pod_of_the_list() -> None:
    """It is the same pod, under its name; nothing about it is stale."""
    evidence = KubeletEvidence(holdings=(holding(SLOT),), remembered=(remembered(SLOT),))
    found = holders.of(_look(evidence), {})

    assert found.of_id(SLOT) == ("lab/train",)
    assert found.stale == frozenset()


def test_a_promise_is_held_under_the_name_it_was_offered_as() -> None:
    """The kubelet notes it a moment later."""
    found = holders.of(_look(promised={SLOT: 99.9}), {SLOT: GPU})

    assert found.ids == {"GPU-0": {SLOT: (GPU, ("a pod that is being admitted",))}}
    assert found.settled == {}


def test_a_promise_in_the_checkpoint_is_not_stale() -> None:
    """The pod is on its way in, so that no list has to name it."""
    evidence = KubeletEvidence(remembered=(remembered(SLOT),))
    found = holders.of(_look(evidence, promised={SLOT: 99.9}), {SLOT: GPU})

    assert found.stale == frozenset()
    assert found.of_id(SLOT) == ("pod with UID uid-1", "a pod that is being admitted")


@pytest.mark.parametrize(("age", "settled"), [(0.9, False), (1.0, True)])
def test_a_promise_that_the_kubelet_knows_of_counts_a_second(age: float, *, settled: bool) -> None:
    """From then on what the kubelet says is enough."""
    evidence = KubeletEvidence(holdings=(holding(SLOT),))
    found = holders.of(_look(evidence, promised={SLOT: 100.0}, at=100.0 + age), {})

    assert found.settled == ({SLOT: 100.0} if settled else {})


@pytest.mark.parametrize(("age", "settled"), [(59.9, False), (60.0, True)])
def test_a_promise_that_the_kubelet_never_knew_of_counts_a_minute(
    age: float, *, settled: bool
) -> None:
    """Then its pod was not admitted after all."""
    found = holders.of(_look(promised={SLOT: 100.0}, at=100.0 + age), {SLOT: GPU})

    assert found.settled == ({SLOT: 100.0} if settled else {})
    assert found.of_id(SLOT) == ("a pod that is being admitted",)


def test_a_promise_that_the_kubelet_knew_of_once_is_settled_after_its_pod_has_ended() -> None:
    """But a new promise of the same device is another one."""
    known = holders.of(
        _look(KubeletEvidence(holdings=(holding(SLOT),)), promised={SLOT: 100.0}), {}
    ).confirmed

    ended = holders.of(_look(promised={SLOT: 100.0}, at=101.0), {SLOT: GPU}, known)
    anew = holders.of(_look(promised={SLOT: 100.5}, at=101.5), {SLOT: GPU}, known)

    assert ended.settled == {SLOT: 100.0}
    assert anew.settled == {}
    assert anew.confirmed == frozenset()


def test_of_a_silent_kubelet_nothing_is_known_but_the_processes() -> None:
    """It says why; promises stay open."""
    seen = replace(
        _look(promised={SLOT: 0.0}), kubelet=None, kubelet_problem="no answer within 3 s"
    )
    found = holders.of(seen, {SLOT: GPU}, frozenset({(SLOT, 0.0)}))

    assert found.blind == "no answer within 3 s"
    assert found.settled == {}
    assert found.confirmed == {(SLOT, 0.0)}


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        (
            KubeletEvidence(holdings=(holding("nvidia0"),)),
            "lab/train holds a device of another plugin: nvidia0",
        ),
        (
            KubeletEvidence(holdings=(holding("0-1", resource="nvidia.com/mig-1g.5gb.shared"),)),
            "lab/train holds a device of another plugin: 0-1",
        ),
        (
            KubeletEvidence(remembered=(remembered("nvidia0"),)),
            "pod uid-1 holds a device of another plugin: nvidia0",
        ),
        (
            KubeletEvidence(
                holdings=(
                    Holding(
                        namespace="lab",
                        pod="train",
                        container="main",
                        resource="gpu.nvidia.com",
                        device_id="node-1/gpu-0",
                        claimed=True,
                    ),
                )
            ),
            "lab/train holds a GPU through a claim: node-1/gpu-0",
        ),
    ],
)
def test_a_gpu_held_under_an_unknown_id_makes_blind(evidence: KubeletEvidence, why: str) -> None:
    """Any GPU may be the one that is held."""
    assert holders.of(_look(evidence), {}).blind == why


@pytest.mark.parametrize("resource", ["example.com/nic", "intel.com/fpga", "nvidia.com/sriov-rdma"])
def test_devices_that_are_no_gpus_hold_none(resource: str) -> None:
    """Whatever their IDs are."""
    found = holders.of(
        _look(KubeletEvidence(holdings=(holding("0000:3b", resource=resource),))), {}
    )

    assert (found.blind, found.ids) == (None, {})


def test_what_may_be_given_away_is_known_by_device() -> None:
    """Of GPU resources, renamed or not."""
    evidence = KubeletEvidence(
        allocatable={
            "nvidia.com/gpu.shared": frozenset({"GPU-0::0", "GPU-0::1"}),
            SMALL: frozenset({"MIG-7"}),
            "example.com/nic": frozenset({"GPU-0"}),
        }
    )

    assert holders.of(_look(evidence), {}).allocatable == {
        "GPU-0": {
            "GPU-0::0": "nvidia.com/gpu.shared",
            "GPU-0::1": "nvidia.com/gpu.shared",
        },
        "MIG-7": {"MIG-7": SMALL},
    }


def test_processes_use_the_instance_or_the_gpu_they_are_on() -> None:
    """They are called by PID, and by name where the process table knows it."""
    seen = replace(
        look(a100()),
        processes={
            "GPU-0": (
                DriverProcess(process_id=7, instance_id=None, used_memory_bytes=None),
                DriverProcess(process_id=8, instance_id=3, used_memory_bytes=None),
            )
        },
        owners={8: Process(process_id=8, started=1, name="python3")},
    )
    found = holders.of(seen, {})

    assert found.users("GPU-0") == ("process 7",)
    assert found.users("GPU-0", 3) == ("process 8 (python3)",)
    assert found.users("GPU-0", 4) == ()
    assert (found.is_used("GPU-0"), found.is_used("GPU-1")) == (True, False)


IDS = st.sampled_from(["GPU-0", "GPU-0::0", "GPU-0::1", "MIG-a", "MIG-a::0"])


@settings(deadline=None)
@given(listed=st.sets(IDS), noted=st.sets(IDS), promised=st.dictionaries(IDS, st.floats(0, 100.0)))
def test_nothing_that_anybody_names_is_free(
    listed: set[str], noted: set[str], promised: dict[str, float]
) -> None:
    """Each source alone is enough, and nothing else is held."""
    evidence = KubeletEvidence(
        holdings=tuple(holding(one) for one in sorted(listed)),
        remembered=tuple(remembered(one) for one in sorted(noted)),
    )
    found = holders.of(_look(evidence, promised=promised), dict.fromkeys(promised, GPU))

    assert {one for ids in found.ids.values() for one in ids} == listed | noted | set(promised)
    assert all(found.of_id(one) for one in listed | noted | set(promised))
    assert found.stale == noted - listed - set(promised)


@settings(deadline=None)
@given(promised=st.dictionaries(IDS, st.floats(0, 100.0)), listed=st.sets(IDS), noted=st.sets(IDS))
def test_a_promise_is_never_settled_before_the_kubelet_can_know_of_it(
    promised: dict[str, float], listed: set[str], noted: set[str]
) -> None:
    """Within a second nothing is forgotten, within a minute nothing that was never seen."""
    evidence = KubeletEvidence(
        holdings=tuple(holding(one) for one in sorted(listed)),
        remembered=tuple(remembered(one) for one in sorted(noted)),
    )
    found = holders.of(_look(evidence, promised=promised), {})

    for one, time in found.settled.items():
        assert promised[one] == time
        assert 100.0 - time >= (1.0 if one in listed | noted else 60.0)
