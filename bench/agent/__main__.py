"""Measures the node agent against its goals: ``python -m bench.agent``.

Nothing of the machine is touched: the GPUs are simulated, and so is the kubelet, over the real
protocols. What the driver itself takes on real GPUs comes on top of each figure.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from bench.agent import allocation, cut, rest
from bench.agent.report import Report


def main() -> int:
    """Measure and print."""
    options = _options()
    report = asyncio.run(_measure(options))
    print("\n".join(report.lines()))
    if options.json is not None:
        text = json.dumps(report.document(), indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0


async def _measure(options: argparse.Namespace) -> Report:
    _say(f"cut of {options.gpus} GPUs, {options.cuts} times")
    cuts = await cut.measure(options.gpus, options.cuts)
    _say(f"Allocate, {options.calls} times")
    allocated = await allocation.measure(options.gpus, options.calls)
    _say(f"at rest, for {options.seconds:g} s")
    costs = await rest.measure(options.gpus, options.seconds, settle=options.settle)
    return Report(cut=cuts, allocation=allocated, costs=costs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.agent", description=__doc__)
    parser.add_argument("--gpus", type=int, default=8, help="GPUs of the node (default 8)")
    parser.add_argument("--cuts", type=int, default=5, help="how often it is cut (default 5)")
    parser.add_argument("--calls", type=int, default=1000, help="of Allocate (default 1000)")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="how long it is watched (default 60)"
    )
    parser.add_argument(
        "--settle", type=float, default=10.0, help="how long it is left alone before (default 10)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file")
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
