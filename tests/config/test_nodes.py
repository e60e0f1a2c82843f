"""What a node says of itself, and which configs suit its boards."""

from collections.abc import Mapping

import pytest

from partita.config import lint, node_checks
from partita.config.config_map import Configs
from partita.model.finding import Finding, Severity
from partita.model.node import Node
from partita.model.report import GpuReport, NodeReport

A100_40 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}
A100_80 = {"nvidia.com/gpu.product": "NVIDIA-A100-80GB-PCIe", "nvidia.com/gpu.count": "2"}
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"}

LAYOUTS = """\
version: v1
mig-configs:
  all-1g.5gb:
  - devices: all
    mig-enabled: true
    mig-devices: {1g.5gb: 7}
  all-1g.10gb:
  - devices: all
    mig-enabled: true
    mig-devices: {1g.10gb: 7}
  some:
  - devices: [0]
    mig-enabled: false
  - devices: [4, 5]
    mig-enabled: true
    mig-devices: {3g.40gb: 2}
"""


def _check(
    labels: Mapping[str, str],
    *,
    allocatable: Mapping[str, int] | None = None,
    capacity: Mapping[str, int] | None = None,
    config: str | None = None,
    reports: tuple[NodeReport, ...] = (),
) -> dict[str, Finding]:
    node = Node(
        name="rack-7",
        labels=labels,
        allocatable=allocatable or {},
        capacity=capacity or allocatable or {},
    )
    configs = lint.read(config, "layouts.yaml").configs if config else Configs()
    findings = node_checks.check(node, reports, configs, "node.yaml")
    return {finding.rule: finding for finding in findings}


def test_layout_of_the_smaller_board_names_its_counterpart() -> None:
    """``all-1g.5gb`` on an 80 GB board: the node is invalid, ``all-1g.10gb`` is what it needs."""
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-A100-80GB-PCIe-MIG-INVALID",
        "nvidia.com/gpu.count": "0",
        "nvidia.com/mig.config": "all-1g.5gb",
        "nvidia.com/mig.strategy": "single",
    }
    found = _check(labels, config=LAYOUTS)
    assert "use all-1g.10gb" in (found["mig-invalid"].hint or "")
    assert "GPU reset" in (found["mig-invalid"].hint or "")
    assert found["profile-not-on-board"].hint == "write 1g.10gb, its counterpart here"
    assert found["profile-not-on-board"].severity is Severity.ERROR


def test_label_that_names_no_config() -> None:
    """A label value that the file lacks is an error with the nearest name."""
    found = _check({**H100, "nvidia.com/mig.config": "all-1g.10g"}, config=LAYOUTS)
    assert (found["label-without-config"].hint or "").startswith("did you mean all-1g.10gb?")


def test_config_findings_stand_in_the_config_and_name_the_node() -> None:
    """What is wrong with a config is told at its place; what the node says, in the node's file."""
    labels = {**A100_40, "nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.strategy": "none"}
    finding = _check(labels, config=LAYOUTS)["layout-impossible"]
    assert (finding.path, finding.line, finding.column) == ("layouts.yaml", 10, 5)
    assert finding.message.startswith("node rack-7 (NVIDIA A100-SXM4-40GB): the board cannot hold")
    assert finding.where == "rack-7/all-1g.10gb/[0]"
    label = _check({**H100, "nvidia.com/mig.config": "no"}, config=LAYOUTS)["label-without-config"]
    assert (label.path, label.line) == ("node.yaml", None)
    assert label.where == "rack-7/labels.nvidia.com/mig.config"


def test_indices_beyond_the_node_and_gpus_left_out() -> None:
    """A file for more GPUs than the node has does nothing there, and may leave one out."""
    found = _check({**A100_80, "nvidia.com/mig.config": "some"}, config=LAYOUTS)
    node = "node rack-7 (NVIDIA A100 80GB PCIe)"
    assert found["index-beyond"].message == f"{node}: there are 2 GPUs and no index 4, 5"
    assert found["gpu-uncovered"].message == f"{node}: GPU 1 is left as it is"


def test_reports_count_the_boards() -> None:
    """Under the single strategy the count label counts slices; nvidia-smi output counts boards."""
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
        "nvidia.com/gpu.count": "14",
        "nvidia.com/mig.strategy": "single",
        "nvidia.com/mig.config": "some",
    }
    gpus = tuple(GpuReport(index=number) for number in range(2))
    report = NodeReport(node="rack-7", source="rack-7.xml", gpus=gpus)
    found = _check(labels, config=LAYOUTS, reports=(report,))
    assert "there are 2 GPUs" in found["index-beyond"].message
    assert found["count-is-slices"].message.endswith(": 14")
    assert found["single-not-uniform"].severity is Severity.ERROR


