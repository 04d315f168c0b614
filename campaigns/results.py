#!/usr/bin/env python3
"""Tables of docs/results, made from the files that are kept in docs/results/h200.

    campaigns/results.py            # write every table into its page, between its marks
    campaigns/results.py --check    # write nothing; exit 1 if a page differs
"""

import gzip
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGES = Path(__file__).resolve().parent.parent / "docs" / "results"
Row = list[str]


def find(name: str) -> Path:
    plain, packed = PAGES / "h200" / name, PAGES / "h200" / f"{name}.gz"
    return plain if plain.exists() else packed


def text(name: str) -> str:
    data = find(name).read_bytes()
    return (gzip.decompress(data) if find(name).suffix == ".gz" else data).decode()


def read(name: str) -> Any:
    return json.loads(text(name))


def link(name: str, label: str) -> str:
    return f"[{label}](h200/{find(name).name})"


def duration(ms: float) -> str:
    value, unit = (ms, "ms") if ms >= 1 else (ms * 1e3, "µs")
    return f"{value:#.4g} {unit}".replace(". ", " ")


def percent(share: float, digits: int = 1, sign: str = "") -> str:
    return f"{round(share * 100, digits) + 0.0:{sign}.{digits}f} %"


def runs(**names: str) -> list[Row]:
    """Medians of the same suite in several runs, and how far they lie apart."""
    reports = [read(name)["benchmarks"] for name in names.values()]
    files = [link(name, label.replace("_", " ")) for label, name in names.items()]
    rows = [["workload", "timer", *files, "apart by"]]
    for workload, first in reports[0].items():
        medians = [report[workload]["p50_ms"] for report in reports]
        apart = percent(max(medians) / min(medians) - 1)
        rows.append([f"`{workload}`", first["identity"]["timer"], *map(duration, medians), apart])
    return rows


def calibrations(*names: str) -> list[Row]:
    head = ["file", "suite", "head", "suites", "false alarms", "found", "undecided", "s a suite", "s a workload"]
    rows = [head]
    for name in names:
        d = read(name)
        unchanged = d["inject"] == 0
        rows.append([
            link(name, name.removesuffix(".json")), d["suite"],
            "unchanged" if unchanged else f"{percent(d['inject'], 0)} slower", str(d["trials"]),
            str(d["false_alarms"]) if unchanged else "–",
            "–" if unchanged else f"{d['detected']} of {d['comparisons']}",
            f"{d['inconclusive']} of {d['comparisons']}",
            f"{d['suite_seconds']:.1f}" if "suite_seconds" in d else "–", f"{d['seconds']:.1f}",
        ])  # fmt: skip
    return rows


def fuzzing(*names: str) -> list[Row]:
    rows = [["file", "op", "type", "cases", "passed", "max abs", "rel norm", "correlation", "s of the command"]]
    for name in names:
        d = read(name)
        for k in d["kernels"]:
            e, label = k["errors"], name.removesuffix(".json").removeprefix("fuzz-")
            rows.append([link(name, label), k["op"], k["dtype"], str(k["cases_count"]), str(k["passed_count"]),
                         f"{e['max_abs_err']:.1e}", f"{e['rel_norm']:.1e}", f"{e['correlation']:.6f}",
                         f"{d['elapsed_s']:.1f}"])  # fmt: skip
    return rows


def large() -> list[Row]:
    measured = read("gpu-large.json")["benchmarks"]
    rows = [["op", "shape", "median", "CV", "GB/s", "of copy"]]
    for op, v in measured.items():
        rate = v["throughput"]["gb_per_s"]
        rows.append([f"`{op}`", ",".join(map(str, v["identity"]["shape"])), duration(v["p50_ms"]), percent(v["cv"]),
                     f"{rate:.0f}", percent(rate / measured["copy"]["throughput"]["gb_per_s"], 0)])  # fmt: skip
    return rows


def power() -> list[Row]:
    rested, bare = read("gpu-power.json")["benchmarks"], read("gpu-power-without-rests.json")["benchmarks"]
    rows = [["workload", "with rests", "CV", "rounds", "clock", "without rests", "CV", "rounds"]]
    for name, w in rested.items():
        cells = [[duration(v["p50_ms"]), percent(v["cv"]), str(len(v["samples"]["rounds"]))] for v in (w, bare[name])]
        rows.append([name, *cells[0], f"{w['power_limited']['sm_mhz']:.0f} MHz", *cells[1]])
    return rows


def matrix() -> list[Row]:
    rows = [["shape", "type", "causal", "right", "max abs", "median", "TFLOP/s"]]
    for d in read("check-attention-matrix.json"):
        c, p = d["config"], d["performance"]
        rows.append([",".join(map(str, c["shape"])), c["dtype"], "yes" if c["causal"] else "no",
                     "yes" if d["correctness"]["passed"] else "no", f"{d['correctness']['max_abs_error']:.1e}",
                     duration(p["median_ms"]), f"{p['throughput_gflops'] / 1e3:.1f}"])  # fmt: skip
    return rows


CAUSAL = [(shape, causal) for shape in ("32,8,512,64", "16,16,2048,128", "4,32,4096,128") for causal in (False, True)]


def cudnn() -> list[Row]:
    d = read("attention-cudnn.json")["benchmarks"]
    rows = [["shape", "fp16", "cuDNN", "bf16", "cuDNN", "fp8"]]
    for shape, causal in CAUSAL:
        key = shape.replace(",", "_") + ("_causal" if causal else "")
        names = [f"f16_{key}_cuda", f"f16_{key}_cudnn", f"bf16_{key}_cuda", f"bf16_{key}_cudnn", f"e4m3_{key}_cuda"]
        label = "the same, causal" if causal else shape
        rows.append([label, *(duration(d[name]["p50_ms"]) for name in names)])
    return rows


