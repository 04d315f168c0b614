"""The median of each workload in several reports, and how far the reports are apart: medians.py REPORT…"""

import json
import sys
from pathlib import Path

reports = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
for name in reports[0]["benchmarks"]:
    outcomes = [report["benchmarks"][name] for report in reports]
    medians = [outcome["p50_ms"] for outcome in outcomes if "p50_ms" in outcome]
    if len(medians) < len(reports):
        print(f"{name:44} {outcomes[0].get('status')}: {outcomes[0].get('reason') or outcomes[0].get('detail')}")
        continue
    spread = (max(medians) - min(medians)) / min(medians)
    source = (outcomes[0].get("kernel") or {}).get("selection_source", "")
    times = "  ".join(f"{1000 * median:10.3f} µs" for median in medians)
    print(f"{name:44} {times}  apart {100 * spread:5.2f} %  {source}")
