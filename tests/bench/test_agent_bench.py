"""The agent's benchmark runs and prints all that it measures; no figure is judged here."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).parents[2]
_TINY = ("--gpus=1", "--cuts=1", "--calls=20", "--seconds=0.1", "--settle=0")

_LINES = (
    r"cores \d+, processor .+, load .+, Linux .+, Python .+, gRPC .+",
    r"1 x A100-SXM4-40GB, whole, into 7 x 1g\.5gb each, .* slices: 7; .*",
    r"  partita    median +\S+ s, .*; goal under 1 s: (met|MISSED)",
    r"  the least  median +\S+ s, .*; partita/least \S+",
    r"  and back   median +\S+ s, .*",
    r"Allocate of 1 of 7 devices over the socket, from another process, calls: 20",
    r"  partita    p50 +\S+ ms, p99 +\S+ ms; goal under 5 ms: (met|MISSED)",
    r"  the least  p50 +\S+ ms, p99 +\S+ ms; partita/least p50 \S+, p99 \S+",
    r"partita agent at rest with 1 GPUs cut, watched for 0 s",
    r"  CPU of one core, simulated +\S+ %; goal under 0\.5 %: (met|MISSED)",
    r"  memory, simulated  resident +\S+ MiB, proportional +\S+ MiB; goal .*: (met|MISSED)",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], dict[str, Any]]:
    """Return the lines and the document of one tiny run."""
    path = tmp_path_factory.mktemp("bench") / "figures.json"
    done = subprocess.run(  # noqa: S603 - this very program
        [sys.executable, "-m", "bench.agent", *_TINY, f"--json={path}"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), json.loads(path.read_text(encoding="utf-8"))


def test_every_figure_is_printed_with_its_goal_or_its_peer(
    run: tuple[list[str], dict[str, Any]],
) -> None:
    """What is measured is on a line of its own, with what it is held to."""
    lines, _ = run

    assert [line for line in _LINES if not any(re.fullmatch(line, one) for one in lines)] == []


def test_the_stub_is_measured_where_it_can_be_built(
    run: tuple[list[str], dict[str, Any]],
) -> None:
    """Without a C compiler one line says so; all else is measured all the same."""
    lines, document = run
    drivers = [cost["driver"] for cost in document["costs"]]

    if shutil.which("cc") is None:
        assert drivers == ["simulated"]
        assert "  stub NVML: not measured, there is no C compiler: cc" in lines
    else:
        assert drivers == ["simulated", "stub NVML"]


def test_the_document_has_every_single_measurement(
    run: tuple[list[str], dict[str, Any]],
) -> None:
    """Whoever wants other percentiles finds the seconds of each call and each cut."""
    _, document = run

    assert len(document["cut"]["cut"]) == len(document["cut"]["peer"]) == 1
    assert len(document["allocation"]["seconds"]) == len(document["allocation"]["peer"]) == 20
