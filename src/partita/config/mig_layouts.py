"""Which boards can hold a MIG layout, and what comes nearest when none can.

A layout here is what a config file says: profile → count on one GPU, without placements. It fits
when some choice of placements is legal. The boards are few and short (at most 12 memory slices), so
an exhaustive search with memory is instant; the planner's search, which also keeps what stands, is
another one.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from partita.catalog import legality, library
from partita.catalog.gpu_model import GpuModel, MigCapability, Profile

__all__ = [
    "boards_with",
    "counterpart",
    "fits",
    "is_profile_name",
    "minimum_boards",
    "nearest_layouts",
    "obstacle",
    "profile_attributes",
    "split_profile",
    "text_of",
]

_PROFILE = re.compile(
    r"^(?P<compute>[1-9]c\.)?(?P<size>[1-9]g\.[1-9][0-9]*gb)"
    r"(?P<attributes>(\+(me\.all|me|gfx)(,(me\.all|me|gfx))*)|-me)?$"
)
# What a neighbour costs: an instance missing, swapped or added, a memory slice left unused.
_LOSS, _SWAP, _EXTRA, _UNUSED = 15, 5, 5, 1

Layout = tuple[tuple[str, int], ...]


def split_profile(name: str) -> tuple[str, str, str] | None:
    """Return compute-instance part, size and attributes of a profile name, None when it is none.

    ``1c.3g.20gb`` → ``("1c.", "3g.20gb", "")``. Source: NVIDIA/mig-parted, the profile grammar.
    """
    match = _PROFILE.match(name)
    if match is None:
        return None
    return (match["compute"] or "", match["size"], match["attributes"] or "")


def is_profile_name(name: str) -> bool:
    """Tell whether a text has the form of a profile name, of whatever board."""
    return _PROFILE.match(name) is not None


def boards_with(names: Sequence[str]) -> tuple[GpuModel, ...]:
    """Return the models that have every one of the profiles."""
    return tuple(
        model
        for model in library.models()
        if model.mig is not None and all(name in model.mig.by_name for name in names)
    )


def text_of(counts: Mapping[str, int]) -> str:
    """Return a layout in words, ``2x 3g.40gb + 1x 1g.10gb``."""
    return " + ".join(f"{count}x {name}" for name, count in counts.items() if count) or "nothing"


def fits(mig: MigCapability, counts: Mapping[str, int]) -> bool:
    """Tell whether one GPU can hold the layout in some placement."""
    return obstacle(mig, counts) is None


def obstacle(mig: MigCapability, counts: Mapping[str, int]) -> str | None:
    """Return why no placement holds the layout, in words, None when one does."""
    for name, count in counts.items():
        profile = mig.by_name.get(name)
        if profile is None:
            return f"there is no profile {name}"
        if count > profile.max_instances:
            return f"at most {profile.max_instances}x {name} on one GPU"
    profiles = _expand(mig, counts)
    if not _engines_suffice(mig, profiles):
        return "the media engines do not suffice for all of them"
    wanted = sum(profile.memory_slices for profile in profiles)
    if wanted > mig.memory_slices:
        return f"they take {wanted} memory slices, the GPU has {mig.memory_slices}"
    if not _packs(tuple(_starts(profile) for profile in profiles), 0, 0):
        return "their placements overlap in every arrangement"
    return None


def nearest_layouts(
    mig: MigCapability, counts: Mapping[str, int], limit: int = 3
) -> tuple[Mapping[str, int], ...]:
    """Return the legal layouts nearest to one that is not, nearest first.

    An instance given up weighs most; one of the same size in its place, or one more, weighs little.
    A layout that gives something up is offered only when nothing can be added to it.
    """
    wanted = {name: count for name, count in counts.items() if name in mig.by_name}
    names = tuple(
        profile.name
        for profile in mig.profiles
        if profile.name in wanted or not profile_attributes(profile.name)
    )
    ranked = sorted(
        (_distance(mig, wanted, dict(layout)) + _UNUSED * _free(mig, dict(layout)), layout)
        for layout in _legal_layouts(mig, names)
        if _keeps_all(mig, wanted, dict(layout)) or _is_full(mig, names, dict(layout))
    )
    chosen: list[Counter[str]] = []
    for _, layout in ranked:
        counts_of = Counter(dict(layout))
        if not any(counts_of <= other or other <= counts_of for other in chosen):
            chosen.append(counts_of)
        if len(chosen) == limit:
            break
    return tuple(dict(found) for found in chosen)


def profile_attributes(name: str) -> str:
    """Return the attribute part of a profile name, ``+me`` of ``1g.10gb+me``, else nothing."""
    parts = split_profile(name)
    return parts[2] if parts else ""


def counterpart(profile: str, board: GpuModel) -> str | None:
    """Return the profile of a board that is the same share of it, None when there is none.

    ``1g.5gb`` (an eighth of the memory of a 40 GB board) is ``1g.10gb`` on an 80 GB board.
    """
    homes = boards_with([profile])
    if not homes or board.mig is None or homes[0].mig is None:
        return None
    origin = homes[0].mig.by_name[profile]
    share = origin.memory_slices / homes[0].mig.memory_slices
    attributes = profile_attributes(profile)
    same = [
        candidate
        for candidate in board.mig.profiles
        if candidate.compute_slices == origin.compute_slices
        and profile_attributes(candidate.name) == attributes
    ]
    axis = board.mig.memory_slices
    best = min(same, key=lambda p: abs(p.memory_slices / axis - share), default=None)
    return best.name if best else None


def minimum_boards(mig: MigCapability, counts: Mapping[str, int]) -> int:
    """Return how many boards a number of slices needs at least.

    A bound from instance limits, memory slices and compute slices; the true number may be higher.
    """
    known = {mig.by_name[name]: count for name, count in counts.items() if name in mig.by_name}
    memory = sum(profile.memory_slices * count for profile, count in known.items())
    compute = sum(profile.compute_slices * count for profile, count in known.items())
    each = [_ceiling(count, profile.max_instances) for profile, count in known.items()]
    return max([_ceiling(memory, mig.memory_slices), _ceiling(compute, mig.compute_slices), *each])


def _ceiling(amount: int, unit: int) -> int:
    return -(-amount // unit)


def _expand(mig: MigCapability, counts: Mapping[str, int]) -> tuple[Profile, ...]:
    profiles = [mig.by_name[name] for name, count in counts.items() for _ in range(count)]
    return tuple(sorted(profiles, key=lambda p: (-p.memory_slices, p.name)))


def _starts(profile: Profile) -> tuple[int, ...]:
    return tuple(placement.mask for placement in profile.placements)


def _engines_suffice(mig: MigCapability, profiles: Sequence[Profile]) -> bool:
    pool = legality.engine_pool(mig.full_profile.engines)
    used = [legality.engine_pool(profile.engines) for profile in profiles]
    return all(
        sum(column) <= limit for column, limit in zip(zip(*used, strict=True), pool, strict=False)
    )


@cache
def _packs(masks: tuple[tuple[int, ...], ...], number: int, taken: int) -> bool:
    """Tell whether instances from ``number`` on can stand beside the slices already taken."""
    if number == len(masks):
        return True
    return any(
        not mask & taken and _packs(masks, number + 1, taken | mask) for mask in masks[number]
    )


def _legal_layouts(mig: MigCapability, names: Sequence[str]) -> Iterator[Layout]:
    """Yield every legal non-empty layout of some profiles. Legal layouts are closed downwards."""
    pending: list[tuple[int, Layout]] = [(0, ())]
    while pending:
        first, layout = pending.pop()
        if layout:
            yield layout
        for number in range(first, len(names)):
            count = Counter(dict(layout))
            count[names[number]] += 1
            if fits(mig, count):
                pending.append((number, tuple(count.items())))


def _is_full(mig: MigCapability, names: Sequence[str], counts: Mapping[str, int]) -> bool:
    return not any(fits(mig, Counter(counts) + Counter([name])) for name in names)


def _keeps_all(mig: MigCapability, wanted: Mapping[str, int], offered: Mapping[str, int]) -> bool:
    """Tell whether every wanted instance is there, or one of the same size."""
    have = Counter[tuple[int, int]]()
    for sign, counts in ((1, offered), (-1, wanted)):
        for name, count in counts.items():
            profile = mig.by_name[name]
            have[(profile.compute_slices, profile.memory_slices)] += sign * count
    return min(have.values(), default=0) >= 0


def _distance(mig: MigCapability, wanted: Mapping[str, int], offered: Mapping[str, int]) -> int:
    missing = Counter(wanted) - Counter(offered)
    extra = Counter(offered) - Counter(wanted)
    cost = 0
    for name in list(missing):
        for other in list(extra):
            swapped = min(missing[name], extra[other])
            if _same_size(mig.by_name[name], mig.by_name[other]) and swapped:
                cost += _SWAP * swapped
                missing[name] -= swapped
                extra[other] -= swapped
    return cost + _LOSS * sum(missing.values()) + _EXTRA * sum(extra.values())


def _free(mig: MigCapability, counts: Mapping[str, int]) -> int:
    """Return the memory slices that a layout leaves unused."""
    used = sum(mig.by_name[name].memory_slices * count for name, count in counts.items())
    return mig.memory_slices - used


def _same_size(one: Profile, other: Profile) -> bool:
    return (one.compute_slices, one.memory_slices) == (other.compute_slices, other.memory_slices)
