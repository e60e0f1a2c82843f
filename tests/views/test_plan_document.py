"""A plan as data."""

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
import yaml
from tests.views import example_plans

from partita.planner.plan import GpuPlan, Plan
from partita.views import plan_document

Make = Callable[[], Plan]


def _document(plan: Plan) -> Any:
    return json.loads(json.dumps(plan_document.document(plan)))


@pytest.mark.parametrize("make", example_plans.ALL)
def test_data_survives_json_and_yaml(make: Make) -> None:
    """What JSON and YAML give back is what was written."""
    document = plan_document.document(make())
    assert json.loads(json.dumps(document)) == document
    assert yaml.safe_load(yaml.safe_dump(document)) == document


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for inner in value.values() for key in _keys(inner)}
    if isinstance(value, list):
        return {key for inner in value for key in _keys(inner)}
    return set()


def test_keys_are_snake_case() -> None:
    """Keys are lower case with underscores; resource names are the only others."""
    keys = {key for make in example_plans.ALL for key in _keys(_document(make()))}
    odd = {key for key in keys if not key.replace("_", "").islower() and "/" not in key}
    assert odd == set()


def test_nothing_is_left_out() -> None:
    """Every field of a plan and of a GPU's plan is somewhere in the document."""
    document = _document(example_plans.fragmented())
    assert document["schema"] == "partita.plan/v1"
    names = {one.name for one in fields(Plan)} - {"fleet"}
    assert names <= set(document)
    gpu = document["gpus"][0]
    inside = {one.name for one in fields(GpuPlan)} - {"gpu"}
    assert inside <= set(gpu) | set(gpu["planned"])


def test_a_gpu_before_and_after() -> None:
    """A GPU shows what stands with its holders, and what is planned for which pod."""
    gpu = _document(example_plans.fragmented())["gpus"][0]
    assert (gpu["node"], gpu["index"], gpu["uuid"]) == ("gpu-a1", 3, "GPU-5a1d22e0")
    assert gpu["standing"]["instances"][0] == {
        "profile": "1g.10gb",
        "placement": {"start": 0, "size": 1},
        "candidates": [{"start": 0, "size": 1}],
        "instance_id": 9,
        "hold": "held",
        "holders": ["ml/notebook-a"],
        "compute_instances": [{"id": 0, "uuid": "MIG-1", "sm_count": 16}],
    }
    created = [one for one in gpu["planned"]["instances"] if one["created"]]
    assert [(one["profile"], one["pods"]) for one in created] == [("3g.40gb", ["ml/train-0"])]


def test_steps_say_their_kind() -> None:
    """Every step has a kind, a node and an index; unknown is null."""
    steps = [step for make in example_plans.ALL for step in _document(make())["steps"]]
    kinds = {step["kind"] for step in steps}
    assert kinds == {"set-mig-mode", "destroy", "create", "set-replicas"}
    assert all({"kind", "node", "index"} <= set(step) for step in steps)
    created = _document(example_plans.twelve_units())["steps"][0]
    assert created["profile_id"] is None


def test_refusals_have_codes() -> None:
    """A refusal has a stable code, and its changes have kinds and blockers."""
    refused = _document(example_plans.fragmented())["unfit"][0]
    assert refused["reason"] == "blocked"
    assert [change["kind"] for change in refused["changes"]] == ["ask-other-profile", "end-holders"]
    assert refused["changes"][0]["blocker"] is None
    assert refused["changes"][1]["blocker"]["placement"] == {"start": 0, "size": 4}


def test_unknown_is_null() -> None:
    """An unknown placement, GPU or memory is null, not 0."""
    document = _document(example_plans.unknown_placements())
    instance = document["gpus"][0]["standing"]["instances"][0]
    assert instance["placement"] is None
    assert len(instance["candidates"]) == 4
    assert document["assignments"][0]["index"] is None
    assert _document(example_plans.shared())["gpus"][2]["memory_mib"] is None
