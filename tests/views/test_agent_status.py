"""What ``partita status`` prints."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.views.example_statuses import (
    ALL,
    CUT,
    EMPTY,
    KUBELET_DOWN,
    MIXED,
    ONE_LOST,
    RIVAL,
    SHARED,
)

from partita.model.agent_status import AgentStatus, Condition
from partita.views import agent_status
from partita.views.style import PLAIN, Style

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
_AN_HOUR = timedelta(hours=1)


def _lines(
    status: AgentStatus,
    *,
    width: int = 80,
    slices: bool = False,
    silent: str | None = None,
    now: datetime = NOW,
) -> list[str]:
    return agent_status.text(
        status, width=width, style=PLAIN, now=now, slices=slices, silent=silent
    ).splitlines()


def test_the_first_line_says_how_it_goes() -> None:
    """Node, ready or not and since when, then GPUs and slices or what keeps it from serving."""
    assert _lines(CUT)[0] == "gpu-a1: ready for 2h; 8 GPUs; 7 of 56 slices held"
    assert _lines(ONE_LOST)[0] == "gpu-a1: ready for 2h; 3 GPUs, 1 sick; 2 of 21 slices held"
    assert _lines(EMPTY) == ["cpu-1: ready for 2h; no GPUs"]
    assert _lines(RIVAL) == [
        "gpu-a1: not ready for 2h: nvidia-device-plugin runs on this node as process 4711",
        "  hint: label the node nvidia.com/gpu.deploy.device-plugin=false",
    ]


def test_readiness_that_nobody_told_is_not_readiness() -> None:
    """An agent that begins has not judged its node yet."""
    unknown = Condition(type="Ready", holds=None, reason="Starting")
    assert _lines(replace(EMPTY, conditions=(unknown,)))[0] == (
        "cpu-1: not known to be ready: Starting"
    )
    assert _lines(replace(EMPTY, conditions=()))[0] == "cpu-1: not known to be ready"


def test_an_agent_that_fell_silent_is_not_called_ready() -> None:
    """What it said last is shown as of then."""
    assert _lines(CUT, silent="the agent has ended, it was process: 1", now=NOW + _AN_HOUR)[:2] == [
        "gpu-a1: unknown, the agent has ended, it was process: 1",
        "  when the agent last wrote, 60m ago, it was ready: 8 GPUs; 7 of 56 slices held",
    ]
    assert _lines(RIVAL, silent="the agent has ended", now=NOW + _AN_HOUR)[-3:] == [
        "  when the agent last wrote, 60m ago, it was not ready: no GPUs",
        "  it said: nvidia-device-plugin runs on this node as process 4711",
        "  hint: label the node nvidia.com/gpu.deploy.device-plugin=false",
    ]


def test_what_is_wrong_comes_before_the_tables() -> None:
    """Conditions that do not hold first, then GPUs, the failed ones before those that wait."""
    assert _lines(ONE_LOST)[1:3] == ["  - GPU 1 Sick: the driver says: GPU is lost", ""]
    assert _lines(MIXED)[1:9] == [
        "  - the layouts are not followed for 9m: /etc/partita/config.yaml:12:7: unknown",
        "    profile of h100-80gb-sxm5: 1g.5gb",
        "    hint: what stood in the file before is followed",
        "  - GPU 1 Failed: create 1g.10gb at 6:1:",
        "    GPU-b0000000-1111-2222-3333-444455556666 refuses",
        "  - GPU 0 Waiting: 7 x 1g.10gb must wait: 3g.40gb at 4:4 is held by",
        "    research-language/pretraining-worker-of-many-0",
        "  - GPU 2 Kept: no policy says what to do with it",
    ]


def test_nothing_is_said_twice() -> None:
    """The kubelet's silence is why the node is not ready, and why eight GPUs are not known."""
    shown = _lines(KUBELET_DOWN, width=160)
    assert sum("gives no answer" in line for line in shown) == 1
    assert shown[2] == (
        "  - the kubelet does not listen to nvidia.com/mig-1g.5gb: nobody listens at kubelet.sock"
    )


def test_gpus_with_the_same_reason_are_told_together() -> None:
    """Their numbers are written as ranges."""
    gpus = [replace(gpu, phase="Waiting", reason="it is held") for gpu in CUT.gpus]
    status = replace(CUT, gpus=(*gpus[:3], CUT.gpus[3], *gpus[4:]))
    assert _lines(status)[1] == "  - GPUs 0-2,4-7 Waiting: it is held"


def test_resources_that_the_kubelet_does_not_hear_of_are_told_together() -> None:
    """One problem is one line, however many resources have it."""
    one = SHARED.resources[0]
    status = replace(SHARED, gpus=(), resources=(one, replace(one, name="nvidia.com/gpu")))
    assert _lines(status, width=160)[1] == (
        "  - the kubelet does not listen to nvidia.com/gpu.shared, nvidia.com/gpu:"
        " the kubelet is not there"
    )


