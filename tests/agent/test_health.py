"""A GPU is sick as long as there is a cause, and no longer."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agent.examples import a100, instance

from partita.agent.health import (
    IGNORED_XIDS,
    HealthRules,
    Sickness,
    Verdicts,
    after_reset,
    ignored,
    judge,
    remember,
)
from partita.errors import UsageError
from partita.model.gpu import MigMode
from partita.ports.gpu_driver import DriverFailure, DriverGpu, HealthEvent, Recovery

RULES = HealthRules()
TELLING = replace(a100(), recovery=Recovery.NONE)
BLIND = a100()


def _sick(gpu: DriverGpu, xid: int = 79, *, at: float = 0.0) -> tuple[Sickness, ...]:
    return remember((), [HealthEvent(uuid=gpu.uuid, xid=xid)], [gpu], RULES, at)


def test_an_xid_makes_its_gpu_sick_and_says_which_it_was() -> None:
    """XID 79 is that a GPU has fallen off the bus."""
    assert judge(_sick(TELLING), [TELLING]) == Verdicts(gpus={"GPU-0": "it reported XID 79"})


@pytest.mark.parametrize("xid", sorted(IGNORED_XIDS))
def test_an_xid_of_a_program_makes_nobody_sick(xid: int) -> None:
    """What a program brings on itself says nothing of the GPU."""
    assert _sick(TELLING, xid) == ()


@pytest.mark.parametrize(("gpu", "seconds"), [(TELLING, 30.0), (BLIND, 300.0)])
def test_sickness_ends_after_a_while_without_another_xid(gpu: DriverGpu, seconds: float) -> None:
    """30 s where the driver says that nothing is needed, 5 minutes where it cannot tell."""
    sick = _sick(gpu)

    assert remember(sick, [], [gpu], RULES, seconds - 0.1) == sick
    assert remember(sick, [], [gpu], RULES, seconds) == ()


def test_another_xid_begins_the_while_anew() -> None:
    """The last XID counts."""
    sick = remember(_sick(TELLING), [HealthEvent(uuid="GPU-0", xid=48)], [TELLING], RULES, 29.0)

    (left,) = remember(sick, [], [TELLING], RULES, 58.0)

    assert (left.xid, left.since) == (48, 29.0)
    assert remember(sick, [], [TELLING], RULES, 59.0) == ()


@pytest.mark.parametrize("needs", [Recovery.RESET, Recovery.DRAIN, Recovery.REBOOT])
def test_sickness_lasts_as_long_as_the_gpu_needs_something(needs: Recovery) -> None:
    """However long ago the XID was; once nothing is needed it is over."""
    needing = replace(TELLING, recovery=needs)
    sick = remember(_sick(TELLING), [], [needing], RULES, 86_400.0)

    assert len(sick) == 1
    assert remember(sick, [], [TELLING], RULES, 86_400.0) == ()


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        (Recovery.RESET, "it needs a reset"),
        (Recovery.DRAIN, "it needs a reset once its programs have ended"),
        (Recovery.REBOOT, "it needs a reboot of the node"),
    ],
)
def test_a_gpu_that_needs_something_is_sick_without_any_xid(needs: Recovery, said: str) -> None:
    """What the driver shows counts as long as it is shown, beside an XID that it reported."""
    gpu = replace(TELLING, recovery=needs)

    assert judge((), [gpu]).gpus == {"GPU-0": said}
    assert judge(_sick(gpu), [gpu]).gpus == {"GPU-0": f"it reported XID 79; {said}"}
    assert judge((), [TELLING]) == Verdicts()


def test_a_gpu_that_cannot_be_read_is_sick_until_it_can() -> None:
    """It says what the driver says."""
    lost = replace(TELLING, recovery=None, failure=DriverFailure.GPU_IS_LOST)

    assert judge((), [lost]).gpus == {"GPU-0": "the driver says: GPU is lost"}
    assert judge((), [TELLING]) == Verdicts()


def test_an_xid_of_a_lost_gpu_is_not_over_before_it_is_back() -> None:
    """Nobody can say whether a lost GPU is well; neither of one that is no longer listed."""
    lost = replace(TELLING, recovery=None, failure=DriverFailure.GPU_IS_LOST)
    sick = _sick(TELLING)

    assert remember(sick, [], [lost], RULES, 10_000.0) == sick
    assert remember(sick, [], [], RULES, 10_000.0) == sick


def test_an_event_without_a_gpu_concerns_every_gpu() -> None:
    """The driver does not say which: none of them can be called well."""
    gpus = [a100(index) for index in range(3)]

    sick = remember((), [HealthEvent(uuid=None, xid=79)], gpus, RULES, 0.0)

    assert set(judge(sick, gpus).gpus) == {"GPU-0", "GPU-1", "GPU-2"}


def test_an_xid_confined_to_an_instance_leaves_the_gpu_well() -> None:
    """Its MIG device alone is sick, and that ends with the instance."""
    gpu = a100(mode=MigMode.ON, instances=(instance(7, 0), instance(8, 1)))
    sick = remember((), [HealthEvent(uuid="GPU-0", xid=94, instance_id=7)], [gpu], RULES, 0.0)

    assert judge(sick, [gpu]) == Verdicts(instances={("GPU-0", 7): "it reported XID 94"})

    without = a100(mode=MigMode.ON, instances=(instance(8, 1),))

    assert remember(sick, [], [without], RULES, 1.0) == ()


def test_a_reset_ends_all_xids_of_that_gpu_alone() -> None:
    """What a GPU reported before its reset says nothing of it afterwards."""
    gpus = [a100(0), a100(1)]
    sick = remember((), [HealthEvent(uuid=None, xid=79)], gpus, RULES, 0.0)

    assert [one.uuid for one in after_reset(sick, "GPU-0")] == ["GPU-1"]


@pytest.mark.parametrize(
    ("disable", "enable", "left_out", "heeded"),
    [
        ("", "", {13, 109}, {48, 79}),
        ("79, 48", "", {13, 48, 79}, {94}),
        ("", "13", {31}, {13, 79}),
        ("", "all", set(), {13, 31, 79}),
        ("79", "79", {13}, {79}),
        ("all", "79", {13, 48, 94, 119}, {79}),
        ("XIDS", "79,31", {13, 48}, {31, 79}),
        ("all", "all", set(), {13, 79}),
        (" , ", ",", {13}, {48, 79}),
    ],
)
def test_the_two_variables_of_nvidias_plugin_change_the_list(
    disable: str, enable: str, left_out: set[int], heeded: set[int]
) -> None:
    """Enabling wins over disabling, as in NVIDIA's plugin."""
    found = ignored(disable, enable)

    assert found is not None
    assert left_out <= found
    assert not heeded & found