@pytest.mark.parametrize(("product", "needed"), [("A100-SXM4-80GB", True), ("H100", False)])
def test_mode_change_needs_a_reset_on_ampere_only(product: str, *, needed: bool) -> None:
    """Ampere needs a reset and keeps the mode; Hopper needs none and forgets it."""
    labels = {**A100_80, "nvidia.com/mig.config": "all-1g.10gb"}
    labels = labels if needed else {**H100, "nvidia.com/mig.config": "all-1g.10gb"}
    finding = _check({**labels}, config=LAYOUTS)["mode-change"]
    assert ("needs a GPU reset" in finding.message) is needed, product
    assert ("mode survives" in (finding.hint or "")) is needed


def test_boards_without_mig_cannot_carry_a_layout() -> None:
    """An L40S has no MIG, however new it is."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/mig.config": "all-1g.10gb"}
    assert "no MIG" in _check(labels, config=LAYOUTS)["board-without-mig"].message


def test_whole_gpus_and_slices_of_the_same_boards_are_stale() -> None:
    """Eight boards cannot be 8 whole GPUs, 8 full slices and 56 small ones at once."""
    found = _check(
        {**A100_40, "nvidia.com/gpu.count": "8"},
        allocatable={"nvidia.com/gpu": 8, "nvidia.com/mig-1g.5gb": 56, "nvidia.com/mig-7g.40gb": 8},
    )
    finding = found["stale-allocatable"]
    assert "the node has 8" in finding.message
    assert (finding.hint or "").startswith("only nvidia.com/mig-1g.5gb 56 looks real")


def test_stale_resources_show_even_without_a_count() -> None:
    """24 boards in one server are not believed."""
    found = _check(
        {},
        allocatable={"nvidia.com/gpu": 8, "nvidia.com/mig-1g.5gb": 56, "nvidia.com/mig-7g.40gb": 8},
    )
    assert "no server has so many" in found["stale-allocatable"].message


def test_whole_gpus_beside_slices_need_boards_without_mig() -> None:
    """2 whole GPUs and 7 + 3 slices need four boards; with MIG on everywhere the 2 is stale."""
    found = _check({}, allocatable={"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": 14})
    assert "at least 4 GPUs" in found["whole-and-slices"].message
    assert "stale" in (found["whole-and-slices"].hint or "")


def test_full_use_of_all_boards_is_no_trouble() -> None:
    """Slices of three boards and one whole GPU are possible with four boards."""
    found = _check(
        {**A100_40, "nvidia.com/gpu.count": "4"},
        allocatable={"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 21},
    )
    assert "stale-allocatable" not in found


def test_capacity_does_not_count() -> None:
    """A slice in capacity only keeps pods Pending, and may not even fit any more."""
    labels = {
        **A100_40,
        "nvidia.com/gpu.count": "1",
        "nvidia.com/mig-1g.5gb.count": "3",
        "nvidia.com/mig-2g.10gb.count": "1",
    }
    found = _check(
        labels,
        allocatable={"nvidia.com/mig-1g.5gb": 3, "nvidia.com/mig-3g.20gb": 0},
        capacity={"nvidia.com/mig-1g.5gb": 3, "nvidia.com/mig-3g.20gb": 1},
    )
    finding = found["capacity-not-allocatable"]
    assert "has 0 of: 1" in finding.message
    assert "3g.20gb does not fit beside 3x 1g.5gb + 1x 2g.10gb" in (finding.hint or "")


def test_zero_is_left_over() -> None:
    """A MIG resource at 0 is what the kubelet remembers of an earlier layout."""
    found = _check({}, allocatable={"nvidia.com/mig-3g.20gb": 0, "nvidia.com/mig-1g.5gb": 2})
    assert found["zero-resource"].severity is Severity.INFO


def test_renamed_resource_leaves_nothing_under_the_plain_name() -> None:
    """nvidia.com/gpu 0 beside nvidia.com/gpu.shared 6: pods asking for the former wait."""
    found = _check({}, allocatable={"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 6})
    assert found["renamed"].message.endswith("nvidia.com/gpu.shared: 6")


def test_count_label_counts_boards_under_mixed() -> None:
    """gpu.count 1 does not mean that a whole GPU can be asked for."""
    labels = {**H100, "nvidia.com/gpu.count": "1", "nvidia.com/mig-2g.20gb.count": "3"}
    assert _check(labels)["count-is-boards"].hint == "MIG devices by label: 2g.20gb x3"


def test_mps_clients_depend_on_the_gpu() -> None:
    """V100 gets 16 clients from the plugin, an H100 48."""
    config = "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 24}]}}\n"
    v100 = {"nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB"}
    assert "at most 16" in _check(v100, config=config)["mps-clients"].message
    assert "mps-clients" not in _check(H100, config=config)


def test_single_strategy_refuses_a_node_with_mig_on_some_gpus() -> None:
    """Under single every GPU must have the same MIG mode and profile."""
    labels = {**H100, "nvidia.com/mig.strategy": "single", "nvidia.com/mig.config": "some"}
    finding = _check(labels, config=LAYOUTS)["single-not-uniform"]
    assert "one profile on every GPU" in finding.message


def test_failed_mig_change_is_said() -> None:
    """A state label other than success needs a look at mig-manager."""
    found = _check({"nvidia.com/mig.config.state": "failed"})
    assert found["mig-state"].severity is Severity.WARNING