def test_tables_of_resources_and_gpus_follow() -> None:
    """Numbers stand right, and slices are counted, not listed."""
    assert _lines(ONE_LOST)[3:] == [
        "RESOURCE               SLICES  USABLE  HELD  KUBELET",
        "nvidia.com/mig-1g.5gb      21      14     2  listens",
        "",
        "GPU  MODEL           MIG  STATE  FOR  SLICES",
        "  0  A100-SXM4-40GB  on   Ready   2h  7 x mig-1g.5gb",
        "  1  A100-SXM4-40GB  ?    Sick    2h  7 x mig-1g.5gb, 7 unusable",
        "  2  A100-SXM4-40GB  on   Ready   2h  7 x mig-1g.5gb, 2 held",
    ]


def test_slices_that_do_not_fit_go_on_below() -> None:
    """The model gives way instead: slices are not shortened."""
    assert _lines(MIXED)[-9:] == [
        "GPU  MODEL                            MIG  STATE    FOR  SLICES",
        "  0  H100 80GB HBM3                   on   Waiting   3d  1 x mig-1g.10gb.shared,",
        "                                                         1 x mig-1g.10gb.me,",
        "                                                         1 x mig-2g.20gb,",
        "                                                         1 x mig-3g.40gb,",
        "                                                         3 held, 1 leaving,",
        "                                                         1 unusable",
        "  1  H100 80GB HBM3                   on   Failed    5s  none",
        "  2  RTX PRO 6000 Blackwell Max-Q W…  off  Kept      2h  1 x gpu",
    ]


def test_slices_are_listed_when_asked_for() -> None:
    """Each with where it stands, what it may use, and who has it."""
    assert _lines(SHARED, slices=True)[-5:] == [
        "GPU  DEVICE           RESOURCE    AT  BUDGET  STATE    HOLDER",
        "  0  GPU-90000000::0  gpu.shared  -        ?  held     default/notebook-0",
        "  0  GPU-90000000::1  gpu.shared  -        ?  held     default/notebook-1",
        "  0  GPU-90000000::2  gpu.shared  -        ?  leaving  default/notebook-2",
        "  0  GPU-90000000::3  gpu.shared  -        ?  leaving  default/notebook-3",
    ]
    assert _lines(MIXED, slices=True, width=120)[-8:-5] == [
        "  0  MIG-0aaaaaaa  mig-1g.10gb.shared  0:1   9.5Gi  held      ml/notebook-7c9f4b6d5-x2x8k",
        "                                                              process 4711 (python3)",
        "  0  MIG-1aaaaaaa  mig-1g.10gb.me      1:1   9.5Gi  held      ml/video-6",
    ]


def test_shortened_devices_differ() -> None:
    """As much of a UUID is shown as tells it from every other one of the node."""
    first, *others = SHARED.gpus[0].slices
    alike = replace(first, device_id="GPU-90000000-1222-2222-3333-444455556666")
    status = replace(SHARED, gpus=(replace(SHARED.gpus[0], slices=(first, *others, alike)),))
    devices = [line.split()[1] for line in _lines(status, slices=True)[-5:]]
    assert devices == [*(f"GPU-90000000-11::{slot}" for slot in range(4)), "GPU-90000000-12"]


@pytest.mark.parametrize(
    ("seconds", "age"),
    [(-5, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172_800, "2d")],
)
def test_ages_are_short(seconds: int, age: str) -> None:
    """Two of a unit at least, so that they are never off by half."""
    since = (NOW - timedelta(seconds=seconds)).isoformat()
    status = replace(EMPTY, conditions=(replace(EMPTY.conditions[0], since=since),))
    assert _lines(status)[0] == f"cpu-1: ready for {age}; no GPUs"


@pytest.mark.parametrize("status", ALL)
@pytest.mark.parametrize("width", [80, 160])
def test_no_line_is_wider_than_the_terminal(status: AgentStatus, width: int) -> None:
    """Long names give way; no line ends in blanks."""
    lines = _lines(status, width=width, slices=True)
    assert [line for line in lines if len(line) > width or line != line.rstrip()] == []


@pytest.mark.parametrize("status", ALL)
def test_colour_says_nothing_that_words_do_not(status: AgentStatus) -> None:
    """Without its codes the coloured text is the plain one."""
    coloured = agent_status.text(status, width=80, style=Style(colour=True), now=NOW, slices=True)
    for code in ("0", "1", "2", "31", "32", "33"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured == "\n".join(_lines(status, slices=True))


def test_the_document_is_the_whole_of_it() -> None:
    """Snake case, nothing shortened, unknown is null."""
    found = agent_status.document(SHARED)
    assert found["schema"] == "partita.agent-status/v1"
    (gpu,) = json.loads(json.dumps(found))["gpus"]
    assert gpu["memory_mib"] is None
    assert gpu["slices"][2] == {
        "device_id": "GPU-90000000-1111-2222-3333-444455556666::2",
        "resource": "nvidia.com/gpu.shared",
        "profile": None,
        "placement": None,
        "usable": True,
        "leaving": True,
        "holders": ["default/notebook-2"],
        "budget_mib": None,
    }
