"""A plan as configurations of NVIDIA's device plugin."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from tests.views import example_plans

from partita.config import device_plugin as reader
from partita.model.gpu import MigMode, Sharing
from partita.planner.plan import GpuPlan, Plan
from partita.views import device_plugin

Make = Callable[[], Plan]


def _configs(plan: Plan) -> Any:
    data = yaml.safe_load(device_plugin.text(plan))["data"]
    return {name: yaml.safe_load(text) for name, text in data.items()}


def _shared(*replicas: int, **more: object) -> list[GpuPlan]:
    gpus = []
    for index, times in enumerate(replicas):
        board = example_plans.gpu(
            example_plans.L40S,
            "a",
            index,
            mode=MigMode.UNSUPPORTED,
            **more,  # type: ignore[arg-type]
        )
        gpus.append(
            GpuPlan(gpu=board, mig_mode=MigMode.UNSUPPORTED, replicas=times, sharing=board.sharing)
        )
    return gpus


@pytest.mark.parametrize("make", example_plans.ALL)
def test_the_configs_are_valid(make: Make) -> None:
    """The reader of the plugin's format finds nothing to note in any of them."""
    text = device_plugin.text(make())
    document = yaml.safe_load(text)
    assert (document["apiVersion"], document["kind"]) == ("v1", "ConfigMap")
    for name, config in document["data"].items():
        assert reader.decode(config, name).findings == ()
    assert max(map(len, text.splitlines())) <= 100


def test_mig_is_served_mixed() -> None:
    """A node with MIG serves its instances by profile; one without does not."""
    assert _configs(example_plans.resets()) == {
        "mig-mixed": {"version": "v1", "flags": {"migStrategy": "mixed"}},
        "whole-gpus": {"version": "v1", "flags": {"migStrategy": "none"}},
    }


def test_replicas_are_shared_by_time_slicing() -> None:
    """GPUs that are served several times over become replicas of the resource."""
    assert _configs(example_plans.plan(_shared(4, 4))) == {
        "time-slicing-4": {
            "version": "v1",
            "flags": {"migStrategy": "none"},
            "sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}},
        }
    }


def test_mps_stays_mps() -> None:
    """A node whose GPUs are shared by MPS keeps doing so."""
    configs = _configs(example_plans.plan(_shared(4, sharing=Sharing.MPS)))
    assert list(configs) == ["mps-4"]
    assert list(configs["mps-4"]["sharing"]) == ["mps"]


def test_renamed_resources_stay_renamed() -> None:
    """GPUs that are planned to be ``nvidia.com/gpu.shared`` are written so."""
    gpus = [dataclasses.replace(gpu, renamed=True) for gpu in _shared(2)]
    configs = _configs(example_plans.plan(gpus))
    sharing = configs["time-slicing-2-renamed"]["sharing"]["timeSlicing"]
    assert sharing["renameByDefault"] is True


def test_what_the_plugin_cannot_do_is_said() -> None:
    """GPUs of one node that are to differ are written as the least, and the comment says so."""
    plan = example_plans.plan(_shared(1, 4))
    assert list(_configs(plan)) == ["whole-gpus"]
    assert "a: serve 1 x GPU 0 and 4 x GPU 1; written is the least" in device_plugin.text(plan)


def test_every_node_is_labelled() -> None:
    """Each node has one label command, with a config that exists."""
    plan = example_plans.resets()
    lines = [line for line in device_plugin.text(plan).splitlines() if "kubectl label" in line]
    assert [line.split()[-2:] for line in lines] == [
        ["gpu-b1", "nvidia.com/device-plugin.config=mig-mixed"],
        ["gpu-b2", "nvidia.com/device-plugin.config=whole-gpus"],
    ]
