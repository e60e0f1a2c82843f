"""``partita agent`` from the command line: what it refuses before it begins."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from partita.cli.main import main

_POLICY = """\
apiVersion: partita.dev/v1alpha1
kind: PartitionPolicy
metadata: {name: cut}
spec: {strategy: MIG, follow: Fixed, mig: {layout: {1g.5gb: 7}}}
"""


def _run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["agent", *arguments])
    return result.exit_code, result.output


def test_a_file_with_an_error_is_refused_with_its_line(tmp_path: Path) -> None:
    """The agent does not begin with something else than what is wanted."""
    path = tmp_path / "config.yaml"
    path.write_text(_POLICY.replace("MIG,", "Mig,"), encoding="utf-8")

    code, output = _run("--simulate", "T4", "--config", str(path))

    assert code == 2
    assert f"{path}:4:" in output
    assert "hint:" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--simulate", "B17"), "no such GPU model in the catalogue: B17"),
        (("--simulate", ""), "no GPU to simulate is named"),
        (("--simulate", " "), "no GPU to simulate is named"),
        (("--simulate", "T4", "--ignore-xids", "79;48"), "neither an XID nor `all`: 79;48"),
        (("--simulate", "T4", "--heed-xids", "x79"), "neither an XID nor `all`: x79"),
        (("--simulate", "T4", "--config", "/dev/zero"), "not a regular file"),
        (("--simulate", "T4:99"), "NVIDIA's driver serves at most 32 GPUs"),
        (("--simulate", "T4", "--listen", "here"), "not an address: here"),
        (("--simulate", "T4", "--device-list-strategy", "cdi"), "no such device list strategy"),
        (("--simulate", "T4", "--node-label", "zone"), "not a label: zone"),
        (("--simulate", "T4", "--config", "/nonexistent"), "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_hint(
    arguments: tuple[str, ...], message: str
) -> None:
    """Two lines say what is wrong and what to do; nothing is said of how it goes."""
    code, output = _run(*arguments)

    assert code == 2
    assert message in output
    assert "hint:" in output
    assert "to see how it goes" not in output
