"""What names and labels must look like, in Kubernetes' words."""

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from partita.simulator.api_server.failures import Cause

__all__ = ["generated", "label_objection", "metadata_objections", "name_objection"]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_SUBDOMAIN}')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    f"for validation is '{_LABEL}')"
)
_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    f"'12345', regex used for validation is '{_VALUE}')"
)
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def generated(prefix: str, random: Random) -> str:
    """Return a name that begins with a prefix."""
    return prefix[:58] + "".join(random.choice(_LETTERS) for _ in range(5))


def name_objection(field: str, name: str) -> Cause | None:
    """Return the objection to an object's name."""
    if re.fullmatch(_SUBDOMAIN, name):
        return None
    return Cause.invalid(field, name, _SUBDOMAIN_RULE)


def label_objection(field: str, name: str) -> Cause | None:
    """Return the objection to a name that must be one label, such as a container's."""
    return None if re.fullmatch(_LABEL, name) else Cause.invalid(field, name, _LABEL_RULE)


def metadata_objections(metadata: Mapping[str, Any]) -> Iterator[Cause]:
    """Yield what is wrong with an object's name and labels."""
    name = metadata.get("name", "")
    if not name:
        yield Cause.required("metadata.name", "name or generateName is required")
    elif objection := name_objection("metadata.name", name):
        yield objection
    for value in (metadata.get("labels") or {}).values():
        if not re.fullmatch(_VALUE, value) or len(value) > _LONGEST_VALUE:
            yield Cause.invalid("metadata.labels", value, _VALUE_RULE)


_LONGEST_VALUE = 63
