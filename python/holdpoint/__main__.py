"""`python -m holdpoint serve FILE.py|MODULE …` serves declared workloads, `engine MODEL` a model at given shapes;
`suite` prints a suite of declared workloads."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import suites, worker, workloads
from .engine import worker as engine


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m holdpoint", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("serve", "answer requests on stdin"), ("suite", "print a suite file")):
        command = commands.add_parser(name, help=text)
        command.add_argument("sources", nargs="+", metavar="FILE.py|MODULE", help="declares the workloads")
    engine.add_arguments(commands.add_parser("engine", help="serve a model at given shapes"))
    options = parser.parse_args(arguments)
    if options.command == "suite":
        sys.stdout.write(suites.render(options.sources, workloads.load(options.sources)))
        return 0
    with worker.protocol_output() as answers:
        worker.serve(start(options), sys.stdin, answers)
    return 0


def start(options: argparse.Namespace) -> worker.Worker | worker.Broken:
    try:
        if options.command == "engine":
            return engine.EngineWorker(options)
        return worker.Worker(workloads.load(options.sources))
    except Exception as error:
        return worker.Broken(error)


if __name__ == "__main__":
    sys.exit(main())
