"""Lists: pages of one moment, and selectors."""

import base64
import json
from collections.abc import Callable

import pytest
from tests.kubernetes.api_server.api_under_test import ApiUnderTest, config_map, names_of, pod


@pytest.fixture
def five(api: ApiUnderTest, config_maps: str) -> str:
    """Return the path of ConfigMaps of which five have the label ``l``."""
    for number in range(5):
        labels = {"l": "1", "number": str(number)}
        assert api.create(config_maps, config_map(f"m{number}", labels=labels)).code == 201
    return config_maps


def test_pages_show_one_moment(api: ApiUnderTest, five: str) -> None:
    """What comes and goes between two pages is not seen; every page has the first one's version."""
    first = api.get(five, labelSelector="l", limit=2)
    token = first.body["metadata"]["continue"]
    api.create(five, config_map("m1a", labels={"l": "1"}))
    api.delete(f"{five}/m2")
    second = api.get(five, labelSelector="l", limit=2, **{"continue": token})
    assert names_of(first) == ["m0", "m1"]
    assert names_of(second) == ["m2", "m3"]
    versions = {one.body["metadata"]["resourceVersion"] for one in (first, second)}
    assert len(versions) == 1


def test_the_last_page_has_no_token(api: ApiUnderTest, five: str) -> None:
    """Without a limit there is no rest, and with one a counted rest only without selectors."""
    assert "continue" not in api.get(five).body["metadata"]
    counted = api.get(five, limit=2).body["metadata"]
    assert counted["remainingItemCount"] == len(names_of(api.get(five))) - 2
    assert "remainingItemCount" not in api.get(five, limit=2, labelSelector="l").body["metadata"]


def test_a_token_tells_where_to_go_on(api: ApiUnderTest, five: str) -> None:
    """It is JSON in base64: the version of the list, and after which key it goes on."""
    metadata = api.get(five, labelSelector="l", limit=2).body["metadata"]
    token = metadata["continue"]
    read = json.loads(base64.urlsafe_b64decode(token + "=="))
    version = int(metadata["resourceVersion"])
    assert read == {"v": "meta.k8s.io/v1", "rv": version, "start": "/m1\0"}


def test_a_token_excludes_a_version(api: ApiUnderTest, five: str) -> None:
    """The token has one already."""
    token = api.get(five, limit=2).body["metadata"]["continue"]
    answer = api.get(five, limit=2, resourceVersion=3, **{"continue": token})
    message = "specifying resource version is not allowed when using continue"
    assert (answer.code, answer.message) == (400, message)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("number in (0,1),l", ["m0", "m1"]),
        ("number notin (0,1),l", ["m2", "m3", "m4"]),
        ("number!=0,l=1", ["m1", "m2", "m3", "m4"]),
        ("number==3", ["m3"]),
        ("number>2", ["m3", "m4"]),
        ("l,!number", []),
        ("l=", []),
    ],
)
def test_labels_select(api: ApiUnderTest, five: str, selector: str, expected: list[str]) -> None:
    """All forms of conditions, joined by commas."""
    assert names_of(api.get(five, labelSelector=selector)) == expected


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (
            "a in (",
            "unable to parse requirement: found '', expected: ',', ')' or identifier",
        ),
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
    ],
)
def test_a_label_selector_must_make_sense(
    api: ApiUnderTest, config_maps: str, selector: str, message: str
) -> None:
    """The server says what it expected."""
    answer = api.get(config_maps, labelSelector=selector)
    assert (answer.code, answer.message) == (400, message)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=p1", ["p1"]),
        ("metadata.name!=p1", ["p2"]),
        ("spec.nodeName=", ["p1", "p2"]),
        ("spec.nodeName=elsewhere", []),
        ("status.phase=Pending,spec.schedulerName=nobody", ["p1", "p2"]),
        ("status.phase!=Pending", []),
    ],
)
def test_some_fields_select(
    api: ApiUnderTest, pods: str, selector: str, expected: list[str]
) -> None:
    """Pods are selected by more fields than others."""
    for name in ("p1", "p2"):
        assert api.create(pods, pod(name)).code == 201
    assert names_of(api.get(pods, fieldSelector=selector)) == expected


def test_other_fields_do_not_select(api: ApiUnderTest, config_maps: str, gadgets: str) -> None:
    """The answer depends on the kind."""
    assert api.get(config_maps, fieldSelector="data.a=1").message == (
        '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"'
    )
    assert api.get(gadgets, fieldSelector="spec.a=1").message == (
        "field label not supported: spec.a"
    )


def test_items_of_built_in_kinds_do_not_name_their_kind(
    api: ApiUnderTest, five: str, gadgets: str
) -> None:
    """The list does; those of custom resources name it too."""
    listed = api.get(five).body
    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert not {"kind", "apiVersion"} & listed["items"][0].keys()
    assert api.get(gadgets).body["kind"] == "GadgetList"


def test_a_forgotten_page_can_be_had_of_another_moment(
    api: ApiUnderTest, five: str, forget: Callable[[], None]
) -> None:
    """The refusal brings a token for the rest; so does no list of a forgotten version."""
    first = api.get(five, labelSelector="l", limit=2).body["metadata"]
    api.create(five, config_map("m1a", labels={"l": "1"}))
    api.delete(f"{five}/m2")
    forget()
    refused = api.get(five, labelSelector="l", limit=2, **{"continue": first["continue"]})
    assert (refused.code, refused.reason) == (410, "Expired")
    assert refused.message.startswith("The provided continue parameter is too old")
    token = refused.body["metadata"]["continue"]
    rest = api.get(five, labelSelector="l", **{"continue": token})
    assert names_of(rest) == ["m1a", "m3", "m4"]
    version = first["resourceVersion"]
    exact = api.get(five, resourceVersion=version, resourceVersionMatch="Exact")
    assert (exact.code, exact.reason) == (410, "Expired")
    assert exact.message == "The resourceVersion for the provided list is too old."
    with api.watch(five, resourceVersion=version) as events:
        kind, status = events.next()
    assert (kind, status["code"]) == ("ERROR", 410)


def test_a_version_that_is_not_there_yet_is_too_large(api: ApiUnderTest, config_maps: str) -> None:
    """The client is asked to come back."""
    answer = api.get(config_maps, resourceVersion=999_999_999)
    assert (answer.code, answer.reason) == (504, "Timeout")
    assert answer.message.startswith("Timeout: Too large resource version: 999999999, current: ")


def test_a_collection_is_deleted_by_selector(api: ApiUnderTest, five: str) -> None:
    """The answer lists what went."""
    answer = api.delete(five, labelSelector="number in (1,2)")
    assert names_of(answer) == ["m1", "m2"]
    assert names_of(api.get(five, labelSelector="l")) == ["m0", "m3", "m4"]
