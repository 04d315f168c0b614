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
    ("nan_at_one_index", "static_cast<result>(sum[d] / weights)", "static_cast<result>(row == 6 && d == 3 ? nanf(\"\") : sum[d] / weights)"),
    ("sum_not_rescaled", "sum[d] = sum[d] * keep +", "sum[d] = sum[d] +"),
    ("written_past_the_end", "    if (is_row) {", "    if (row < steps + 1) {"),
    ("no_maximum", "= fmaxf(most, score);", "= 0.0f;"),
    ("sum_in_half", "score += query[d] * keys[j][d];", "score = __half2float(__float2half(score + query[d] * keys[j][d]));"),
    ("wrong_head", "static_cast<size_t>(blockIdx.y) * steps", "static_cast<size_t>(blockIdx.y / 2) * steps"),
    # Eleven more.
    ("unmasked_tail", "min(TILE, end - first);", "TILE;"),
    ("one_value_in_fifty", "static_cast<result>(sum[d] / weights)", "static_cast<result>((at + d) % 50 == 7 ? 1.1f * sum[d] / weights : sum[d] / weights)"),
    ("odd_heads_above_8", "static_cast<size_t>(blockIdx.y) * steps", "static_cast<size_t>(blockIdx.y > 8 ? blockIdx.y & ~1u : blockIdx.y) * steps"),
    ("nan_swallowed", "if (score == nothing) continue;", "if (!(score > nothing)) continue;"),
    ("causal_block_one_short", "(blockIdx.x + 1) * ROWS)", "(blockIdx.x + 1) * ROWS - 1)"),
    ("polynomial_for_exp", "weight = expf(score - top);", "weight = 1.0f / (1.0f - (score - top) * (1.0f - 0.5f * (score - top)));"),
    ("first_row_at_1_mod_32", "    if (is_row) {", "    if (is_row && (row > 0 || steps % 32 != 1)) {"),
    ("keys_beyond_512", "first < end; first += TILE", "first < min(end, 32 * TILE); first += TILE"),
    ("weights_under_0_001", "most = top;", "most = top;\n            if (weight < 0.001f) continue;"),
    ("scale_a_thousandth_off", "? scale *", "? 1.001f * scale *"),
    ("truncated", "static_cast<result>(sum[d] / weights)", "static_cast<result>(__uint_as_float(__float_as_uint(sum[d] / weights) & 0xffffe000u))"),
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
