"""Custom resources: what their schema does, and what their two halves are."""

import pytest
from tests.kubernetes.api_server import gadget as gadgets_module
from tests.kubernetes.api_server.api_under_test import STRATEGIC, TABLE, ApiUnderTest
from tests.kubernetes.api_server.gadget import gadget


def test_defaults_are_filled_in(api: ApiUnderTest, gadgets: str, name: str) -> None:
    """Defaults belong to whoever created the object; the generation begins with 1."""
    found = api.create(gadgets, gadget(name)).body
    assert found["spec"] == {"mode": "Slow"}
    assert found["metadata"]["generation"] == 1
    fields = found["metadata"]["managedFields"][0]["fieldsV1"]
    assert fields == {"f:spec": {".": {}, "f:mode": {}}}


def test_unknown_fields_are_pruned(api: ApiUnderTest, gadgets: str, name: str) -> None:
    """On every level, with a warning each; strictly, they are refused."""
    body = gadget(name, {"extra": 1, "parts": [{"id": "a", "size": 2}]})
    refused = api.create(gadgets, body, fieldValidation="Strict")
    assert refused.code == 400
    assert refused.message == (
        'Gadget in version "v1" cannot be handled as a Gadget: strict decoding error: unknown '
        'field "spec.extra", unknown field "spec.parts[0].size"'
    )
    warned = api.create(gadgets, body)
    assert len(warned.warnings) == 2
    assert warned.body["spec"] == {"mode": "Slow", "parts": [{"id": "a"}]}


_REFUSED = (
    (
        {"count": 20},
        "FieldValueInvalid",
        "spec.count",
        "Invalid value: 20: spec.count in body should be less than or equal to 10",
    ),
    (
        {"count": 0},
        "FieldValueInvalid",
        "spec.count",
        "Invalid value: 0: spec.count in body should be greater than or equal to 1",
    ),
    (
        {"count": "x"},
        "FieldValueTypeInvalid",
        "spec.count",
        'Invalid value: "string": spec.count in body must be of type integer: "string"',
    ),
    (
        {"mode": "Odd"},
        "FieldValueNotSupported",
        "spec.mode",
        'Unsupported value: "Odd": supported values: "Fast", "Slow"',
    ),
    (
        {"name": "A1"},
        "FieldValueInvalid",
        "spec.name",
        "Invalid value: \"A1\": spec.name in body should match '^[a-z]+$'",
    ),
    (
        {"labels": {"a": 1}},
        "FieldValueTypeInvalid",
        "spec.labels.a",
        'Invalid value: "integer": spec.labels.a in body must be of type string: "integer"',
    ),
    ({"parts": [{}]}, "FieldValueRequired", "spec.parts[0].id", "Required value"),
    (
        {"parts": [{"id": ""}]},
        "FieldValueInvalid",
        "spec.parts[0].id",
        'Invalid value: "": spec.parts[0].id in body should be at least 1 chars long',
    ),
    (
        {"parts": [{"id": "a"}, {"id": "a"}]},
        "FieldValueDuplicate",
        "spec.parts[1]",
        'Duplicate value: {"id":"a"}',
    ),
)


@pytest.mark.parametrize("case", _REFUSED)
def test_a_schema_refuses(
    api: ApiUnderTest, gadgets: str, name: str, case: tuple[object, str, str, str]
) -> None:
    """Each objection has a reason, a field and a message, and stands in the whole message."""
    spec, reason, field, message = case
    answer = api.create(gadgets, gadget(name, spec))
    cause = {"reason": reason, "message": message, "field": field}
    assert answer.code == 422
    assert answer.body["details"]["causes"] == [cause]
    head = f'Gadget.facts.example.com "{name}" is invalid: '
    assert answer.message == f"{head}{field}: {message}"


def test_several_objections_stand_in_brackets(api: ApiUnderTest, gadgets: str, name: str) -> None:
    """In no order that could be relied on."""
    answer = api.create(gadgets, gadget(name, {"count": 20, "mode": "Odd"}))
    assert len(answer.body["details"]["causes"]) == 2
    assert answer.message.startswith(f'Gadget.facts.example.com "{name}" is invalid: [spec.')
    assert answer.message.endswith("]")


