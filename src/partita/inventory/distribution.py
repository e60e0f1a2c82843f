"""How counted slices may be spread over the GPUs of a node, when no source says where they are.

A node object counts: 56 slices of ``1g.5gb``, 8 GPUs. Sometimes the counts admit one answer only
(seven on each), sometimes several, and sometimes none, because the kubelet keeps numbers of devices
that are long gone. Equal GPUs are not told apart: an answer says how many are cut in which way.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from partita.catalog.gpu_model import MigCapability, Profile
from partita.catalog.legality import engine_pool

__all__ = ["Distribution", "distribute"]

_STEPS = 12_000  # of all searches for one node: a second; what is consistent takes a tenth
_MOST_CLAIMS = 8  # so many counts are tried in all combinations

Counts = tuple[int, ...]
Answer = tuple[tuple[Counts, ...], ...]  # per group of equal GPUs: what each cut one has


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Slices on GPUs.

    Attributes:
        layouts: Per GPU, in the order given: its profiles; None = it is whole.
        unique: Whether the counts admit no other distribution, up to which of equal GPUs is which.
        dropped: Counted profiles that cannot be there together with the rest; ``gpu`` for whole.
        guessed: Whether others could have been dropped instead.
    """

    layouts: tuple[tuple[str, ...] | None, ...]
    unique: bool
    dropped: tuple[str, ...] = ()
    guessed: bool = False


def distribute(
    boards: Sequence[MigCapability],
    slices: Mapping[str, int],
    *,
    whole: int | None,
    confirmed: frozenset[str] = frozenset(),
) -> Distribution | None:
    """Return how the slices may be spread, None when no legal way is found.

    Args:
        boards: The GPUs.
        slices: Number of slices by profile.
        whole: How many of the GPUs are not cut, None when not known.
        confirmed: Profiles whose count a second source tells too; they are dropped last.
    """
    claims: dict[str, int] = {**slices, **({_WHOLE: whole} if whole else {})}
    best: list[tuple[tuple[int, ...], Distribution]] = []
    steps = _STEPS
    for size in range(len(claims), 0, -1):
        if best or (size < len(claims) and len(claims) > _MOST_CLAIMS):
            break
        for kept in itertools.combinations(sorted(claims), size):
            found, steps = _spread(boards, {k: claims[k] for k in kept}, whole, steps)
            if found is None and steps < 0:
                return None
            if found is not None:
                dropped = tuple(name for name in claims if name not in kept)
                found = replace(found, dropped=dropped)
                best.append((_trust(kept, claims, confirmed), found))
    if not best:
        return None
    best.sort(key=lambda entry: entry[0], reverse=True)
    rank, chosen = best[0]
    alike = sum(1 for other, _ in best if other[0] == rank[0])
    return replace(chosen, guessed=bool(chosen.dropped) and alike > 1)


_WHOLE = "gpu"


def _trust(
    kept: Sequence[str], claims: Mapping[str, int], confirmed: frozenset[str]
) -> tuple[int, ...]:
    """More confirmed counts first, then more slices: leftovers are rarely the larger numbers."""
    return (sum(1 for name in kept if name in confirmed), sum(claims[name] for name in kept))


def _spread(
    boards: Sequence[MigCapability], kept: Mapping[str, int], whole: int | None, steps: int
) -> tuple[Distribution | None, int]:
    """Return a distribution and the steps left; below 0, that there is none is not sure."""
    uncut = kept.get(_WHOLE, 0)
    counts = {name: count for name, count in kept.items() if name != _WHOLE}
    if uncut > len(boards):
        return None, steps
    groups = _groups(boards)
    names = tuple(counts)
    search = _Search(
        sizes=tuple(len(numbers) for _, numbers in groups),
        kinds=tuple(_kinds(mig, names) for mig, _ in groups),
        limits=tuple(_limit(mig, names) for mig, _ in groups),
        cut=len(boards) - uncut,
        steps=steps,
    )
    answers = list(itertools.islice(search.answers(tuple(counts.values())), 2))
    if not answers:
        return None, search.steps
    known = whole is not None and (_WHOLE in kept or not whole)
    layouts = _placed(groups, answers[0], names, uncut if known else None, len(boards))
    unique = len(answers) == 1 and search.steps >= 0
    return Distribution(layouts=layouts, unique=unique), search.steps


def _groups(boards: Sequence[MigCapability]) -> list[tuple[MigCapability, list[int]]]:
    found: dict[MigCapability, list[int]] = {}
    for number, mig in enumerate(boards):
        found.setdefault(mig, []).append(number)
    return list(found.items())


def _placed(
    groups: Sequence[tuple[MigCapability, list[int]]],
    answer: Answer,
    names: Sequence[str],
    uncut: int | None,
    total: int,
) -> tuple[tuple[str, ...] | None, ...]:
    """Give each GPU its part; whole ones first, cut but empty ones before those with slices."""
    layouts: list[tuple[str, ...] | None] = [None] * total
    left = total if uncut is None else uncut
    for (_, numbers), cut in zip(groups, answer, strict=True):
        empty = len(numbers) - len(cut)
        skipped = min(left, empty)
        left -= skipped
        parts = [()] * (empty - skipped) + [_names(counts, names) for counts in cut]
        for number, part in zip(numbers[skipped:], parts, strict=True):
            layouts[number] = part
    return tuple(layouts)


