"""Bugs planted in the source of a CUDA kernel, examples/attention.cu: one file each, and a suite of all of them.

    planted_cuda.py SOURCE FOLDER    writes FOLDER/NAME.cu and FOLDER/planted.toml
"""

import pathlib
import sys

# Name, what stands in the source, what stands there instead.
BUGS = [
    ("right", "", ""),
    ("tail_off_by_one", "min(TILE, end - first);", "end - first < TILE ? end - first - 1 : TILE;"),
    ("no_barrier_after_loading", "__syncthreads();  // The tile is there.", ""),
    ("no_barrier_before_loading", "__syncthreads();  // Nobody reads it any more.", ""),
    ("scale_one_percent_off", "? scale *", "? 1.01f * scale *"),
    ("transposed_tile", "values[i / HEAD_DIM][i % HEAD_DIM] =", "values[i % TILE][i / TILE % HEAD_DIM] ="),
    ("diagonal_left_out", "first + j > row", "first + j >= row"),
    ("last_row_not_written", "    if (is_row) {", "    if (row < steps - 1) {"),
    ("nan_at_one_index", "static_cast<elem>(sum[d] / weights)", "static_cast<elem>(row == 6 && d == 3 ? nanf(\"\") : sum[d] / weights)"),
    ("sum_not_rescaled", "sum[d] = sum[d] * keep +", "sum[d] = sum[d] +"),
    ("written_past_the_end", "    if (is_row) {", "    if (row < steps + 1) {"),
    ("no_maximum", "= fmaxf(most, score);", "= 0.0f;"),
    ("sum_in_half", "score += query[d] * keys[j][d];", "score = __half2float(__float2half(score + query[d] * keys[j][d]));"),
    ("wrong_head", "static_cast<size_t>(blockIdx.y) * steps", "static_cast<size_t>(blockIdx.y / 2) * steps"),
    ("input_overwritten", "    if (is_row) {", "    if (is_row) const_cast<elem*>(q)[at] = static_cast<elem>(0.0f);\n    if (is_row) {"),
]

WORKLOAD = """
[[workload]]
name = "{name}"
op = "attention"
worker = "cuda"
shape = [1, 2, 100, 64]
dtype = "f16"
[workload.kernel]
source = "{source}"
entry = "attention"
grid = ["ceil_div(steps, 64)", "batch * heads"]
block = [64]
flags = ["-DTILE=16"]
"""


def main():
    source, folder = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
    suite = 'schema_version = 1\nname = "planted"\n'
    for name, right, wrong in BUGS:
        if right and source.count(right) != 1:
            sys.exit(f"{name}: {right!r} stands {source.count(right)} times in the source")
        path = folder / f"{name}.cu"
        path.write_text(source.replace(right, wrong) if right else source)
        suite += WORKLOAD.format(name=name, source=path)
    (folder / "planted.toml").write_text(suite)


main()