@pytest.mark.parametrize("word", ["nonsense", "-1", "²", "0x4f", "79;48", "7 9"])
def test_a_word_that_is_no_xid_is_refused(word: str) -> None:
    """Taken for nothing, an XID with a typing error in it would go on making GPUs sick."""
    for arguments in ((f"48,{word}", ""), ("", word), (word, "all"), ("all", word)):
        with pytest.raises(UsageError, match=f": {word}\nhint: give numbers"):
            ignored(*arguments)


def test_all_xids_can_be_left_out() -> None:
    """Then no XID makes a GPU sick, and what the driver shows still does."""
    rules = HealthRules(ignored=ignored("all"))
    gpu = replace(TELLING, recovery=Recovery.RESET)

    assert remember((), [HealthEvent(uuid="GPU-0", xid=79)], [gpu], rules, 0.0) == ()
    assert judge((), [gpu]).gpus == {"GPU-0": "it needs a reset"}


@settings(deadline=None)
@given(
    events=st.lists(
        st.tuples(
            st.floats(0, 1000), st.sampled_from(["GPU-0", "GPU-1", None]), st.integers(1, 150)
        )
    ),
    quiet=st.floats(300, 10_000),
)
def test_a_well_driver_that_reports_nothing_for_long_has_only_well_gpus(
    events: list[tuple[float, str | None, int]], quiet: float
) -> None:
    """Whatever was reported: sickness never stays for ever."""
    gpus = [a100(0), replace(a100(1), recovery=Recovery.NONE)]
    sick: tuple[Sickness, ...] = ()
    for at, uuid, xid in sorted(events, key=lambda one: one[0]):
        sick = remember(sick, [HealthEvent(uuid=uuid, xid=xid)], gpus, RULES, at)

    assert remember(sick, [], gpus, RULES, 1000 + quiet) == ()


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["GPU-0", "GPU-1"]), st.integers(1, 150))))
def test_what_one_gpu_reports_says_nothing_of_another(events: list[tuple[str, int]]) -> None:
    """Each GPU has its own verdict."""
    gpus = [a100(0), a100(1)]
    reports = [HealthEvent(uuid=uuid, xid=xid) for uuid, xid in events]
    alone = [one for one in reports if one.uuid == "GPU-0"]

    both = judge(remember((), reports, gpus, RULES, 0.0), gpus).gpus
    one = judge(remember((), alone, gpus, RULES, 0.0), gpus).gpus

    assert both.get("GPU-0") == one.get("GPU-0")
