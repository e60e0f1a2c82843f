"""The MIG profiles of a GPU model as a table: what each gives and where it may stand."""

from collections.abc import Sequence

from partita.catalog.gpu_model import GpuModel, MigCapability, Profile
from partita.model import resource
from partita.model.placement import Placement
from partita.views import certainty
from partita.views.style import Style
from partita.views.table import Align, Column, table_of

__all__ = ["lines", "placements", "split_name", "summary"]

_Filled = tuple[Column, list[str]]  # a column and its cells


def lines(model: GpuModel, mig: MigCapability, *, width: int, style: Style) -> list[str]:
    """Return the table of profiles.

    Where resource names do not fit in, they follow as a second table instead of being shortened.
    """
    name, *figures = _columns(model, mig)
    resources = _words("RESOURCE", [resource.mig_resource(p.name) for p in mig.profiles])
    whole = table_of([name, resources, *figures], indent=2)
    if whole.natural_width <= width:
        return whole.lines(width=width, style=style)
    tables = (table_of([name, *figures], indent=2), table_of([name, resources], indent=2))
    first, second = (table.lines(width=width, style=style) for table in tables)
    return [*first, "", *second]


def placements(where: Sequence[Placement]) -> str:
    """Return placements as ``nvidia-smi mig -lgipp`` prints them: ``{0,2,4}:2``."""
    starts = ",".join(str(placement.start) for placement in where)
    return f"{{{starts}}}:{where[0].size}"


def split_name(profile: str) -> tuple[str, str]:
    """Return a profile's size and its attributes: ``1g.24gb+me.all`` → ``1g.24gb``, ``+me.all``."""
    end = min((profile.find(sign) for sign in "+-" if sign in profile), default=len(profile))
    return profile[:end], profile[end:]


def summary(mig: MigCapability, *, full: bool) -> str:
    """Return the profiles in short: all sizes and attributes, or only the range of sizes."""
    names = [split_name(profile.name) for profile in mig.profiles]
    sizes = list(dict.fromkeys(size for size, _ in names))
    if not full:
        return f"{sizes[0]} … {sizes[-1]}"
    return " ".join([*sizes, *dict.fromkeys(attribute for _, attribute in names if attribute)])


def _columns(model: GpuModel, mig: MigCapability) -> list[_Filled]:
    shaky_axis = mig.axis_is_nominal or "mig.placements" in model.uncertain
    found = mig.profiles
    columns = [
        _words("PROFILE", [_sure(p, "name", p.name) for p in found]),
        _numbers("ID", [_number(p, "profile_id", p.profile_id) for p in found]),
        _numbers("COMPUTE", [str(p.compute_slices) for p in found]),
        _numbers("MEMORY", [_number(p, "memory_slices", p.memory_slices) for p in found]),
        _numbers("MiB", [_number(p, "memory_mib", p.memory_mib) for p in found]),
        _numbers("SMs", [_number(p, "sm_count", p.sm_count) for p in found]),
        _numbers("MAX", [str(p.max_instances) for p in found]),
        _words("PLACEMENTS", [_where(p, doubtful=shaky_axis) for p in found]),
    ]
    if any(profile.min_driver for profile in found):
        columns.append(_words("DRIVER", [profile.min_driver or "" for profile in found]))
    return columns


def _words(title: str, cells: list[str]) -> _Filled:
    return Column(title=title), cells


def _numbers(title: str, cells: list[str]) -> _Filled:
    return Column(title=title, align=Align.RIGHT), certainty.numbers(cells)


def _where(profile: Profile, *, doubtful: bool) -> str:
    doubtful = doubtful or _doubtful(profile, "placements")
    return certainty.marked(placements(profile.placements), doubtful=doubtful)


def _number(profile: Profile, field: str, value: int | None) -> str:
    return certainty.number(value, doubtful=_doubtful(profile, field))


def _sure(profile: Profile, field: str, text: str) -> str:
    return certainty.marked(text, doubtful=_doubtful(profile, field))


def _doubtful(profile: Profile, field: str) -> bool:
    return field in profile.uncertain or "all" in profile.uncertain