def fp8() -> list[Row]:
    d = read("attention-fp8.json")["benchmarks"]
    rows = [["shape", "fp16", "fp8", "time", "cycles"]]
    for shape, causal in CAUSAL:
        key = shape.replace(",", "x") + (".causal" if causal else "")
        a, b = d[f"f16.{key}"], d[f"e4m3.{key}"]
        shares = [percent(b[name] / a[name], 0) for name in ("p50_ms", "sm_cycles_p50")]
        label = "the same, causal" if causal else shape
        rows.append([label, duration(a["p50_ms"]), duration(b["p50_ms"]), *shares])
    return rows


def torch_times() -> list[Row]:
    others = ["torch's events", "nvbench"]
    rows = [["call", "one call", *others, "graph of", "time", *others, "host a sample"]]
    for d in read("torch-nvbench-times.json"):
        one = [percent(d[f"{by}_single_us"] / d["single_us"] - 1, 1, "+") for by in ("events", "nvbench")]
        graph = [percent(d[f"{by}_graph_us"] / d["graph_us"] - 1, 1, "+") for by in ("events", "nvbench")]
        rows.append([f"`{d['name']}`", duration(d["single_us"] / 1e3), *one, f"{d['calls_per_graph']} calls",
                     duration(d["graph_us"] / 1e3), *graph, f"{d['host_us']:.0f} µs"])  # fmt: skip
    return rows


def bugs() -> list[Row]:
    found: dict[str, Row] = {}
    for name in ("fuzz-bugs.txt", "fuzz-bugs-e4m3.txt"):
        for bug, seeds in re.findall(r"(?m)^([a-z]\w+) {2,}(.+)$", text(name)):
            found.setdefault(bug, []).extend(seed if seed != "-" else "–" for seed in seeds.split(", "))
    found.pop("bug", None)
    heads = [link("fuzz-bugs.txt", "f16, seed 1"), "f16, seed 2", link("fuzz-bugs-e4m3.txt", "e4m3, seed 1")]
    return [["planted", *heads]] + [[f"`{bug}`", *cells] for bug, cells in found.items()]


GPU = [f"calibration-gpu-{n}.json" for n in ("once", "8", "15", "19", "16", "20", "20-2")]
FAST = [f"calibration-{n}.json" for n in ("unchanged", "unchanged-2", "2-percent")]
POWER = [f"calibration-gpu-power{n}.json" for n in ("", "-2", "-3", "-2-percent")]
RIGHT = [f"fuzz-right-{by}-{dtype}.json" for by in ("example", "builtin") for dtype in ("f16", "bf16", "f32")]
OTHERS = ("ff_path-f16", "fused_pack_op_unpack-f16", "fusion_gate-f16", "rms_norm-bf16", "tile_ssm")
TABLES: dict[str, Callable[[], list[Row]]] = {
    "gpu-runs": lambda: runs(run_1="gpu.json", run_2="gpu-2.json", run_3="gpu-3.json"),
    "torch-runs": lambda: runs(**{f"run_{i}": f"gpu-torch-{i}.json" for i in (1, 2, 3)}),
    "tile-ssm": lambda: runs(before="tile-ssm-before.json", after="tile-ssm-after.json"),
    "gpu-calibrations": lambda: calibrations(*GPU),
    "fast-calibrations": lambda: calibrations(*FAST),
    "power-calibrations": lambda: calibrations(*POWER),
    "torch-calibrations": lambda: calibrations(*(f"torch-unchanged-{n}.json" for n in (1, 2, 3, 4))),
    "fuzz-right": lambda: fuzzing(*RIGHT, "fuzz-right-builtin-e4m3.json"),
    "fuzz-others": lambda: fuzzing(*(f"fuzz-{name}.json" for name in OTHERS)),
    "fuzz-attention": lambda: fuzzing(*(f"fuzz-attention-{n}.json" for n in ("27", "f16", "bf16", "f32", "e4m3"))),
    "fuzz-bugs": bugs, "gpu-large": large, "power": power, "check-matrix": matrix,
    "attention-cudnn": cudnn, "attention-fp8": fp8, "torch-times": torch_times,
}  # fmt: skip


def markdown(rows: list[Row]) -> str:
    # Columns of numbers, whose first cell begins with a digit, a sign or a dash, are aligned to the right.
    rule = ["---", *("--:" if re.match(r"[-+–\d]", cell) else "---" for cell in rows[1][1:])]
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join([lines[0], f"|{'|'.join(rule)}|", *lines[1:]]) + "\n"


def fill(page: str) -> str:
    marks = r"(<!-- table: ([\w-]+), printed by campaigns/results\.py -->\n).*?(<!-- end of table -->)"
    return re.sub(marks, lambda m: f"{m[1]}\n{markdown(TABLES[m[2]]())}\n{m[3]}", page, flags=re.DOTALL)


def main() -> int:
    pages = {path: path.read_text() for path in sorted(PAGES.glob("*.md"))}
    stale = [path for path, page in pages.items() if fill(page) != page]
    for path in stale:
        if "--check" in sys.argv[1:]:
            print(f'docs/results/{path.name} is out of date; run "campaigns/results.py"', file=sys.stderr)
        else:
            path.write_text(fill(pages[path]))
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
