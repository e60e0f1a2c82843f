"""Watches: what they tell, from when on, and how they end."""

from tests.kubernetes.api_server.api_under_test import TABLE, ApiUnderTest, config_map
from tests.kubernetes.api_server.gadget import gadget


def _version(api: ApiUnderTest, path: str) -> str:
    return str(api.get(path).body["metadata"]["resourceVersion"])


def test_a_watch_tells_what_happened_since(api: ApiUnderTest, config_maps: str) -> None:
    """It begins after the version that it names; deletions have a version of their own."""
    since = _version(api, config_maps)
    versions = [
        api.create(config_maps, config_map("a")).body["metadata"]["resourceVersion"],
        api.patch(f"{config_maps}/a", {"data": {"a": "2"}}).body["metadata"]["resourceVersion"],
    ]
    api.delete(f"{config_maps}/a")
    selector = "metadata.name=a"
    with api.watch(config_maps, resourceVersion=since, fieldSelector=selector) as events:
        told = [events.next() for _ in range(3)]
    assert [kind for kind, _ in told] == ["ADDED", "MODIFIED", "DELETED"]
    seen = [found["metadata"]["resourceVersion"] for _, found in told]
    assert seen[:2] == versions
    assert int(seen[2]) > int(seen[1])
    assert told[2][1]["data"] == {"a": "2"}


def test_a_watch_without_version_begins_with_what_is_there(
    api: ApiUnderTest, config_maps: str
) -> None:
    """Everything that there is comes as added, then what happens."""
    api.create(config_maps, config_map("a", labels={"l": "1"}))
    with api.watch(config_maps, labelSelector="l") as events:
        assert events.next()[0] == "ADDED"
        api.create(config_maps, config_map("b", labels={"l": "1"}))
        kind, found = events.next()
    assert (kind, found["metadata"]["name"]) == ("ADDED", "b")
    assert (found["kind"], found["apiVersion"]) == ("ConfigMap", "v1")


def test_what_leaves_a_selection_is_deleted_for_its_watch(
    api: ApiUnderTest, config_maps: str
) -> None:
    """It is told as it was when it was still meant, in the version in which it left."""
    since = _version(api, config_maps)
    api.create(config_maps, config_map("a", labels={"l": "in"}))
    left = api.patch(f"{config_maps}/a", {"metadata": {"labels": {"l": "out"}}}).body
    api.patch(f"{config_maps}/a", {"metadata": {"labels": {"l": "in"}}})
    with api.watch(config_maps, resourceVersion=since, labelSelector="l=in") as events:
        told = [events.next() for _ in range(3)]
    assert [kind for kind, _ in told] == ["ADDED", "DELETED", "ADDED"]
    gone = told[1][1]["metadata"]
    assert gone["labels"] == {"l": "in"}
    assert gone["resourceVersion"] == left["metadata"]["resourceVersion"]


def test_a_watch_ends_after_its_time(api: ApiUnderTest, config_maps: str) -> None:
    """The server closes the stream without a word."""
    since = _version(api, config_maps)
    with api.watch(config_maps, resourceVersion=since, timeoutSeconds=1, labelSelector="l") as it:
        assert it.next() == ("", {})


def test_a_forgotten_version_is_told_in_the_stream(api: ApiUnderTest, gadgets: str) -> None:
    """The answer is 200; the first event is an error 410, and then the stream ends.

    Of a custom resource, nothing before its definition is known.
    """
    with api.watch(gadgets, resourceVersion=1) as events:
        kind, status = events.next()
        assert events.code == 200
        assert kind == "ERROR"
        assert (status["code"], status["reason"]) == (410, "Expired")
        assert status["message"].startswith("too old resource version: 1 (")
        assert events.next() == ("", {})


def test_a_version_must_be_a_number(api: ApiUnderTest, config_maps: str) -> None:
    """A watch says 500 where a list says 400."""
    rest = 'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax'
    listed = api.get(config_maps, resourceVersion="x")
    assert (listed.code, listed.message) == (400, f"invalid resource version: {rest}")
    watched = api.get(config_maps, resourceVersion="x", watch=1)
    assert (watched.code, watched.message) == (500, rest)


def test_initial_events_end_with_a_bookmark(api: ApiUnderTest, config_maps: str) -> None:
    """A watch can stand for a list; without the match of versions it is refused."""
    api.create(config_maps, config_map("a", labels={"l": "1"}))
    options = {"sendInitialEvents": "true", "labelSelector": "l"}
    match = {"resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    with api.watch(config_maps, **options, **match) as events:
        assert events.next()[0] == "ADDED"
        kind, found = events.next()
    assert kind == "BOOKMARK"
    assert found["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    refused = api.get(config_maps, watch=1, **options)
    assert (refused.code, refused.reason) == (422, "Invalid")


def test_custom_resources_are_watched_alike(api: ApiUnderTest, gadgets: str, name: str) -> None:
    """Spec and status are one object."""
    with api.watch(gadgets, fieldSelector=f"metadata.name={name}") as events:
        api.create(gadgets, gadget(name))
        api.patch(f"{gadgets}/{name}/status", {"status": {"x": 1}})
        api.delete(f"{gadgets}/{name}")
        assert events.types(3) == ["ADDED", "MODIFIED", "DELETED"]


def test_only_the_first_table_names_its_columns(api: ApiUnderTest, config_maps: str) -> None:
    """A watch can be shown as tables, one row each."""
    for name in ("a", "b"):
        api.create(config_maps, config_map(name, labels={"l": "1"}))
    accept = {"accept": TABLE}
    listed = api.ask("GET", config_maps, labelSelector="l", **accept).body
    assert [row["cells"][:2] for row in listed["rows"]] == [["a", 1], ["b", 1]]
    with api.watch(config_maps, labelSelector="l", as_table=True) as events:
        first, second = events.next()[1], events.next()[1]
    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert second["columnDefinitions"] is None
    assert second["rows"][0]["cells"][0] == "b"
