"""Compares the planner with HiGHS on seeded fleets: ``python -m bench.planner``.

Both are asked for the same six objectives in the same order. What counts are the ratios, measured
in one run on one machine; the seconds are only there to see what they are ratios of.
"""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

_QUICK_LIMIT_SECONDS = 5.0


def main() -> int:
    """Run the comparison; exit status 1 when HiGHS contradicts the planner, 2 without HiGHS."""
    options = _options()
    if importlib.util.find_spec("highspy") is None:
        print("highspy is not installed", file=sys.stderr)
        print("hint: pip install --group bench", file=sys.stderr)
        return 2
    from bench.planner import comparison, report  # noqa: PLC0415  # needs highspy

    sizes = [100] if options.quick else options.sizes
    seeds = 1 if options.quick else options.seeds
    limit = min(options.limit, _QUICK_LIMIT_SECONDS) if options.quick else options.limit
    comparison.scale(sizes[0], 0)  # loads the catalogue and fills caches before anything counts
    compared = [
        comparison.compare(gpus, seed, limit) for gpus in sizes for seed in range(1, seeds + 1)
    ]
    scales = [comparison.scale(gpus, 1) for gpus in ([] if options.quick else options.scaling)]
    print("\n".join(report.lines(compared, scales)))
    if options.json is not None:
        text = json.dumps(report.document(compared, scales), indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 1 if any(item.contradicted for item in compared) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.planner", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 300, 1000], metavar="GPUS")
    parser.add_argument("--seeds", type=int, default=3, help="fleets per size (default 3)")
    parser.add_argument(
        "--scaling",
        type=int,
        nargs="*",
        default=[1000, 3000, 10000],
        metavar="GPUS",
        help="sizes for partita alone",
    )
    parser.add_argument(
        "--limit", type=float, default=120.0, help="seconds per stage for HiGHS, by the clock"
    )
    parser.add_argument("--quick", action="store_true", help="100 GPUs, one seed, nothing else")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
