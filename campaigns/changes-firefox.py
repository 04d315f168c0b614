#!/usr/bin/env python3
"""Scores `holdpoint changes` on series whose changes people marked.

    campaigns/changes-firefox.py HOLDPOINT DATA.json.gz

DATA holds series of Firefox with the marks of several performance engineers each (mozilla/REALISE-Performance, MPL-2.0):
`{"<series>": {"values": [...], "lower_is_better": true, "annotations": {"<annotator>": [index, ...]}}}`. It is not part of this
repository. The rule is that of the change-point benchmark of Van den Burg and Williams: with a margin of 5 revisions, index 0 added to
every set; precision against the union of all marks, recall as the mean over annotators, F1 of both, then the mean over series.

All series are read from one file by one process; the time is that process's, start and reading included.
"""

import gzip
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MARGIN = 5


def matched(marks: set[int], detections: set[int]) -> int:
    """How many marks have a detection within the margin; each detection serves one mark, the nearest first come."""
    free = set(detections)
    count = 0
    for mark in sorted(marks):
        near = min(free, key=lambda at: (abs(at - mark), at), default=None)
        if near is not None and abs(near - mark) <= MARGIN:
            free.remove(near)
            count += 1
    return count


def score(annotations: list[list[int]], found: list[int]) -> tuple[float, float, float]:
    """Precision, recall and F1 of one series."""
    detections = set(found) | {0}
    sets = [set(marks) | {0} for marks in annotations]
    precision = matched(set().union(*sets), detections) / len(detections)
    recall = statistics.mean(matched(marks, detections) / len(marks) for marks in sets)
    return precision, recall, 2 * precision * recall / (precision + recall)


def find(holdpoint: str, data: dict, flags: list[str]) -> tuple[dict[str, dict], float, float]:
    """What holdpoint finds in each series, the wall time and the CPU time of its one process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "series.json"
        path.write_text(json.dumps(data))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        run = subprocess.run(
            [holdpoint, "changes", str(path), "--format", "json", *flags], check=True, capture_output=True, text=True
        )
        wall_s = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {series["name"]: series for series in json.loads(run.stdout)["series"]}, wall_s, cpu_s


def main() -> None:
    holdpoint, path = sys.argv[1:]
    data = json.loads(gzip.decompress(Path(path).read_bytes()))
    found, wall_s, cpu_s = find(holdpoint, data, [])
    names = sorted(data)
    scores = {
        name: score(list(data[name]["annotations"].values()), [change["index"] for change in found[name]["changes"]])
        for name in names
    }
    for words, part in [("all", names), ("even half", names[::2]), ("odd half", names[1::2])]:
        precision, recall, f1 = (statistics.mean(scores[name][i] for name in part) for i in range(3))
        print(f"{words:10} {len(part):3} series  P {precision:.3f}  R {recall:.3f}  F1 {f1:.3f}")
    points = sum(len(series["values"]) for series in data.values())
    print(f"{points} points in {wall_s:.2f} s, {cpu_s:.2f} s of CPU time")


if __name__ == "__main__":
    main()
