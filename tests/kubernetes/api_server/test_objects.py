"""How objects come, change and go."""

import pytest
from tests.kubernetes.api_server.api_under_test import JSON_PATCH, MERGE, ApiUnderTest, config_map


def test_a_created_object_has_an_identity(api: ApiUnderTest, config_maps: str) -> None:
    """The server sets UID, time of creation, version and the field manager."""
    answer = api.create(config_maps, config_map("a"), agent="tool/1.2")
    metadata = answer.body["metadata"]
    manager = metadata["managedFields"][0]
    assert answer.code == 201
    assert {"uid", "creationTimestamp", "resourceVersion"} <= metadata.keys()
    assert "generation" not in metadata
    assert manager["manager"] == "tool"
    assert manager["operation"] == "Update"
    assert manager["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}


def test_a_name_is_generated_from_a_prefix(api: ApiUnderTest, config_maps: str) -> None:
    """Five characters follow the prefix."""
    body = {"metadata": {"generateName": "made-"}}
    name = api.create(config_maps, body).body["metadata"]["name"]
    assert name.startswith("made-")
    assert len(name) == len("made-") + 5


def test_a_name_is_taken_once(api: ApiUnderTest, config_maps: str) -> None:
    """A second object of the name is refused."""
    api.create(config_maps, config_map("a"))
    answer = api.create(config_maps, config_map("a"))
    assert (answer.code, answer.reason) == (409, "AlreadyExists")
    assert answer.message == 'configmaps "a" already exists'


def test_what_is_not_there_is_not_found(api: ApiUnderTest, config_maps: str) -> None:
    """The status names the resource and the object."""
    answer = api.get(f"{config_maps}/nobody")
    assert answer.code == 404
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "nobody" not found',
        "reason": "NotFound",
        "details": {"name": "nobody", "kind": "configmaps"},
        "code": 404,
    }


def test_a_namespace_must_be_there(api: ApiUnderTest) -> None:
    """Nothing is created in a namespace that is not; a list there is empty."""
    path = "/api/v1/namespaces/nowhere/configmaps"
    answer = api.create(path, config_map("a"))
    assert (answer.code, answer.message) == (404, 'namespaces "nowhere" not found')
    assert api.get(path).body["items"] == []


@pytest.mark.parametrize("path", ["/apis/nothing.example.com/v1", "/nothing"])
def test_an_unknown_path_is_answered_in_text(api: ApiUnderTest, path: str) -> None:
    """There is no status object."""
    answer = api.get(path)
    assert (answer.code, answer.body) == (404, "404 page not found\n")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {**config_map("b"), "apiVersion": "v2"},
            (
                'ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" '
                "is "
                'registered for version "v2" in scheme "pkg/runtime/scheme.go:111"'
            ),
        ),
        (
            {**config_map("b"), "kind": "Pod"},
            (
                'Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to '
                "(core.ConfigMap): unknown conversion"
            ),
        ),
        (
            {**config_map("b"), "data": {"a": 1}},
            (
                'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot '
                "unmarshal "
                "number into Go struct field ConfigMap.data of type string"
            ),
        ),
        (
            config_map("b", namespace="other"),
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            "",
            (
                "the object provided is unrecognized (must be of type ConfigMap): couldn't get "
                "version/kind; json parse error: unexpected end of JSON input (<empty>)"
            ),
        ),
    ],
)
def test_a_body_must_be_an_object_of_the_kind(
    api: ApiUnderTest, config_maps: str, body: object, message: str
) -> None:
    """The server says what it took it for."""
    answer = api.create(config_maps, body)
    assert (answer.code, answer.reason) == (400, "BadRequest")
    assert answer.message == message


def test_names_have_an_alphabet(api: ApiUnderTest, config_maps: str) -> None:
    """An object's name is a DNS subdomain."""
    answer = api.create(config_maps, config_map("A_"))
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert answer.message.startswith(
        'ConfigMap "A_" is invalid: metadata.name: Invalid value: "A_": a lowercase RFC 1123'
    )
    assert answer.body["details"]["causes"][0]["field"] == "metadata.name"


def test_unknown_fields_are_told(api: ApiUnderTest, config_maps: str) -> None:
    """They are dropped with a warning, or refused if the client wants it."""
    body = {**config_map("a"), "extra": 1}
    refused = api.create(config_maps, body, fieldValidation="Strict")
    assert refused.message.endswith('strict decoding error: unknown field "extra"')
    warned = api.create(config_maps, body)
    assert warned.warnings == ('299 - "unknown field \\"extra\\""',)
    assert "extra" not in warned.body


def test_an_older_version_cannot_be_changed(api: ApiUnderTest, config_maps: str) -> None:
    """Whoever names a version changes that or nothing."""
    first = api.create(config_maps, config_map("a")).body
    api.patch(f"{config_maps}/a", {"data": {"a": "2"}})
    answer = api.ask("PUT", f"{config_maps}/a", first)
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please '
        "apply your changes to the latest version and try again"
    )
    version = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}}
    assert api.patch(f"{config_maps}/a", version).code == 409


