"""``partita check``, ``import`` and ``export`` as they are typed."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from partita.cli import check, convert
from partita.config import lint
from partita.errors import InputError

GOOD = """\
version: v1
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 3
"""
BAD = GOOD.replace("replicas: 3", "replicas: 1")
LAYOUT = """\
version: v1
mig-configs:
  halves:
  - devices: [0, 1]
    mig-enabled: true
    mig-devices:
      3g.40gb: 2
  - devices: [2]
    mig-enabled: false
"""
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "rack-2",
        "labels": {
            "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
            "nvidia.com/gpu.count": "3",
            "nvidia.com/mig.config": "halves",
        },
    },
    "status": {
        "capacity": {"nvidia.com/gpu": "3", "nvidia.com/mig-1g.5gb": "7"},
        "allocatable": {"nvidia.com/gpu": "3", "nvidia.com/mig-1g.5gb": "7"},
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with one file of each sort."""
    (tmp_path / "good.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "bad.yaml").write_text(BAD, encoding="utf-8")
    (tmp_path / "layout.yaml").write_text(LAYOUT, encoding="utf-8")
    (tmp_path / "node.json").write_text(json.dumps(NODE), encoding="utf-8")
    return tmp_path


def _check(*arguments: object) -> Result:
    return CliRunner().invoke(check.command, [str(argument) for argument in arguments])


def test_good_config_exits_with_0(folder: Path) -> None:
    """Notes alone are no failure; the summary stands last."""
    result = _check(folder / "good.yaml")
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == "2 notes"


def test_bad_config_exits_with_1_and_names_the_place(folder: Path) -> None:
    """The line begins with path, line and column."""
    result = _check("--quiet", folder / "good.yaml", folder / "bad.yaml")
    assert result.exit_code == 1
    first, hint, summary = result.output.splitlines()
    assert first.startswith(f"{folder / 'bad.yaml'}:6:17: error: ")
    assert first.endswith("[replicas-too-few]")
    assert hint.startswith("    hint: ")
    assert summary == "1 error"


def test_json_has_every_finding_and_the_counts(folder: Path) -> None:
    """The document form is complete."""
    document = json.loads(_check(folder / "bad.yaml", "-o", "json").output)
    assert document["summary"] == {"errors": 1, "warnings": 0, "notes": 0}
    assert document["findings"][0]["line"] == 6


def test_config_is_tried_on_a_node(folder: Path) -> None:
    """A layout for 80 GB boards is wrong for the node that selects it."""
    result = _check(folder / "layout.yaml", "--node", folder / "node.json")
    assert result.exit_code == 1
    message = "node rack-2 (NVIDIA A100-SXM4-40GB): the board has no profile: 3g.40gb"
    assert f"{folder / 'layout.yaml'}:6:5: error: {message}" in result.output
    assert "write 3g.20gb, its counterpart here" in result.output


def test_every_node_is_named(folder: Path) -> None:
    """A config that is wrong for two nodes is told for each of them, at its own place."""
    other = {**NODE, "metadata": {**NODE["metadata"], "name": "rack-3"}}  # type: ignore[dict-item]
    (folder / "other.json").write_text(json.dumps(other), encoding="utf-8")
    arguments = ("--node", folder / "node.json", "--node", folder / "other.json", "-o", "json")
    findings = json.loads(_check(folder / "layout.yaml", *arguments).output)["findings"]
    wrong = [one for one in findings if one["rule"] == "profile-not-on-board"]
    assert {one["path"] for one in wrong} == {str(folder / "layout.yaml")}
    assert [one["message"].split()[1] for one in wrong] == ["rack-2", "rack-3"]
    assert [one["where"] for one in wrong] == ["rack-2/halves/[0]", "rack-3/halves/[0]"]


def test_node_alone_is_checked(folder: Path) -> None:
    """3 whole GPUs and 7 slices do not fit into 3 boards."""
    result = _check(folder / "node.json")
    assert result.exit_code == 1
    assert "needs at least 4 GPUs and the node has 3" in result.output


def test_one_unusable_file_does_not_hide_the_others(folder: Path) -> None:
    """What is wrong in the other files is told all the same."""
    (folder / "broken.yaml").write_text("hello: [1\n", encoding="utf-8")
    result = _check(folder / "broken.yaml", folder / "node.json")
    assert isinstance(result.exception, InputError)
    assert "needs at least 4 GPUs and the node has 3" in result.output


@pytest.mark.parametrize("text", ["kind: Service\n", "hello: [1\n", "just words", ""])
def test_what_is_not_understood_is_refused(tmp_path: Path, text: str) -> None:
    """An unknown document, a broken one and an empty one are errors, not clean."""
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    result = _check(path)
    assert isinstance(result.exception, InputError)
    assert result.exception.hint


def test_missing_file_is_refused(tmp_path: Path) -> None:
    """The error names the file."""
    result = _check(tmp_path / "none.yaml")
    assert isinstance(result.exception, InputError)
    assert "none.yaml" in str(result.exception)


def test_import_writes_policies_and_says_what_was_lost(folder: Path) -> None:
    """One policy per entry on stdout; nothing lost here."""
    result = CliRunner().invoke(convert.import_command, [str(folder / "layout.yaml")])
    names = [document["metadata"]["name"] for document in yaml.safe_load_all(result.stdout)]
    assert names == ["halves-1", "halves-2"]
    assert result.stderr == ""
    assert result.exit_code == 0


@pytest.mark.parametrize("target", ["mig-parted", "operator-values"])
def test_export_of_an_import_reads_as_the_same_config(folder: Path, target: str) -> None:
    """There and back, through the files that the commands write."""
    policies = CliRunner().invoke(convert.import_command, [str(folder / "layout.yaml")]).stdout
    (folder / "policies.yaml").write_text(policies, encoding="utf-8")
    arguments = [str(folder / "policies.yaml"), "--to", target]
    exported = CliRunner().invoke(convert.export_command, arguments)
    assert exported.exit_code == 0
    assert lint.read(exported.stdout, "x").configs.mig == lint.read(LAYOUT, "x").configs.mig


def test_export_to_the_wrong_document_is_said(folder: Path) -> None:
    """A MIG policy has no place in a device-plugin config."""
    policies = CliRunner().invoke(convert.import_command, [str(folder / "layout.yaml")]).stdout
    (folder / "policies.yaml").write_text(policies, encoding="utf-8")
    arguments = [str(folder / "policies.yaml"), "--to", "device-plugin"]
    result = CliRunner().invoke(convert.export_command, arguments)
    assert result.exit_code == 1
    assert "use --to mig-parted" in result.stderr


def test_nothing_to_convert_is_refused(folder: Path) -> None:
    """Export wants policies."""
    arguments = [str(folder / "good.yaml"), "--to", "mig-parted"]
    result = CliRunner().invoke(convert.export_command, arguments)
    assert isinstance(result.exception, InputError)
