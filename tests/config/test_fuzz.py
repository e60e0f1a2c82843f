"""Broken documents give findings or one error with a hint, never another exception."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from partita.config import lint, node_checks, policy_import
from partita.config.inspection import Inspection
from partita.errors import InputError
from partita.model.node import Node

CASES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parent / "cases").glob("*.yaml"))
}
SCALARS = st.sampled_from(
    [
        *("", "~", "-1", "0", "true", "[]", "{}", "[a, 1]", "{a: b}", "1e999", "0x1F", "9" * 5000),
        *("*x", "&x y", "!!int", "!!float x", "${A}", "{{ b }}", "'", '"', "|-", ">", "? -", "%"),
        *("[[[", "{{{", "nvidia.com/gpu", "1g.5gb", "all", "v1"),
    ]
)
LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/mig.strategy": "single",
}


def _try(text: str) -> None:
    try:
        reading = lint.read(text, "fuzz.yaml")
    except InputError:
        return
    lines = text.count("\n") + 2
    assert all(f.line is None or 1 <= f.line <= lines for f in reading.findings)
    policy_import.policies_of(reading.configs, Inspection(path="fuzz.yaml"), "fuzz")
    node_checks.check(Node(name="n", labels=LABELS), (), reading.configs, "fuzz.yaml")


@given(st.sampled_from(sorted(CASES)), st.data())
def test_truncated_documents(name: str, data: st.DataObject) -> None:
    """A file may end anywhere."""
    text = CASES[name]
    _try(text[: data.draw(st.integers(0, len(text)))])


@given(st.sampled_from(sorted(CASES)), SCALARS, st.data())
def test_replaced_values(name: str, value: str, data: st.DataObject) -> None:
    """Any value may be something else entirely."""
    lines = CASES[name].splitlines()
    places = [number for number, line in enumerate(lines) if ":" in line]
    number = data.draw(st.sampled_from(places))
    key, _, _ = lines[number].rpartition(":")
    lines[number] = f"{key}: {value}"
    _try("\n".join(lines))


@given(st.sampled_from(sorted(CASES)), st.text(max_size=6), st.data())
def test_inserted_text(name: str, extra: str, data: st.DataObject) -> None:
    """Any text may stand anywhere."""
    text = CASES[name]
    place = data.draw(st.integers(0, len(text)))
    _try(text[:place] + extra + text[place:])