def test_a_change_that_changes_nothing_makes_no_version(
    api: ApiUnderTest, config_maps: str
) -> None:
    """The version stays, and no watch hears of it."""
    first = api.create(config_maps, config_map("a")).body["metadata"]["resourceVersion"]
    again = api.ask("PUT", f"{config_maps}/a", config_map("a"))
    assert (again.code, again.body["metadata"]["resourceVersion"]) == (200, first)


def test_a_name_cannot_be_changed(api: ApiUnderTest, config_maps: str) -> None:
    """The name in the object is the name in the path."""
    api.create(config_maps, config_map("a"))
    answer = api.patch(f"{config_maps}/a", {"metadata": {"name": "b"}})
    message = "the name of the object (b) does not match the name on the URL (a)"
    assert (answer.code, answer.message) == (400, message)


def test_what_is_not_there_cannot_be_replaced(api: ApiUnderTest, config_maps: str) -> None:
    """An update does not create."""
    assert api.ask("PUT", f"{config_maps}/a", config_map("a")).code == 404


def test_a_dry_run_leaves_no_trace(api: ApiUnderTest, config_maps: str) -> None:
    """It answers as if; a new object has no version."""
    answer = api.create(config_maps, config_map("a"), dryRun="All")
    assert answer.code == 201
    assert "resourceVersion" not in answer.body["metadata"]
    assert api.get(f"{config_maps}/a").code == 404


def test_merge_patch_removes_with_null(api: ApiUnderTest, config_maps: str) -> None:
    """Maps are merged, null removes; an emptied map is not there."""
    api.create(config_maps, config_map("a", {"x": "1", "y": "2"}, labels={"l": "1"}))
    patch = {"metadata": {"labels": {"l": None}}, "data": {"x": None, "z": "3"}}
    found = api.patch(f"{config_maps}/a", patch).body
    assert found["data"] == {"y": "2", "z": "3"}
    assert "labels" not in found["metadata"]


def test_json_patch_is_all_or_nothing(api: ApiUnderTest, config_maps: str) -> None:
    """A test that fails refuses the patch."""
    api.create(config_maps, config_map("a"))
    add = {"op": "add", "path": "/data/b", "value": "2"}
    test = {"op": "test", "path": "/data/a", "value": "9"}
    answer = api.patch(f"{config_maps}/a", [add, test], content=JSON_PATCH)
    assert answer.code == 422
    assert answer.message == "the server rejected our request due to an error in our request"
    assert api.get(f"{config_maps}/a").body["data"] == {"a": "1"}
    done = api.patch(f"{config_maps}/a", [add], content=JSON_PATCH)
    assert done.body["data"] == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("content", "code"), [("application/json", 415), (MERGE, 400), (JSON_PATCH, 400)]
)
def test_a_patch_must_be_one(api: ApiUnderTest, config_maps: str, content: str, code: int) -> None:
    """Its type is told in the header; its text must be whole."""
    api.create(config_maps, config_map("a"))
    assert api.patch(f"{config_maps}/a", '{"metadata"', content=content).code == code


def test_deletion_answers_with_a_status(api: ApiUnderTest, config_maps: str) -> None:
    """It names the UID of what is gone."""
    uid = api.create(config_maps, config_map("a")).body["metadata"]["uid"]
    answer = api.delete(f"{config_maps}/a")
    assert answer.code == 200
    assert answer.body["status"] == "Success"
    assert answer.body["details"] == {"name": "a", "kind": "configmaps", "uid": uid}
    assert api.delete(f"{config_maps}/a").code == 404


def test_deletion_can_name_whom_it_means(api: ApiUnderTest, config_maps: str) -> None:
    """Another UID or version is refused."""
    uid = api.create(config_maps, config_map("a")).body["metadata"]["uid"]
    answer = api.delete(f"{config_maps}/a", {"preconditions": {"uid": "another"}})
    assert answer.code == 409
    assert answer.message == (
        'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (another) '
        f"does not match the UID in record ({uid}). The object might have been deleted and then "
        "recreated"
    )


def test_a_finalizer_holds_what_is_deleted(api: ApiUnderTest, config_maps: str) -> None:
    """It is marked, takes no new finalizer, and goes when the last one is taken away."""
    api.create(config_maps, config_map("a", finalizers=["example.com/hold"]))
    marked = api.delete(f"{config_maps}/a").body["metadata"]
    assert "deletionTimestamp" in marked
    assert marked["deletionGracePeriodSeconds"] == 0
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    assert api.patch(f"{config_maps}/a", more).message == (
        'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added '
        'if the object is being deleted, found new finalizers []string{"example.com/more"}'
    )
    assert api.patch(f"{config_maps}/a", {"metadata": {"finalizers": None}}).code == 200
    assert api.get(f"{config_maps}/a").code == 404


def test_a_deleted_namespace_is_emptied(api: ApiUnderTest, namespace: str) -> None:
    """It is terminating first; what is in it goes, then it does."""
    path = f"/api/v1/namespaces/{namespace}"
    api.create(f"{path}/configmaps", config_map("a"))
    with api.watch("/api/v1/namespaces", fieldSelector=f"metadata.name={namespace}") as events:
        assert events.next()[0] == "ADDED"
        assert api.delete(path).body["status"]["phase"] == "Terminating"
        while events.next()[0] == "MODIFIED":
            pass
    assert api.get(path).code == 404
    assert api.get(f"{path}/configmaps").body["items"] == []
