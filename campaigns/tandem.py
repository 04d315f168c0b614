#!/usr/bin/env python3
"""CPU time of a command against itself: one after the other, and both at the same time on one CPU. Which differs less?

    campaigns/tandem.py PAIRS COMMAND ARGUMENT…
"""

import math
import os
import random
import shutil
import statistics
import sys
import time


def start(words: list[str], cpu: int) -> int:
    pid = os.fork()
    if pid == 0:
        os.sched_setaffinity(0, {cpu})
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(words[0], words)
    return pid


def cpu_s(pid: int) -> float:
    usage = os.wait4(pid, 0)[2]
    return usage.ru_utime + usage.ru_stime


def one_by_one(words: list[str], cpu: int) -> float:
    return math.log(cpu_s(start(words, cpu)) / cpu_s(start(words, cpu)))


def tandem(words: list[str], cpu: int) -> float:
    first, second = start(words, cpu), start(words, cpu)
    return math.log(cpu_s(first) / cpu_s(second))


def main() -> None:
    pairs, program = int(sys.argv[1]), shutil.which(sys.argv[2])
    if program is None:
        sys.exit(f"there is no {sys.argv[2]}")
    words = [program, *sys.argv[3:]]
    found: dict[str, list[tuple[float, float]]] = {"one by one": [], "tandem": []}
    for _ in range(pairs):
        cpu = random.choice(sorted(os.sched_getaffinity(0)))
        for name, measure in [("one by one", one_by_one), ("tandem", tandem)]:
            before = time.monotonic()
            x = measure(words, cpu)
            found[name].append((x, time.monotonic() - before))
    for name, units in found.items():
        xs, seconds = [x for x, _ in units], statistics.mean(s for _, s in units)
        middle = statistics.median(xs)
        sd = 1.4826 * statistics.median(abs(x - middle) for x in xs)
        print(f"{name}: sd {sd:.1%} in {seconds:.2f} s a pair")


main()
