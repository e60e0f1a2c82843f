"""Compares measures of future requests under churn: ``python -m bench.future``.

Every rule meets the same requests. No clock is involved: equal arguments print equal figures.
"""

import argparse
import json
import multiprocessing
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.future import churn, geometry
from bench.future.rules import RULES

_WARM_UP = 2000  # requests until the fleet has filled up; not counted
_GPUS = 100
_LOADS = (0.85, 1.0, 1.3)

# How often 1g.10gb, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb and 7g.80gb are asked for, in percent.
_MIXES = {
    "uniform": (1, 1, 1, 1, 1, 1),
    "skew-small": (35, 20, 20, 12, 8, 5),
    "skew-big": (5, 8, 12, 20, 20, 35),
    "bimodal": (35, 10, 5, 5, 10, 35),
}

Shares = Mapping[str, Sequence[churn.Share]]  # rule → what was accepted, per seed
Figures = Mapping[str, Mapping[str, float]]  # cell → rule → percent


def main() -> int:
    """Run every cell with every rule and print what was accepted."""
    options = _options()
    cells = _cells()
    tasks = [(cell, options.requests, options.seeds) for cell in cells]
    results: dict[str, Shares] = {}
    with multiprocessing.Pool() as pool:
        for cell, shares in zip(cells, pool.imap(_run, tasks), strict=True):
            print(cell.name, file=sys.stderr, flush=True)
            results[cell.name] = shares
    print("\n".join(_lines("accepted requests in %", _part(results, "requests"))))
    print()
    print("\n".join(_lines("accepted memory slices in %", _part(results, "memory"))))
    if options.json is not None:
        document = {name: _part(results, name) for name in ("requests", "memory")}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


def _cells() -> list[churn.Cell]:
    a100 = geometry.of("a100-80gb-sxm4")
    h100, a30 = geometry.of("h100-80gb-sxm5"), geometry.of("a30")
    cells = [
        churn.Cell(name=f"{mix} {load:.2f}", load=load, fleet=((a100, _GPUS),), weights=(weights,))
        for mix, weights in _MIXES.items()
        for load in _LOADS
    ]
    mixed = churn.Cell(
        name="70 H100 + 30 A30 1.00",
        load=1.0,
        fleet=((h100, 70), (a30, 30)),
        weights=(_MIXES["uniform"], (1,) * len(a30.sizes)),
    )
    return [*cells, mixed]


def _run(task: tuple[churn.Cell, int, int]) -> Shares:
    cell, count, seeds = task
    shares: dict[str, list[churn.Share]] = {rule: [] for rule in RULES}
    for seed in range(1, seeds + 1):
        asked = list(churn.requests(cell, _WARM_UP + count, seed))
        for rule, found in shares.items():
            found.append(churn.serve(cell, asked, rule, _WARM_UP))
    return shares


def _part(results: Mapping[str, Shares], name: str) -> Figures:
    """Return one of the two shares in percent, mean over seeds: per cell, per rule."""
    return {
        cell: {
            rule: 100 * statistics.fmean(getattr(share, name) for share in found)
            for rule, found in shares.items()
        }
        for cell, shares in results.items()
    }


def _lines(title: str, figures: Figures) -> Iterator[str]:
    yield f"{title}, mean over seeds; the best of a row is marked *"
    yield " " * 24 + "".join(f"{rule[:18]:>20}" for rule in RULES)
    for name, means in figures.items():
        best = max(means.values())
        marked = [f"{mean:.2f}{'*' if mean == best else ' '}" for mean in means.values()]
        yield f"{name:24}" + "".join(f"{text:>20}" for text in marked)
    ranks = [_ranks(list(means.values())) for means in figures.values()]
    by_rule = [statistics.fmean(of_rule) for of_rule in zip(*ranks, strict=True)]
    yield f"{'mean rank':24}" + "".join(f"{rank:>19.2f} " for rank in by_rule)
    yield ""
    yield "points against fewest lost pairs, same requests: mean over cells, lowest, highest cell"
    for rule in RULES:
        gaps = [means[rule] - means["fewest lost pairs"] for means in figures.values()]
        yield f"{rule:28} {statistics.fmean(gaps):+6.2f} {min(gaps):+6.2f} {max(gaps):+6.2f}"


def _ranks(means: Sequence[float]) -> list[float]:
    """Rank of each rule in a cell, 1 = most accepted; equals share the mean of their ranks."""
    return [
        1 + sum(other > mean for other in means) + (sum(other == mean for other in means) - 1) / 2
        for mean in means
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.future", description=__doc__)
    parser.add_argument("--requests", type=int, default=10000, help="per cell, seed and rule")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the shares to a file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
