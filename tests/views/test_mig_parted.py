"""A plan as a mig-parted configuration."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from tests.views import example_plans

from partita.config import mig_parted as reader
from partita.model.finding import Severity
from partita.model.gpu import Hold, MigMode
from partita.planner.plan import GpuPlan, Plan
from partita.views import mig_parted

Make = Callable[[], Plan]


def _configs(plan: Plan) -> Any:
    return yaml.safe_load(mig_parted.text(plan))["mig-configs"]


def _comments(plan: Plan) -> str:
    lines = mig_parted.text(plan).splitlines()
    return " ".join(line.lstrip("# ") for line in lines if line.startswith("#"))


@pytest.mark.parametrize("make", example_plans.ALL)
def test_the_config_is_valid(make: Make) -> None:
    """A strict reader of mig-parted's format finds nothing wrong; comments stay in width."""
    text = mig_parted.text(make())
    found = reader.decode(text, "plan.yaml").findings
    assert [finding for finding in found if finding.severity is Severity.ERROR] == []
    assert yaml.safe_load(text)["version"] == "v1"
    assert max(map(len, text.splitlines())) <= 100


def test_layouts_are_counted() -> None:
    """What is planned on each GPU stands there as profile and count."""
    assert _configs(example_plans.resets()) == {
        "partita-gpu-b1": [
            {
                "devices": [0],
                "mig-enabled": True,
                "mig-devices": {"1g.10gb": 1, "2g.20gb": 1, "4g.40gb": 1},
            }
        ],
        "partita-gpu-b2": [{"devices": [1], "mig-enabled": False}],
    }


def test_like_nodes_share_a_config() -> None:
    """Nodes with the same layout have one config, and every node is labelled with one."""
    plan = example_plans.thousand()
    configs = _configs(plan)
    shares = {name: [entry["devices"] for entry in of] for name, of in configs.items()}
    assert shares == {
        "partita.layout-1": [[0, 1, 2, 3, 4, 5, 6, 7]],
        "partita-gpu-031": [[0, 1, 2, 3, 4, 5, 6, 7]],
        "partita.layout-3": [[0, 1, 2, 3, 4, 5, 6, 7]],
    }
    lines = [line for line in mig_parted.text(plan).splitlines() if "kubectl label" in line]
    labelled = [word for line in lines for word in line.split() if word.startswith("gpu-")]
    assert sorted(labelled) == sorted(node.name for node in plan.fleet.nodes)
    assert {line.rsplit("=", 1)[1] for line in lines} == set(configs)


def test_what_it_would_destroy_is_said() -> None:
    """Held instances on a GPU that mig-parted would clear are named, with GPU and holder."""
    comments = _comments(example_plans.fragmented())
    assert "CAUTION: applying this is not the plan" in comments
    assert "gpu-a1/3 1g.10gb at 0:1, held by ml/notebook-a" in comments
    assert "gpu-a1/3 1g.10gb at 1:1, held by ml/notebook-b" in comments


def test_unchanged_gpus_lose_nothing() -> None:
    """Where the instances are the wanted ones already, mig-parted does nothing."""
    instance = example_plans.FIRST
    board = example_plans.gpu(example_plans.H100, "a", 0, instance)
    after = GpuPlan(gpu=board, mig_mode=MigMode.ON, instances=(example_plans.kept(instance),))
    comments = _comments(example_plans.plan([after]))
    assert "No held instance is on a GPU that it would clear." in comments
    assert "may choose other places" not in comments


def test_other_places_are_said() -> None:
    """Where a layout fits in more than one way, the planned places are no promise."""
    assert "may choose other places" in _comments(example_plans.fragmented())
    assert "may choose other places" not in _comments(example_plans.resets())


def test_resets_of_the_whole_node_are_said() -> None:
    """mig-parted resets all GPUs of a node for a mode change."""
    assert "reset every GPU of the node" in _comments(example_plans.resets())
    assert "reset every GPU of the node" not in _comments(example_plans.fragmented())


def test_mixed_nodes_have_filters() -> None:
    """On a node with several models, entries name the PCI ids; GPUs without MIG are left out."""
    a100 = example_plans.gpu(example_plans.A100, "a", 0)
    l40s = example_plans.gpu(example_plans.L40S, "a", 1, mode=MigMode.UNSUPPORTED)
    whole = example_plans.new("7g.80gb", example_plans.at(0, 8))
    gpus = [
        GpuPlan(gpu=a100, mig_mode=MigMode.ON, instances=(whole,)),
        GpuPlan(gpu=l40s, mig_mode=MigMode.UNSUPPORTED),
    ]
    assert _configs(example_plans.plan(gpus)) == {
        "partita-a": [
            {
                "device-filter": "0x20B210DE",
                "devices": [0],
                "mig-enabled": True,
                "mig-devices": {"7g.80gb": 1},
            }
        ]
    }


@pytest.mark.parametrize("more", [{"hold": Hold.POSSIBLE}, {"problem": "GPU is lost"}])
def test_unseen_gpus_are_left_out(more: dict[str, object]) -> None:
    """A GPU whose instances are not known must not be declared empty: that would clear it."""
    board = example_plans.gpu(example_plans.H100, "a", 0, **more)  # type: ignore[arg-type]
    seen = example_plans.gpu(example_plans.H100, "a", 1)
    gpus = [GpuPlan(gpu=one, mig_mode=MigMode.ON) for one in (board, seen)]
    entries = _configs(example_plans.plan(gpus))["partita-a"]
    assert entries == [{"devices": [1], "mig-enabled": True, "mig-devices": {}}]


def test_without_mig_there_is_still_a_config() -> None:
    """A fleet without MIG gives the config that leaves MIG off, since an empty file is refused."""
    assert _configs(example_plans.shared()) == {
        "all-disabled": [{"devices": "all", "mig-enabled": False}]
    }


def test_long_node_names_become_short_labels() -> None:
    """A config's name is a label value, 63 characters at most."""
    board = example_plans.gpu(example_plans.H100, "n" * 200, 0)
    names = list(_configs(example_plans.plan([GpuPlan(gpu=board, mig_mode=MigMode.ON)])))
    assert names == ["partita.layout-1"]
