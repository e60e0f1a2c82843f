"""``partita status`` from the command line."""

import json
import os
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from click.testing import CliRunner
from tests.views.example_statuses import CUT, RIVAL

from partita.cli.main import main
from partita.model.agent_status import AgentStatus
from partita.views import agent_status


def _status(folder: Path, status: AgentStatus, *options: str) -> tuple[int, str, str]:
    path = folder / "agent.json"
    path.write_text(json.dumps(agent_status.document(status)), encoding="utf-8")
    result = CliRunner().invoke(main, ["status", "--state", str(path), *options])
    return result.exit_code, result.stdout, result.stderr


def _now(*, ago: int = 0) -> str:
    return (datetime.now(UTC) - timedelta(seconds=ago)).isoformat()


def test_a_serving_agent_is_exit_code_0(tmp_path: Path) -> None:
    """Scripts can ask whether the node is served."""
    code, out, err = _status(tmp_path, replace(CUT, at=_now()))

    assert (code, err) == (0, "")
    assert out.startswith("gpu-a1: ready")


def test_an_agent_that_does_not_serve_is_exit_code_1(tmp_path: Path) -> None:
    """It says why."""
    code, out, _ = _status(tmp_path, replace(RIVAL, at=_now()))

    assert code == 1
    assert "nvidia-device-plugin runs on this node" in out


def test_an_agent_that_no_longer_writes_is_told(tmp_path: Path) -> None:
    """What it said last is shown, but not as if it were so now."""
    at = _now(ago=300)

    code, out, err = _status(tmp_path, replace(CUT, at=at))

    assert (code, err) == (1, "")
    assert f"gpu-a1: unknown, the agent no longer writes, last at: {at}" in " ".join(out.split())
    assert "when the agent last wrote, 5m ago, it was ready" in out


def test_an_agent_that_has_ended_is_told(tmp_path: Path) -> None:
    """On its own node its process is looked for."""
    here = replace(CUT, at=_now(), node=os.uname().nodename, process_id=4_194_305)

    code, out, _ = _status(tmp_path, here)

    assert code == 1
    assert "unknown, the agent has ended, it was process: 4194305" in out


def test_an_agent_that_runs_here_is_believed(tmp_path: Path) -> None:
    """Its process was there before it wrote."""
    here = replace(CUT, at=_now(), node=os.uname().nodename, process_id=os.getpid())

    assert _status(tmp_path, here)[0] == 0


def test_another_process_with_its_pid_is_not_the_agent(tmp_path: Path) -> None:
    """A process that began after the agent wrote cannot have written."""
    before = _now(ago=30)
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as other:
        here = replace(CUT, at=before, node=os.uname().nodename, process_id=other.pid)
        code, out, _ = _status(tmp_path, here)

    assert code == 1
    assert "the agent has ended" in out


def test_a_file_without_a_time_is_told(tmp_path: Path) -> None:
    """Nobody knows whether it still holds; a time without a zone is none."""
    for at in ("soon", "2026-03-01T12:30:00"):
        code, out, _ = _status(tmp_path, replace(CUT, at=at))
        assert code == 1
        assert f"the agent did not say when it wrote this: {at}" in " ".join(out.split())


def test_data_of_a_silent_agent_come_with_a_warning(tmp_path: Path) -> None:
    """On stderr: the data are what it last wrote."""
    code, out, err = _status(tmp_path, replace(CUT, at=_now(ago=300)), "-o", "json")

    assert code == 1
    assert json.loads(out)["node"] == "gpu-a1"
    assert err.startswith("warning: the agent no longer writes")


def test_no_file_is_exit_code_2(tmp_path: Path) -> None:
    """With a hint, as every error of partita has."""
    result = CliRunner().invoke(main, ["status", "--state", str(tmp_path / "agent.json")])

    assert result.exit_code == 2
    assert "no agent has written its state here" in result.stderr
    assert "hint: is `partita agent` running on this node?" in result.stderr


def test_slices_are_listed_on_demand(tmp_path: Path) -> None:
    """One row for each of them, below the tables that are always there."""
    status = replace(CUT, at=_now())

    _, short, _ = _status(tmp_path, status)
    _, long, _ = _status(tmp_path, status, "--slices")

    assert long.startswith(short.rstrip())
    assert long.count("  MIG-") == 56


def test_data_is_the_document(tmp_path: Path) -> None:
    """Nothing is shortened there."""
    status = replace(CUT, at=_now())
    document = json.loads(json.dumps(agent_status.document(status)))

    assert json.loads(_status(tmp_path, status, "-o", "json")[1]) == document
    assert yaml.safe_load(_status(tmp_path, status, "-o", "yaml")[1]) == document
