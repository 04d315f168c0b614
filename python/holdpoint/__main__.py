"""`python -m holdpoint serve FILE.py|MODULE …` serves declared workloads; `suite` prints a suite of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import suites, worker, workloads


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m holdpoint", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("serve", "answer requests on stdin"), ("suite", "print a suite file")):
        command = commands.add_parser(name, help=text)
        command.add_argument("sources", nargs="+", metavar="FILE.py|MODULE", help="declares the workloads")
    options = parser.parse_args(arguments)
    if options.command == "suite":
        sys.stdout.write(suites.render(options.sources, workloads.load(options.sources)))
        return 0
    with worker.protocol_output() as answers:
        worker.serve(start(options.sources), sys.stdin, answers)
    return 0


def start(sources: Sequence[str]) -> worker.Worker | worker.Broken:
    try:
        return worker.Worker(workloads.load(sources))
    except Exception as error:
        return worker.Broken(error)


if __name__ == "__main__":
    sys.exit(main())
