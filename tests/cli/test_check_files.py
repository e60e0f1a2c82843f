"""Files that ``partita check`` refuses: told what they are, and soon."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita.cli import check, sources
from partita.errors import InputError

MEBIBYTE = 1 << 20
TOOL_OUTPUTS = {
    "csv": "index, name, uuid\n0, Big GPU, GPU-0\n",
    "describe": "Name:               rack-1\nRoles:              <none>\n",
    "kubectl": "NAME     STATUS   ROLES\nrack-1   Ready    <none>\n",
    "metrics": '# HELP power Power draw\n# TYPE power gauge\npower{gpu="0"} 71\n',
    "table": f"+{'-' * 77}+\n| NVIDIA-SMI 570.1    Driver Version: 570.1 |\n",
    "xml": "<?xml version='1.0' ?>\n<nvidia_smi_log>\n<gpu",
}


def _refusal(path: Path) -> InputError:
    result = CliRunner().invoke(check.command, [str(path)])
    assert isinstance(result.exception, InputError)
    return result.exception


@pytest.mark.parametrize("text", TOOL_OUTPUTS.values(), ids=TOOL_OUTPUTS)
def test_output_of_a_tool_is_named_as_plan_names_it(tmp_path: Path, text: str) -> None:
    """A table or metrics are no broken YAML: both commands say what they are."""
    path = tmp_path / "rack-1.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as planned:
        sources.read([str(path)])
    assert str(_refusal(path)) == str(planned.value)


def test_comment_like_a_metric_does_not_hide_a_config(tmp_path: Path) -> None:
    """What is understood as a config is one, whatever its comments look like."""
    path = tmp_path / "config.yaml"
    path.write_text("# HELP wanted here\nversion: v1\nflags: {}\n", encoding="utf-8")
    assert CliRunner().invoke(check.command, [str(path)]).exit_code == 0


def test_yaml_beyond_20_mebibytes_is_refused_like_by_plan(tmp_path: Path) -> None:
    """Its parser would take minutes; the advice is the same."""
    path = tmp_path / "big.yaml"
    path.write_text("version: v1\n" + "a: b\n" * (4 * MEBIBYTE + 1), encoding="utf-8")
    with pytest.raises(InputError) as planned:
        sources.read([str(path)])
    assert "more than 20 MiB" in planned.value.message
    assert str(_refusal(path)) == str(planned.value)


def test_large_json_is_read_as_nodes(tmp_path: Path) -> None:
    """JSON has no such limit: the nodes of a large cluster are checked."""
    labels = {"nvidia.com/mig.config.state": "failed"}
    node = {"kind": "Node", "metadata": {"name": "rack-1", "labels": labels}, "status": {}}
    document = {"kind": "List", "note": "x" * (21 * MEBIBYTE), "items": [node]}
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    result = CliRunner().invoke(check.command, [str(path)])
    assert "rack-1/labels.nvidia.com/mig.config.state" in result.output
    assert result.exit_code == 1


def test_xml_of_no_real_node_is_refused(tmp_path: Path) -> None:
    """Millions of empty GPUs would take minutes to read."""
    path = tmp_path / "rack-1.xml"
    gpus = "<gpu/>" * (3 * MEBIBYTE)
    path.write_text(f"<nvidia_smi_log>{gpus}</nvidia_smi_log>", encoding="utf-8")
    assert "no node has so many GPUs" in _refusal(path).message


def test_file_without_text_is_told_what_check_takes(tmp_path: Path) -> None:
    """The hint is about configs, not about clusters alone."""
    path = tmp_path / "empty.yaml"
    path.write_text("", encoding="utf-8")
    assert "a device-plugin config" in _refusal(path).hint


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("argument", ["--help", "check"])
def test_full_disk_is_an_error_without_traceback(tmp_path: Path, argument: str) -> None:
    """Output that finds no room ends the program with 2 and one line."""
    path = tmp_path / "config.yaml"
    path.write_text("version: v1\nflags: {}\n", encoding="utf-8")
    arguments = [argument] if argument.startswith("-") else [argument, str(path)]
    code = "from partita.cli.main import main; main()"
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-c", code, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=dict(os.environ),
        )
    assert done.returncode == 2
    assert done.stderr == "error: cannot write the output: No space left on device\n"
