"""JSON and YAML text to untyped documents, with every way to fail said in one error.

It differs from the stock parsers where those lose something: a key that stands twice is an error,
a date stays the text it was, and only the types that JSON has too are built from YAML.
"""

import json
import re
from collections.abc import Hashable
from typing import NoReturn

import yaml

from partita.config.untyped import HINT, Untyped, shown
from partita.errors import InputError

__all__ = ["parse"]

_JSON_START = re.compile(r'\s*(?:\{\s*(?:["}]|\Z)|\[)')
_BLANKS = re.compile(r"\s*")
_TAG = "tag:yaml.org,2002:"
_TYPES = frozenset(_TAG + name for name in ("null", "bool", "int", "float", "str", "seq", "map"))
_Mapping = dict[Hashable, object]


def parse(text: str, *, path: str, hint: str = HINT) -> tuple[Untyped, ...]:
    """Return the documents of a JSON text (also several, one after another) or a YAML text.

    Raises:
        InputError: With line and column, when the text is neither.
    """
    if _JSON_START.match(text):
        values = _json_values(text, path=path, hint=hint)
    else:
        values = _yaml_values(text, path=path, hint=hint)
    return tuple(Untyped(value, path, hint=hint) for value in values)


def _json_values(text: str, *, path: str, hint: str) -> list[object]:
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse)
    values: list[object] = []
    position = _after_blanks(text, 0)
    try:
        while position < len(text):
            value, end = decoder.raw_decode(text, position)
            values.append(value)
            position = _after_blanks(text, end)
    except json.JSONDecodeError as error:
        raise _broken_json(error, path=path, hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise _unreadable("JSON", error, path=path, hint=hint) from error
    return values


def _after_blanks(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    return match.end() if match else position


def _broken_json(error: json.JSONDecodeError, *, path: str, hint: str) -> InputError:
    cut = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string")
    return InputError(
        message="the JSON ends too early" if cut else f"broken JSON: {_lower(error.msg)}",
        hint=f"the file looks cut off; {hint}" if cut else hint,
        path=path,
        line=error.lineno,
        column=error.colno,
    )


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a key stands twice in one object: {shown(_repeated(pairs))}")
    return found


def _repeated(pairs: list[tuple[str, object]]) -> str:
    seen: set[str] = set()
    return next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"no JSON number: {word}")


def _yaml_values(text: str, *, path: str, hint: str) -> list[object]:
    try:
        return [value for value in yaml.load_all(text, Loader=_Loader) if value is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InputError(
            message=f"broken YAML: {_lower(error.problem or str(error))}",
            hint=hint,
            path=path,
            line=None if mark is None else mark.line + 1,
            column=None if mark is None else mark.column + 1,
        ) from error
    except (yaml.YAMLError, LookupError, ValueError, RecursionError) as error:
        # An explicit tag on unfit text (``!!int ''``) comes out as LookupError or ValueError.
        raise _unreadable("YAML", error, path=path, hint=hint) from error


def _unreadable(language: str, error: Exception, *, path: str, hint: str) -> InputError:
    reason = str(error).partition("\n")[0]
    if isinstance(error, RecursionError):
        reason = "it nests too deeply"
    elif "integer string conversion" in reason:
        reason = "a number has thousands of digits"
    return InputError(message=f"broken {language}: {_lower(reason)}", hint=hint, path=path)


def _lower(text: str) -> str:
    """Return a foreign message as part of ours: lower case, short, safe to print."""
    return ascii(text[:1].lower() + text[1:200])[1:-1].rstrip(".")


class _Loader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """PyYAML's safe loader, cut down to the types of JSON and strict about repeated keys."""

    yaml_constructors = {  # noqa: RUF012 - how PyYAML is configured
        tag: build
        for tag, build in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag in _TYPES
    }
    yaml_implicit_resolvers = {  # noqa: RUF012 - likewise
        first: [pair for pair in pairs if pair[0] in _TYPES or pair[0] == _TAG + "merge"]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> _Mapping:  # noqa: FBT001, FBT002 - PyYAML's signature
        """Build a mapping and refuse a key that stands in it twice."""
        written = len(node.value)
        merges = any(key.tag == _TAG + "merge" for key, _ in node.value)
        found: _Mapping = super().construct_mapping(node, deep=deep)
        if not merges and len(found) != written:
            raise yaml.constructor.ConstructorError(
                None, None, "a key stands twice in one mapping", node.start_mark
            )
        return found
