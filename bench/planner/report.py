"""The figures as text and as a document."""

import dataclasses
import os
import platform
import statistics
from collections.abc import Iterator, Sequence
from importlib import metadata

from bench.planner.comparison import STAGES, Comparison, Peer, Scale

__all__ = ["document", "lines"]


def document(comparisons: Sequence[Comparison], scales: Sequence[Scale]) -> dict[str, object]:
    """Return the figures as plain values."""
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "highspy": metadata.version("highspy"),
        "stages": STAGES,
        "comparisons": [dataclasses.asdict(item) for item in comparisons],
        "scaling": [dataclasses.asdict(item) for item in scales],
    }


def lines(comparisons: Sequence[Comparison], scales: Sequence[Scale]) -> Iterator[str]:
    """Yield the report line by line."""
    yield f"{os.cpu_count()} cores, Python {platform.python_version()}, HiGHS by highspy " + (
        metadata.version("highspy")
    )
    yield "seconds are those of one CPU; objectives: " + ", ".join(STAGES)
    for item in comparisons:
        yield ""
        yield from _one(item)
    yield ""
    yield from _summary(comparisons)
    if scales:
        yield ""
        yield "partita alone, one run each"
    for item in scales:
        each = 1000 * item.plan_seconds / item.gpus
        yield (
            f"  {item.gpus:6} GPUs  {item.plan_seconds:7.2f} s  {each:5.2f} ms per GPU"
            f"  {_proven(item.proven)}"
        )


def _one(item: Comparison) -> Iterator[str]:
    yield (
        f"{item.gpus} GPUs, seed {item.seed}: {item.pods} pods, {item.groups} groups of equal GPUs,"
        f" {item.options} options"
    )
    yield (
        f"  partita     {_numbers(item.objectives)}  {_proven(item.proven)};"
        f" plan {item.plan_seconds:.2f} s, core {item.core_seconds:.2f} s,"
        f" search {item.search_seconds:.2f} s"
    )
    for name, peer in (("aggregated", item.aggregated), ("natural", item.natural)):
        verdict = _verdict(item.objectives, peer)
        yield (
            f"  {name:10}  {verdict};"
            f" {peer.seconds:.2f} s, {peer.columns} columns, {peer.rows} rows"
        )
    yield (
        f"  HiGHS/partita: natural {_ratio(item.natural, item.plan_seconds)} of plan,"
        f" {_ratio(item.natural, item.core_seconds)} of core;"
        f" aggregated {_ratio(item.aggregated, item.search_seconds)} of search"
    )


def _summary(comparisons: Sequence[Comparison]) -> Iterator[str]:
    yield "HiGHS/partita, median over seeds (> where a stage was stopped at the limit)"
    for gpus in dict.fromkeys(item.gpus for item in comparisons):
        some = [item for item in comparisons if item.gpus == gpus]
        plain = statistics.median(item.natural.seconds / item.core_seconds for item in some)
        strong = statistics.median(item.aggregated.seconds / item.search_seconds for item in some)
        more = "" if all(item.natural.finished for item in some) else ">"
        proven = sum(item.proven for item in some)
        yield (
            f"  {gpus:6} GPUs  natural/core {more}{plain:.1f}  aggregated/search {strong:.1f}"
            f"  proven {proven} of {len(some)}"
        )


def _verdict(ours: Sequence[int], peer: Peer) -> str:
    """``same``, or the stages in which HiGHS differs; and where it was stopped."""
    pairs = zip(STAGES, ours, peer.objectives, strict=False)
    different = [f"{stage} {theirs - mine:+}" for stage, mine, theirs in pairs if mine != theirs]
    said = ", ".join(different) or "same"
    if peer.finished:
        return said
    return f"{said} so far, stopped at the limit in: {STAGES[len(peer.objectives)]}"


def _ratio(peer: Peer, seconds: float) -> str:
    return f"{'' if peer.finished else '>'}{peer.seconds / seconds:.1f}"


def _numbers(values: Sequence[int]) -> str:
    return "(" + ", ".join(str(value) for value in values) + ")"


def _proven(proven: bool) -> str:  # noqa: FBT001  # its only argument
    return "proven" if proven else "not proven"
