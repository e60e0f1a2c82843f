"""How sure the catalogue is, in what is shown: ``unknown``, a ``?`` mark, and the reasons.

Figures that no source shows for a board are in the catalogue all the same, with their reason. The
reader sees which they are; none of them looks like a measured one.
"""

from collections.abc import Sequence

from partita.catalog.gpu_model import GpuModel

__all__ = ["UNKNOWN", "doubts", "marked", "number", "numbers"]

UNKNOWN = "unknown"
_MARK = "?"

_FIELDS = {
    "memory_mib": "memory",
    "sm_count": "SMs",
    "compute_capability": "compute capability",
    "mig.min_driver": "MIG driver",
    "mig.placements": "placements",
    "mig.profile_id": "profile ids",
    "mig.profiles": "profiles",
    "mig.profiles.memory_mib": "profile memory",
    "mig.profiles.sm_count": "profile SMs",
}
_PROFILE_FIELDS = {
    "all": "all values",
    "name": "names",
    "profile_id": "ids",
    "memory_slices": "memory slices",
    "memory_mib": "MiB",
    "sm_count": "SMs",
    "placements": "placements",
    "engines": "engine counts (in the JSON form)",
}


def marked(text: str, *, doubtful: bool) -> str:
    """Return the text with a ``?`` behind it when it is doubtful."""
    return text + _MARK if doubtful and text != UNKNOWN else text


def number(value: int | None, *, doubtful: bool = False) -> str:
    """Return a number as text, ``unknown`` when there is none."""
    return marked(UNKNOWN if value is None else str(value), doubtful=doubtful)


def numbers(column: Sequence[str]) -> list[str]:
    """Return the texts of a right-aligned column with a blank where others have a ``?``."""
    if not any(text.endswith(_MARK) for text in column):
        return list(column)
    return [text if text.endswith(_MARK) else text + " " for text in column]


def doubts(model: GpuModel) -> list[tuple[str, str]]:
    """Return what is not sure of a board, as (what, why); empty when all was seen."""
    found = [(_FIELDS.get(field, field), _reason(why)) for field, why in model.uncertain.items()]
    if model.mig is None:
        return found
    if model.mig.axis_is_nominal:
        why = "nominal, no source shows the driver's units; expect other starts and sizes there"
        found.append(("axis", why))
    doubtful = {field for profile in model.mig.profiles for field in profile.uncertain}
    if doubtful:
        fields = ", ".join(words for field, words in _PROFILE_FIELDS.items() if field in doubtful)
        found.append(("in profiles", f"{fields}: derived or estimated, not read from such a board"))
    return found


def _reason(why: str) -> str:
    level, _, reason = why.partition(":")
    return f"{level} confidence" + (f":{reason}" if reason else "")
