"""The test bed's command line: build it, open a shell in a cluster, or run a program inside."""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

from testbed import isolation, needs, programs
from testbed.cluster import Cluster
from testbed.errors import TestbedError

_SELF = [sys.executable, "-m", "testbed"]


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.action(options))
    except TestbedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m testbed", description=__doc__)
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    build = actions.add_parser("build", help="build what is missing")
    build.set_defaults(action=_build)

    check = actions.add_parser("check", help="say what is missing, if anything")
    check.set_defaults(action=_check)

    pin = actions.add_parser("pin", help="pin another version of Kubernetes in this folder")
    pin.set_defaults(action=_pin)

    run = actions.add_parser("run", help="run a program where it can start clusters")
    run.add_argument("program", nargs=argparse.REMAINDER)
    run.set_defaults(action=_run)

    shell = actions.add_parser("shell", help="open a shell, or run a program, in a cluster")
    shell.add_argument("--nodes", type=int, default=2)
    shell.add_argument("program", nargs=argparse.REMAINDER)
    shell.set_defaults(action=_shell)
    return parser


def _build(_: argparse.Namespace) -> int:
    programs.build()
    return 0


def _check(_: argparse.Namespace) -> int:
    needs.machine()
    programs.find()
    return 0


def _pin(_: argparse.Namespace) -> int:
    programs.repin()
    return 0


def _run(options: argparse.Namespace) -> int:
    _check(options)
    isolation.enter(options.program)


def _shell(options: argparse.Namespace) -> int:
    if not isolation.inside():
        _check(options)
        isolation.enter([*_SELF, "shell", f"--nodes={options.nodes}", *options.program])
    with Cluster(nodes=options.nodes) as cluster:
        print(f"testbed: {options.nodes} nodes are ready; leave the shell to remove everything")
        command = options.program or [os.environ.get("SHELL", "/bin/sh")]
        return subprocess.run(command, env=cluster.environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
