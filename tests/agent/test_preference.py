"""Slices are preferred so that what is left can still be used well."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agent.examples import GPU, SMALL, offered

from partita.agent.preference import Preference
from partita.config.serving_options import SharedDevicesPolicy
from partita.ports.slice_server import Offer, OfferedSlice, PreferenceRequest

PACKED = Preference(shared=SharedDevicesPolicy.PACKED)


def _ask(
    slices: list[OfferedSlice],
    count: int = 1,
    *,
    available: tuple[str, ...] | None = None,
    must: tuple[str, ...] = (),
    preference: Preference | None = None,
) -> list[str]:
    everything = tuple(one.slice.device_id for one in slices)
    request = PreferenceRequest(
        offer=Offer(resource=slices[0].slice.resource, slices=tuple(slices)),
        available=available if available is not None else everything,
        must_include=must,
        count=count,
    )
    return list((preference or Preference())(request))


def _shared(gpus: int, replicas: int) -> list[OfferedSlice]:
    return [
        offered(f"GPU-{gpu}::{slot}", gpu=gpu)
        for gpu, slot in product(range(gpus), range(replicas))
    ]


def _mig(free: dict[int, int]) -> list[OfferedSlice]:
    return [
        offered(f"MIG-{gpu}-{number}", resource=SMALL, gpu=gpu, instance_id=number)
        for gpu, count in free.items()
        for number in range(count)
    ]


def test_two_shared_slots_of_one_container_are_on_different_gpus() -> None:
    """A program that asks for two wants two GPUs."""
    assert _ask(_shared(2, 4), 2) == ["GPU-0::0", "GPU-1::0"]


def test_a_second_slot_of_a_gpu_is_given_only_when_no_other_gpu_is_left() -> None:
    """Three slots of two GPUs are two and one."""
    answer = _ask(_shared(2, 4), 3)

    assert sorted(Counter(one.partition("::")[0] for one in answer).values()) == [1, 2]


def test_what_must_be_included_counts_as_a_slot_of_the_container() -> None:
    """The kubelet gives an init container's slot on to the container after it."""
    assert _ask(_shared(2, 4), 2, must=("GPU-0::3",)) == ["GPU-0::3", "GPU-1::0"]


def test_slots_of_mig_devices_are_spread_over_gpus_too() -> None:
    """Two MIG devices of one GPU are still one GPU."""
    slots = [
        offered(f"MIG-{gpu}-{number}::{slot}", resource=SMALL, gpu=gpu, instance_id=number)
        for gpu, number, slot in product(range(2), range(2), range(2))
    ]

    assert _ask(slots, 2) == ["MIG-0-0::0", "MIG-1-0::0"]
    assert _ask(slots, 4) == ["MIG-0-0::0", "MIG-1-0::0", "MIG-0-1::0", "MIG-1-1::0"]


def test_shared_slots_go_to_the_gpu_with_the_fewest_in_use() -> None:
    """They share its time with the fewest others."""
    free = ("GPU-0::2", "GPU-0::3", "GPU-1::1", "GPU-1::2", "GPU-1::3")

    assert _ask(_shared(2, 4), available=free) == ["GPU-1::1"]


def test_the_fewest_in_use_are_not_the_most_free() -> None:
    """GPUs may be shared in different numbers: 4 of 8 free is busier than 2 of 2."""
    slots = [*_shared(1, 8), offered("GPU-1::0", gpu=1), offered("GPU-1::1", gpu=1)]
    free = ("GPU-0::4", "GPU-0::5", "GPU-0::6", "GPU-0::7", "GPU-1::0", "GPU-1::1")

    assert _ask(slots, available=free) == ["GPU-1::0"]
    assert _ask(slots, available=free, preference=PACKED) == ["GPU-0::4"]


def test_a_slot_that_is_to_go_and_cannot_be_given_is_not_in_use() -> None:
    """What is only still in the list shares nobody's time."""
    slots = [
        *_shared(2, 2),
        *(offered(f"GPU-1::{slot}", gpu=1, usable=False) for slot in range(2, 8)),
    ]

    assert _ask(slots, available=("GPU-0::1", "GPU-1::0", "GPU-1::1")) == ["GPU-1::0"]


def test_packed_shared_slots_go_to_the_gpu_with_the_most_in_use() -> None:
    """So that other GPUs stay free, as NVIDIA's ``packed`` has it."""
    free = ("GPU-0::2", "GPU-0::3", "GPU-1::1", "GPU-1::2", "GPU-1::3")

    assert _ask(_shared(2, 4), available=free, preference=PACKED) == ["GPU-0::2"]