def test_what_is_required_is_missed(api: ApiUnderTest, gadgets: str, name: str) -> None:
    """A custom resource has to name kind and version as well."""
    body = gadget(name)
    del body["spec"]
    assert api.create(gadgets, body).body["details"]["causes"] == [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec"}
    ]
    wrong = api.create(gadgets, {**gadget(name), "apiVersion": "facts.example.com/v2"})
    assert wrong.message == (
        "the API version in the data (facts.example.com/v2) does not match the expected API "
        "version (facts.example.com/v1)"
    )
    other = api.create(gadgets, {**gadget(name), "kind": "Widget"})
    assert other.message == (
        f'Widget.facts.example.com "{name}" is invalid: kind: Invalid value: "Widget": must be '
        "Gadget"
    )


def test_spec_and_status_are_changed_apart(api: ApiUnderTest, gadgets: str, name: str) -> None:
    """The generation counts changes of the spec; through the status only the status changes."""
    path = f"{gadgets}/{name}"
    created = api.create(gadgets, {**gadget(name), "status": {"x": 1}}).body
    assert "status" not in created
    both = {"metadata": {"labels": {"l": "1"}}, "spec": {"count": 2}, "status": {"x": 2}}
    status = api.patch(f"{path}/status", both).body
    assert (status["status"], status["spec"]) == ({"x": 2}, {"mode": "Slow"})
    assert "labels" not in status["metadata"]
    assert status["metadata"]["generation"] == 1
    spec = api.patch(path, {**both, "status": {"x": 3}}).body
    assert (spec["status"], spec["spec"]["count"]) == ({"x": 2}, 2)
    assert spec["metadata"]["labels"] == {"l": "1"}
    assert spec["metadata"]["generation"] == 2


def test_a_label_is_no_new_generation(api: ApiUnderTest, gadgets: str, name: str) -> None:
    """Metadata are not what is wanted."""
    api.create(gadgets, gadget(name))
    found = api.patch(f"{gadgets}/{name}", {"metadata": {"labels": {"l": "1"}}}).body
    assert found["metadata"]["generation"] == 1


def test_there_is_no_strategic_merge(api: ApiUnderTest, gadgets: str, name: str) -> None:
    """Nothing tells how to merge the lists of a custom resource."""
    api.create(gadgets, gadget(name))
    answer = api.patch(f"{gadgets}/{name}", {"spec": {"count": 2}}, content=STRATEGIC)
    assert (answer.code, answer.reason) == (415, "UnsupportedMediaType")
    assert answer.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


def test_columns_are_those_of_the_definition(api: ApiUnderTest, gadgets: str, name: str) -> None:
    """A cell without a value is null; of several values the first is shown."""
    api.create(gadgets, gadget(name, {"count": 3, "parts": [{"id": "a"}, {"id": "b"}]}))
    table = api.ask("GET", f"{gadgets}/{name}", accept=TABLE).body
    columns = [(one["name"], one["type"]) for one in table["columnDefinitions"]]
    assert columns == [
        ("Name", "string"),
        ("Count", "integer"),
        ("Parts", "string"),
        ("Ready", "string"),
    ]
    assert table["rows"][0]["cells"] == [name, 3, "a", None]
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    api.patch(f"{gadgets}/{name}/status", status)
    table = api.ask("GET", f"{gadgets}/{name}", accept=TABLE).body
    assert table["rows"][0]["cells"][3] == "True"


def test_a_definition_is_established(api: ApiUnderTest, gadgets: str) -> None:
    """It fills in the names that were not given."""
    assert gadgets == gadgets_module.PATH
    path = f"{gadgets_module.DEFINITIONS}/gadgets.facts.example.com"
    found = api.get(path).body
    assert found["spec"]["names"]["listKind"] == "GadgetList"
    assert found["spec"]["names"]["singular"] == "gadget"
    conditions = {one["type"]: one["status"] for one in found["status"]["conditions"]}
    assert conditions["Established"] == conditions["NamesAccepted"] == "True"
    assert found["status"]["storedVersions"] == ["v1"]


def test_discovery_tells_of_it(api: ApiUnderTest, gadgets: str) -> None:
    """In both forms."""
    assert gadgets == gadgets_module.PATH
    listed = api.get("/apis/facts.example.com/v1").body["resources"]
    assert {one["name"] for one in listed} == {"gadgets", "gadgets/status"}
    assert listed[0]["shortNames"] == ["gd"]
    group = api.get("/apis/facts.example.com").body
    assert group["preferredVersion"] == {"groupVersion": "facts.example.com/v1", "version": "v1"}
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    groups = api.ask("GET", "/apis", accept=accept).body["items"]
    found = next(one for one in groups if one["metadata"]["name"] == "facts.example.com")
    resource = found["versions"][0]["resources"][0]
    assert resource["responseKind"]["kind"] == "Gadget"
    assert [one["subresource"] for one in resource["subresources"]] == ["status"]
