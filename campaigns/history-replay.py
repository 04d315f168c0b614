#!/usr/bin/env python3
"""Replays the rule of `gate --history` point by point over series whose changes people marked.

    campaigns/history-replay.py HOLDPOINT DATA.json.gz

DATA is that of changes-firefox.py. `holdpoint changes --alerts` gives the indices at which the rule reports a worsening when it sees
one point after the other; each is accepted at once, so the next level begins there. Nothing after a point is used to judge it.

A point is quiet if no annotator has a mark within 5 revisions of it. An alert at a quiet point is false.
A worsening is agreed if marks of three annotators or more lie within 5 revisions of the first of them; it is at the median of these
marks, its size the ratio of the medians of at most 15 points after and before it, not beyond a neighbouring agreed mark, turned so
that above 1 is worse. It counts from 5 % on. An alert within 5 revisions of it finds it. A strict count takes only alerts from the
worsening on, none before.
"""

import gzip
import importlib.util
import json
import statistics
import sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("changes_firefox", Path(__file__).with_name("changes-firefox.py"))
changes_firefox = importlib.util.module_from_spec(spec)
spec.loader.exec_module(changes_firefox)

MARGIN = changes_firefox.MARGIN
ANNOTATORS_MIN = 3
SIDE_POINTS = 15
WORSE_MIN = 1.05


def agreed(annotations: list[list[int]]) -> list[int]:
    """Where enough annotators agree, in order."""
    marks = sorted((mark, who) for who, all_marks in enumerate(annotations) for mark in all_marks)
    places, first = [], 0
    while first < len(marks):
        last = first
        while last + 1 < len(marks) and marks[last + 1][0] - marks[first][0] <= MARGIN:
            last += 1
        cluster = marks[first : last + 1]
        if len({who for _, who in cluster}) >= ANNOTATORS_MIN:
            places.append(int(statistics.median(mark for mark, _ in cluster)))
        first = last + 1
    return places


def worsenings(series: dict) -> list[int]:
    """The agreed worsenings of 5 % or more."""
    values, places = series["values"], agreed(list(series["annotations"].values()))
    found = []
    for i, at in enumerate(places):
        start = max(places[i - 1] if i else 0, at - SIDE_POINTS)
        end = min(places[i + 1] if i + 1 < len(places) else len(values), at + SIDE_POINTS)
        if start < at < end:
            ratio = statistics.median(values[at:end]) / statistics.median(values[start:at])
            if (ratio if series["lower_is_better"] else 1 / ratio) >= WORSE_MIN:
                found.append(at)
    return found


def main() -> None:
    holdpoint, path = sys.argv[1:]
    data = json.loads(gzip.decompress(Path(path).read_bytes()))
    found, wall_s, _ = changes_firefox.find(holdpoint, data, ["--alerts"])
    names = sorted(data)
    for words, part in [("all", names), ("even half", names[::2]), ("odd half", names[1::2])]:
        quiet_points = false_alerts = worse = hits = strict = 0
        for name in part:
            series, alerts = data[name], found[name]["alerts"]
            marks = {mark for all_marks in series["annotations"].values() for mark in all_marks}
            loud = {at for mark in marks for at in range(mark - MARGIN, mark + MARGIN + 1)}
            quiet_points += sum(at not in loud for at in range(len(series["values"])))
            false_alerts += sum(at not in loud for at in alerts)
            for at in worsenings(series):
                worse += 1
                hits += any(abs(alert - at) <= MARGIN for alert in alerts)
                strict += any(0 <= alert - at <= MARGIN for alert in alerts)
        print(
            f"{words:10} {false_alerts} false alerts in {quiet_points} quiet points: {1000 * false_alerts / quiet_points:.2f} per 1000; "
            f"{hits} of {worse} agreed worsenings found within {MARGIN} revisions: {100 * hits / worse:.0f} % (none before: {strict})"
        )
    print(f"{wall_s:.2f} s")


if __name__ == "__main__":
    main()