def test_mig_devices_are_packed() -> None:
    """The GPU with the fewest free ones comes first, so that others can be cut anew."""
    slices = _mig({0: 4, 1: 2, 2: 3})

    assert _ask(slices, 3) == ["MIG-1-0", "MIG-1-1", "MIG-2-0"]


def test_what_is_to_go_is_given_last() -> None:
    """So that it becomes free."""
    slices = [
        offered("MIG-a", resource=SMALL, instance_id=1, leaving=True),
        offered("MIG-b", resource=SMALL, gpu=1, instance_id=1),
        offered("MIG-c", resource=SMALL, gpu=1, instance_id=2),
    ]

    assert _ask(slices, 3) == ["MIG-b", "MIG-c", "MIG-a"]


def test_a_slot_that_is_to_go_is_given_after_those_that_stay() -> None:
    """Though another GPU is busier; only a second slot of one GPU comes after it."""
    slots = [*_shared(1, 4), offered("GPU-1::0", gpu=1, leaving=True)]
    free = ("GPU-0::3", "GPU-0::2", "GPU-1::0")

    assert _ask(slots, 1, available=free) == ["GPU-0::2"]
    assert _ask(slots, 2, available=free) == ["GPU-0::2", "GPU-1::0"]


def test_gpus_of_one_numa_node_go_together() -> None:
    """The second GPU is of the node of the first."""
    slices = [offered(f"GPU-{gpu}", gpu=gpu, numa_node=gpu % 2) for gpu in range(4)]

    assert _ask(slices, 2) == ["GPU-0", "GPU-2"]
    assert _ask(slices, 2, must=("GPU-3",)) == ["GPU-3", "GPU-1"]


def test_what_is_no_longer_offered_is_not_preferred() -> None:
    """The kubelet's list may be older than the offer."""
    assert _ask(_shared(1, 2), 2, available=("GPU-0::1", "GPU-9::0")) == ["GPU-0::1"]


@st.composite
def questions(draw: st.DrawFn) -> PreferenceRequest:
    """Return a question about slices of one resource: whole GPUs, MIG devices, or slots of them."""
    kind = draw(st.sampled_from(["whole", "mig", "slots", "mig slots"]))
    ids = []
    for gpu in range(draw(st.integers(1, 4))):
        for number in range(draw(st.integers(1, 4)) if "mig" in kind else 1):
            name = f"MIG-{gpu}-{number}" if "mig" in kind else f"GPU-{gpu}"
            slots = draw(st.integers(2, 4)) if "slots" in kind else 1
            names = [f"{name}::{slot}" for slot in range(slots)] if slots > 1 else [name]
            ids += [(one, gpu, number if "mig" in kind else None) for one in names]
    slices = tuple(
        offered(one, gpu=gpu, instance_id=number, leaving=draw(st.booleans()))
        for one, gpu, number in ids
    )
    names = [one for one, _, _ in ids]
    free = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    must = draw(st.lists(st.sampled_from(free), unique=True))
    count = draw(st.integers(max(1, len(must)), len(free)))
    return PreferenceRequest(
        offer=Offer(resource=GPU, slices=slices),
        available=tuple(free),
        must_include=tuple(must),
        count=count,
    )


@pytest.mark.parametrize("preference", [Preference(), PACKED])
@settings(deadline=None, max_examples=60)
@given(request_=questions())
def test_an_answer_is_one_that_the_kubelet_takes(
    preference: Preference, request_: PreferenceRequest
) -> None:
    """It has the right size, what must be in it, nothing twice, and nothing that is not free."""
    answer = preference(request_)

    assert len(answer) == request_.count
    assert len(set(answer)) == len(answer)
    assert set(request_.must_include) <= set(answer) <= set(request_.available)


@pytest.mark.parametrize("preference", [Preference(), PACKED])
@settings(deadline=None, max_examples=60)
@given(request_=questions())
def test_shared_slots_are_never_put_together_needlessly(
    preference: Preference, request_: PreferenceRequest
) -> None:
    """Two slots are of one device only when every free one has as many already."""
    slices = {one.slice.device_id: one.slice for one in request_.offer.slices}
    if next(iter(slices.values())).slot is None:
        return
    answer = preference(request_)
    chosen = [slices[one] for one in answer[len(request_.must_include) :]]
    left = [slices[one] for one in request_.available if one not in answer]
    devices = Counter(slices[one].device for one in answer)

    for one, other in product(chosen, left):
        assert devices[one.device] <= devices[other.device] + 1
