"""``Accept``: in which form a client wants objects."""

from dataclasses import dataclass

from partita.simulator.api_server import failures

__all__ = ["Form", "negotiate"]

_AVAILABLE = "application/json, application/yaml"
_KINDS = {"Table", "PartialObjectMetadata", "PartialObjectMetadataList"}
_JSON = {"application/json", "application/*", "*/*", ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form of objects.

    Attributes:
        kind: ``Table``, ``PartialObjectMetadata``, or empty for the objects themselves.
        media_type: What the answer says it is.
        is_yaml: Whether it is written in YAML.
    """

    kind: str = ""
    media_type: str = "application/json"
    is_yaml: bool = False


def negotiate(accept: str) -> Form:
    """Return the first form that a client names and that is offered; protobuf is not.

    Raises:
        ApiFailure: When there is none.
    """
    for one in accept.split(",") if accept else [""]:
        media, *parameters = (part.strip() for part in one.split(";"))
        found = dict(part.split("=", 1) for part in parameters if "=" in part)
        kind = found.get("as", "")
        if media == "application/yaml" and not kind:
            return Form(media_type=media, is_yaml=True)
        if media not in _JSON or found.get("g", "meta.k8s.io") != "meta.k8s.io":
            continue
        if kind in _KINDS and found.get("v") == "v1":
            return Form(kind=kind.removesuffix("List"))
        if not kind:
            return Form()
    raise failures.not_acceptable(_AVAILABLE)
