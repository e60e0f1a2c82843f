"""Server-side apply: who owns what, and who is in the way."""

from typing import Any

from tests.kubernetes.api_server.api_under_test import ApiUnderTest, config_map
from tests.kubernetes.api_server.gadget import gadget


def _owned(found: Any) -> dict[tuple[str, str, str], Any]:
    """Return (manager, operation, subresource) → what it owns."""
    entries = found["metadata"].get("managedFields", [])
    return {
        (one["manager"], one["operation"], one.get("subresource", "")): one["fieldsV1"]
        for one in entries
    }


def test_an_applied_object_belongs_to_who_applied_it(api: ApiUnderTest, config_maps: str) -> None:
    """It is created if need be; to apply it again changes nothing."""
    body = config_map("a", {"x": "1"}, labels={"l": "1"})
    first = api.apply(f"{config_maps}/a", body, manager="one")
    again = api.apply(f"{config_maps}/a", body, manager="one")
    owned = {"f:data": {"f:x": {}}, "f:metadata": {"f:labels": {"f:l": {}}}}
    assert first.code == 201
    assert _owned(first.body) == {("one", "Apply", ""): owned}
    assert (again.code, again.body) == (200, first.body)


def test_what_is_no_longer_applied_goes(api: ApiUnderTest, config_maps: str) -> None:
    """Unless somebody else owns it too."""
    path = f"{config_maps}/a"
    api.apply(path, config_map("a", {"x": "1", "y": "1"}), manager="one")
    api.apply(path, config_map("a", {"y": "1"}), manager="two")
    found = api.apply(path, config_map("a", {}), manager="one").body
    assert found["data"] == {"y": "1"}


def test_a_field_of_another_manager_is_a_conflict(api: ApiUnderTest, config_maps: str) -> None:
    """The same value is none; force takes the field away from the other."""
    path = f"{config_maps}/a"
    api.apply(path, config_map("a", {"x": "1"}), manager="one")
    assert api.apply(path, config_map("a", {"x": "1"}), manager="two").code == 200
    answer = api.apply(path, config_map("a", {"x": "2"}), manager="three")
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert answer.message == (
        'Apply failed with 2 conflicts: conflicts with "one":\n- .data.x\n'
        'conflicts with "two":\n- .data.x'
    )
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.x"}
    assert cause in answer.body["details"]["causes"]
    forced = api.apply(path, config_map("a", {"x": "2"}), manager="three", force="true").body
    assert _owned(forced) == {("three", "Apply", ""): {"f:data": {"f:x": {}}}}


def test_an_update_takes_fields_without_asking(api: ApiUnderTest, config_maps: str) -> None:
    """Its manager then stands in the way of the applied configuration."""
    path = f"{config_maps}/a"
    api.apply(path, config_map("a", {"x": "1", "y": "1"}), manager="one")
    found = api.patch(path, {"data": {"x": "2", "z": "3"}}, fieldManager="editor").body
    assert _owned(found) == {
        ("one", "Apply", ""): {"f:data": {"f:y": {}}},
        ("editor", "Update", ""): {"f:data": {"f:x": {}, "f:z": {}}},
    }
    answer = api.apply(path, config_map("a", {"x": "1", "y": "1"}), manager="one")
    assert answer.message == (
        'Apply failed with 1 conflict: conflict with "editor" using v1: .data.x'
    )


def test_owners_can_be_forgotten(api: ApiUnderTest, config_maps: str) -> None:
    """A patch with one empty entry empties the list."""
    api.apply(f"{config_maps}/a", config_map("a"), manager="one")
    found = api.patch(f"{config_maps}/a", {"metadata": {"managedFields": [{}]}}).body
    assert "managedFields" not in found["metadata"]


def test_an_apply_needs_a_manager_and_a_kind(api: ApiUnderTest, config_maps: str) -> None:
    """Nobody else may speak of managed fields."""
    path = f"{config_maps}/a"
    body = config_map("a")
    answer = api.patch(path, body, content="application/apply-patch+yaml")
    assert answer.message == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for '
        "apply patch"
    )
    answer = api.apply(path, {"kind": "ConfigMap", "metadata": {"name": "a"}}, manager="one")
    assert (answer.code, answer.message) == (400, "invalid object type: /, Kind=ConfigMap")
    named = config_map("a", managedFields=[{"manager": "x"}])
    answer = api.apply(path, named, manager="one")
    assert (answer.code, answer.message) == (400, "metadata.managedFields must be nil")
    answer = api.apply(path, {**body, "extra": 1}, manager="one")
    assert answer.code == 500
    assert answer.message.endswith(".extra: field not declared in schema")


def test_items_with_keys_have_owners_of_their_own(
    api: ApiUnderTest, gadgets: str, name: str
) -> None:
    """Two managers own two parts of one list; what one no longer applies goes."""
    path = f"{gadgets}/{name}"
    mine = gadget(name, {"parts": [{"id": "a", "colour": "red"}]}, labels={"l": "1"})
    api.apply(path, mine, manager="one")
    api.apply(path, gadget(name, {"parts": [{"id": "b"}]}), manager="two")
    found = api.apply(path, gadget(name, {"parts": [{"id": "c"}]}), manager="one").body
    assert sorted(part["id"] for part in found["spec"]["parts"]) == ["b", "c"]
    assert "labels" not in found["metadata"]
    part = {".": {}, "f:id": {}}
    assert _owned(found)["one", "Apply", ""] == {"f:spec": {"f:parts": {'k:{"id":"c"}': part}}}


def test_spec_and_status_are_applied_apart(api: ApiUnderTest, gadgets: str, name: str) -> None:
    """Each path reaches its own half; a conflict names the half."""
    path = f"{gadgets}/{name}"
    both = {**gadget(name, {"count": 1}), "status": {"seen": 1}}
    first = api.apply(path, both, manager="one").body
    assert "status" not in first
    found = api.apply(f"{path}/status", both, manager="one").body
    assert (found["status"], found["metadata"]["generation"]) == ({"seen": 1}, 1)
    assert _owned(found)["one", "Apply", "status"] == {"f:status": {"f:seen": {}}}
    other = {**gadget(name, {"count": 1}), "status": {"seen": 2}}
    answer = api.apply(f"{path}/status", other, manager="two")
    assert answer.message == (
        'Apply failed with 1 conflict: conflict with "one" with subresource "status": .status.seen'
    )


def test_taints_have_one_owner(api: ApiUnderTest, node: str, name: str) -> None:
    """The list is atomic, labels are not."""
    body = {"apiVersion": "v1", "kind": "Node"}
    body |= {"metadata": {"name": name, "labels": {"example.com/l": "1"}}}
    found = api.apply(node, body, manager="one").body
    assert _owned(found)["one", "Apply", ""] == {
        "f:metadata": {"f:labels": {"f:example.com/l": {}}}
    }
    taint = {"key": "example.com/t", "effect": "NoSchedule"}
    body |= {"spec": {"taints": [taint]}}
    found = api.apply(node, body, manager="one", force="true").body
    assert _owned(found)["one", "Apply", ""]["f:spec"] == {"f:taints": {}}
    assert found["spec"]["taints"] == [taint]