def _names(counts: Counts, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(n for name, count in zip(names, counts, strict=True) for n in [name] * count)


@lru_cache(maxsize=512)
def _kinds(mig: MigCapability, names: tuple[str, ...]) -> tuple[Counts, ...]:
    """Return every way to cut one GPU into these profiles, as counts, fullest first.

    Full is what comes near the limit of its profiles: what is hard to place goes first.
    """
    profiles = [mig.by_name.get(name) for name in names]
    places = sorted(
        (placement, number)
        for number, profile in enumerate(profiles)
        for placement in (profile.placements if profile is not None else ())
    )
    found = {(0, (0,) * len(names))}
    for placement, number in places:
        found |= {
            (taken | placement.mask, (*c[:number], c[number] + 1, *c[number + 1 :]))
            for taken, c in found
            if not taken & placement.mask
        }
    legal = {c for _, c in found if any(c) and _fits(mig, profiles, c)}
    most = [profile.max_instances if profile is not None else 1 for profile in profiles]
    fullness = {c: sum(n / limit for n, limit in zip(c, most, strict=True)) for c in legal}
    return tuple(sorted(legal, key=lambda c: (fullness[c], c), reverse=True))


def _fits(mig: MigCapability, profiles: Sequence[Profile | None], counts: Counts) -> bool:
    pool = engine_pool(mig.full_profile.engines)
    used = [0] * len(pool)
    for profile, count in zip(profiles, counts, strict=True):
        if profile is not None and count > profile.max_instances:
            return False
        for engine, number in enumerate(engine_pool(profile.engines) if profile else ()):
            used[engine] += number * count
    return all(taken <= there for taken, there in zip(used, pool, strict=True))


@lru_cache(maxsize=512)
def _limit(mig: MigCapability, names: tuple[str, ...]) -> tuple[Counts, Counts]:
    """Return per resource what one slice of each profile takes, and what a GPU has.

    Resources are the profiles' own limits, compute slices and memory slices.
    """
    most = [max((c[n] for c in _kinds(mig, names)), default=0) for n in range(len(names))]
    profiles = [mig.by_name.get(name) for name in names]
    compute = tuple(p.compute_slices if p else 1 for p in profiles)
    memory = tuple(p.memory_slices if p else 1 for p in profiles)
    return (*compute, *memory), (*most, mig.compute_slices, mig.memory_slices)


@dataclass(kw_only=True)
class _Search:
    """A bounded search for ways to spread counts over groups of equal GPUs.

    Attributes:
        sizes: Number of GPUs per group.
        kinds: Ways to cut a GPU of the group.
        limits: What slices take of a GPU and what it has, see ``_limit``.
        cut: How many GPUs may be cut.
        steps: How long it may go on.
    """

    sizes: Counts
    kinds: tuple[tuple[Counts, ...], ...]
    limits: tuple[tuple[Counts, Counts], ...]
    cut: int
    steps: int
    _dead: set[tuple[int, int, int, int, Counts]] = field(default_factory=set)

    def answers(self, counts: Counts) -> Iterator[Answer]:
        """Yield answers; it may end early, but what it yields is right."""
        if not any(counts):
            yield tuple(() for _ in self.sizes)
            return
        yield from self._group(0, self.cut, counts)

    def _group(self, group: int, cut: int, counts: Counts) -> Iterator[Answer]:
        if group == len(self.sizes):
            if not any(counts):
                yield ()
            return
        size = min(self.sizes[group], cut)
        for chosen, rest, used in self._kind(group, 0, size, cut, counts):
            for others in self._group(group + 1, cut - used, rest):
                yield (chosen, *others)

    def _kind(
        self, group: int, kind: int, size: int, cut: int, counts: Counts
    ) -> Iterator[tuple[tuple[Counts, ...], Counts, int]]:
        """Yield choices of ways for up to ``size`` GPUs of a group, what is left, and how many."""
        state = (group, kind, size, cut, counts)
        self.steps -= 1
        if self.steps < 0 or state in self._dead or not self._possible(group, size, cut, counts):
            return
        last = group + 1 == len(self.sizes)
        if kind == len(self.kinds[group]) or not any(counts):
            if not last or not any(counts):
                yield (), counts, 0
            return
        fruitful = False
        own = self.kinds[group][kind]
        for many in range(_fitting(own, counts, size), -1, -1):
            rest = tuple(c - many * o for c, o in zip(counts, own, strict=True))
            for chosen, left, used in self._kind(group, kind + 1, size - many, cut - many, rest):
                fruitful = True
                yield (own,) * many + chosen, left, used + many
        if not fruitful and self.steps > 0:
            self._dead.add(state)

    def _possible(self, group: int, size: int, cut: int, counts: Counts) -> bool:
        """Whether the GPUs that are left have room at all."""
        others = [min(s, cut) for s in self.sizes[group + 1 :]]
        gpus = [(size, self.limits[group]), *zip(others, self.limits[group + 1 :], strict=True)]
        number = len(counts)
        takes = self.limits[group][0]
        needs = (
            *counts,
            sum(c * t for c, t in zip(counts, takes[:number], strict=True)),
            sum(c * t for c, t in zip(counts, takes[number:], strict=True)),
        )
        rooms = [sum(n * limit[1][r] for n, limit in gpus) for r in range(len(needs))]
        exact = len(self.sizes) == 1  # sizes in slices differ between models
        checked = zip(needs[: None if exact else number], rooms, strict=False)
        return all(need <= room for need, room in checked)


def _fitting(own: Counts, counts: Counts, size: int) -> int:
    return min(size, *(c // o for c, o in zip(counts, own, strict=True) if o))
