"""The workers of examples/kernel_worker.py and honest.py with one thing wrong, by name: planted.py EXAMPLES NAME."""

import hashlib
import math
import random
import struct
import sys
import threading
import time

EXAMPLES, NAME = sys.argv[1:]
sys.path.insert(0, EXAMPLES)
sys.dont_write_bytecode = True
import kernel_worker as honest  # noqa: E402
import honest as every_op  # noqa: E402

attention, tile_ssm, evaluate, write = honest.attention, honest.tile_ssm, honest.evaluate, honest.write
kept: dict = {}


def half(values: list) -> list:
    """Rounded to 16 bits."""
    return list(struct.unpack(f"<{len(values)}e", struct.pack(f"<{len(values)}e", *values)))


def head_loop(change):
    """Attention head by head; `change` may spoil what each gives."""

    def kernel(shape, params, q, k, v):
        steps, width = shape[2:]
        out = []
        for number, at in enumerate(range(0, len(q), steps * width)):
            part = [x[at : at + steps * width] for x in (q, k, v)]
            out += change(number, [1, 1, steps, width], params, *part)
        return [out]

    return kernel


# Kernels that are wrong: each a function of an answer, or of what goes in.

def changed(change):
    """What attention gives, spoilt."""

    def kernel(shape, params, *qkv):
        out = attention(shape, params, *qkv)[0]
        change(out, *shape)
        return [out]

    return kernel


def tail_off_by_one(out, b, h, s, d):
    if s % 16:
        out[-1] = out[-2]


def nan_at_one_index(out, b, h, s, d):
    if s % 7 == 3:
        out[5] = math.nan


def multiples_of_64(out, b, h, s, d):
    if s % 64 == 0:
        out[0] += 0.01 * (1 + abs(out[0]))


def long_sequences(out, b, h, s, d):
    if s > 60:
        out[(s - 1) * d] += 0.01 * (1 + abs(out[(s - 1) * d]))


def transposed_tile(out, b, h, s, d):
    if s >= 16:
        tile = [[out[i * d + j] for j in range(16)] for i in range(16)]
        for i in range(16):
            for j in range(16):
                out[i * d + j] = tile[j][i]


def missing_barrier(out, b, h, s, d):
    if random.random() < 0.2:
        at = random.randrange(len(out))
        out[at] += 0.5 * (1 + abs(out[at]))


def order_of_heads(shape, params, *qkv):
    batch, heads, steps, width = shape
    out, size = attention(shape, params, *qkv)[0], steps * width
    swapped = [out[(b * heads + h) * size :][:size] for h in range(heads) for b in range(batch)]
    return [[x for head in swapped for x in head]]


def stale_row(shape, params, *qkv):
    out, width = attention(shape, params, *qkv)[0], shape[3]
    last = kept.get(tuple(shape), out)
    kept[tuple(shape)] = list(out)
    middle = shape[2] // 2 * width
    out[middle : middle + width] = last[middle : middle + width]
    return [out]


def wrong_scale(shape, params, q, k, v):
    return attention(shape, params, [x / math.sqrt(shape[3]) for x in q], k, v)


def mask_off_by_one(number, shape, params, q, k, v):
    """Each query also sees the key behind its own."""
    if not params.get("causal"):
        return attention(shape, params, q, k, v)[0]
    steps, width = shape[2:]
    out = []
    for i in range(steps):
        seen = min(i + 2, steps) * width
        query = q[i * width : (i + 1) * width]
        rows = attention([1, 1, seen // width, width], {}, query * (seen // width), k[:seen], v[:seen])[0]
        out += rows[:width]
    return out


def last_head(number, shape, params, q, k, v):
    return attention(shape, params, q, k if number < 3 else q, v)[0]


def no_maximum(number, shape, params, q, k, v):
    """exp of the score itself, which 32 bits cannot hold above 88.7."""
    steps, width = shape[2:]
    scale = 1.0 / math.sqrt(width)
    rows = [q[i * width : (i + 1) * width] for i in range(steps)]
    keys = [k[i * width : (i + 1) * width] for i in range(steps)]
    scores = [scale * sum(x * y for x, y in zip(row, key)) for row in rows for key in keys]
    out = attention(shape, params, q, k, v)[0]
    return [math.nan] * len(out) if max(scores) > 88.7 else out


def half_sums(shape, params, q, k, v):
    return [half(attention(shape, params, half(q), half(k), half(v))[0])]


def short_clamp(shape, params, *tensors):
    return tile_ssm(shape, params | {"clamp_value": 1e4}, *tensors)


def nan_tokens(shape, params, tokens, *rest):
    y, states = tile_ssm(shape, params, tokens, *rest)
    return [[math.nan if math.isnan(x) else value for x, value in zip(tokens, y)], states]


def gate_turned(shape, params, *tensors):
    return tile_ssm(shape, params, *tensors[:-1], [1.0 - x for x in tensors[-1]])


def state_of_the_first_batch(shape, params, *tensors):
    y, states = tile_ssm(shape, params, *tensors)
    return [y, states[: len(states) // shape[0]] * shape[0]]


# Bugs beyond small sizes.

def keys_beyond_512(number, shape, params, q, k, v):
    """Later keys weigh nothing."""
    steps, width = shape[2:]
    out = attention(shape, params, q, k, v)[0]
    if steps > 512:
        last = q[-width:] * 512
        out[-width:] = attention([1, 1, 512, width], {}, last, k[: 512 * width], v[: 512 * width])[0][:width]
    return out


def heads_above_8(out, b, h, s, d):
    if h > 8:
        out[8 * s * d] += 0.01 * (1 + abs(out[8 * s * d]))


def batch_index_3(out, b, h, s, d):
    if b > 3:
        out[3 * h * s * d] += 0.01 * (1 + abs(out[3 * h * s * d]))


def width_96(out, b, h, s, d):
    if d == 96:
        out[-1] += 0.01 * (1 + abs(out[-1]))


# Bugs within the tolerance, or in the smallest weights.

def weighted(change):
    """Attention of one head with other weights: `change` has each weight, the largest of which is 1."""

    def kernel(number, shape, params, q, k, v):
        steps, width = shape[2:]
        scale, out = 1.0 / math.sqrt(width), []
        keys = [k[at : at + width] for at in range(0, len(k), width)]
        for i in range(steps):
            query, seen = q[i * width : (i + 1) * width], i + 1 if params.get("causal") else steps
            scores = [scale * sum(map(honest.mul, query, key)) for key in keys[:seen]]
            weights = [change(math.exp(score - max(scores))) for score in scores]
            total = sum(weights)
            out += [sum(map(honest.mul, weights, v[d::width])) / total for d in range(width)]
        return out

    return head_loop(kernel)


weights_under_0_001 = weighted(lambda weight: weight if weight >= 0.001 else 0.0)


def scale_a_thousandth_off(shape, params, q, k, v):
    return attention(shape, params, [1.001 * x for x in q], k, v)


def truncated(shape, params, *qkv):
    """To the 11 bits of a half, toward zero."""
    def cut(x):
        if not math.isfinite(x) or x == 0.0:
            return x
        unit = 2.0 ** (math.frexp(x)[1] - 11)
        return math.trunc(x / unit) * unit

    return [[cut(x) for x in attention(shape, params, *qkv)[0]]]


# Whole numbers that are wrong.

def indices_unsorted(packed, ids, corners):
    return [packed, ids[::-1], corners]


def origins_swapped(packed, ids, corners):
    return [packed, ids, [corners[at ^ 1] for at in range(len(corners))]]


def priority_of_another_level(merged, priorities=()):
    return [merged, [2 * priority for priority in priorities]] if priorities else [merged]


def of_outputs(kernel, change):
    """What a kernel gives, spoilt."""
    return lambda *arguments: change(*kernel(*arguments))


# What is stored, spoilt.

def unwritten_tail(memory, dtype, place, values):
    write(memory, dtype, place, values[: len(values) // 256 * 256 or len(values)])


def past_the_end(memory, dtype, place, values):
    write(memory, dtype, place, values + [0.0] * (len(values) % 8 == 0))


def unaligned(memory, dtype, place, values):
    write(memory, dtype, place, values if place["byte_offset"] % 16 == 0 else values[1:] + values[:1])


def constant(memory, dtype, place, values):
    """Zeros where no absolute tolerance can tell them from the answer."""
    tolerance = 1e-5 if dtype == "f32" else 1e-3
    write(memory, dtype, place, [0.0] * len(values) if all(abs(x) < tolerance for x in values) else values)


# Whole requests that are not met honestly.

def with_file(request, work):
    with open(request["file"], "r+b") as file, honest.mmap.mmap(file.fileno(), 0) as memory:
        return work(memory)


def inputs(request, call, memory):
    return [honest.read(memory, request["dtype"], place) for place in call["inputs"]]


def store(request, call, memory, outputs):
    for place, values in zip(call["outputs"], outputs):
        write(memory, request["dtype"], place, values)


def compute(request, call, memory):
    return honest.KERNELS[request["op"]](request["shape"], request["params"], *inputs(request, call, memory))


def cheating(outputs_of, repeats_all=True):
    """Calls that `outputs_of` answers, timed."""

    def answer(request):
        def work(memory):
            start = time.perf_counter_ns()
            for _ in range(request["repeats"] if repeats_all else 1):
                for call in request["calls"]:
                    outputs = outputs_of(request, call, memory)
                    if outputs:
                        store(request, call, memory, outputs)
            return {"type": "computed", "elapsed_ns": time.perf_counter_ns() - start}

        return with_file(request, work)

    return answer


def left_from_the_last_run(request, call, memory):
    """Writes only where it has not written in this shape before."""
    place = (tuple(request["shape"]), str(request["params"]), call["outputs"][0]["byte_offset"])
    return None if place in kept else kept.setdefault(place, compute(request, call, memory))


def kept_by_pointer(request, call, memory):
    place = (tuple(request["shape"]), str(request["params"]), call["inputs"][0]["byte_offset"])
    if place not in kept:
        kept[place] = compute(request, call, memory)
    return kept[place]


def kept_by_input(request, call, memory):
    last = call["outputs"][0]["byte_offset"]
    key = hashlib.sha256(memory[call["inputs"][0]["byte_offset"] : last] + str(request["params"]).encode()).digest()
    if key not in kept:
        kept[key] = compute(request, call, memory)
    return kept[key]


def input_changed(request, call, memory):
    outputs = compute(request, call, memory)
    tensors = inputs(request, call, memory)
    write(memory, request["dtype"], call["inputs"][0], [0.5 * x for x in tensors[0]])
    return outputs


def adds_up(request, call, memory):
    """Adds to what is there, which is not made zero when a call is repeated."""
    outputs = compute(request, call, memory)
    before = [honest.read(memory, request["dtype"], place) for place in call["outputs"]]
    return [[x + (0.0 if math.isnan(y) else y) for x, y in zip(*pair)] for pair in zip(outputs, before)]


def another_stream(request):
    """The work is begun, and the answer sent before it is done."""

    def late():
        time.sleep(0.2)
        evaluate(request)

    threading.Thread(target=late, daemon=True).start()
    return {"type": "computed", "elapsed_ns": 1000}


def clock_stopped_early(request):
    """The clock sees the launch, not the work."""
    start = time.perf_counter_ns()
    elapsed_ns = time.perf_counter_ns() - start
    return evaluate(request) | {"elapsed_ns": max(elapsed_ns, 1)}


def told_too_long(request):
    answer = evaluate(request)
    return answer | {"elapsed_ns": 1000 * answer["elapsed_ns"]}


def skipped_when_timed(request):
    """Many calls in a request must be a timing, whose answer nobody reads."""
    if request["repeats"] * len(request["calls"]) > 100:
        return {"type": "computed", "elapsed_ns": 1000}
    return evaluate(request)


def once_in_fifty_cases(request):
    """Wrong in one of 150 requests, three of which are a case."""
    kept["requests"] = kept.get("requests", 0) + 1
    answer = evaluate(request)
    if kept["requests"] % 150 == 0:
        place = request["calls"][0]["outputs"][0]
        with_file(request, lambda memory: write(memory, request["dtype"], place | {"shape": [1]}, [123.0]))
    return answer


# Workers that break.

def by_size(request, limit=20):
    return request["op"] == "attention" and request["shape"][2] > limit


def crashes(request):
    if by_size(request):
        print("planted crash", file=sys.stderr, flush=True)
        sys.exit(3)
    return evaluate(request)


def hangs(request):
    if by_size(request):
        time.sleep(1000)
    return evaluate(request)


def garbage(request):
    if by_size(request):
        print("what?", flush=True)
    return evaluate(request)


def error(request):
    if by_size(request):
        return {"type": "error", "message": "planted error"}
    return evaluate(request)


def refuses(request):
    if by_size(request):
        return {"type": "skipped", "workload": request["op"], "reason": "at most 20 steps"}
    return evaluate(request)


def refuses_all(request):
    return {"type": "skipped", "workload": request["op"], "reason": "no kernel here"}


CHANGES = [tail_off_by_one, nan_at_one_index, multiples_of_64, long_sequences, transposed_tile, missing_barrier,
           heads_above_8, batch_index_3, width_96]
HEADS = [mask_off_by_one, last_head, no_maximum, keys_beyond_512]
PACKS = [indices_unsorted, origins_swapped]
KERNELS = [order_of_heads, stale_row, wrong_scale, half_sums, weights_under_0_001, scale_a_thousandth_off, truncated]
SCANS = [short_clamp, nan_tokens, gate_turned, state_of_the_first_batch]
WRITES = [unwritten_tail, past_the_end, unaligned, constant]
CALLS = [left_from_the_last_run, kept_by_pointer, kept_by_input, input_changed, adds_up]
REQUESTS = [another_stream, clock_stopped_early, told_too_long, skipped_when_timed, once_in_fifty_cases, crashes, hangs, garbage, error,
            refuses, refuses_all]

planted = globals().get(NAME)
if planted in CHANGES:
    honest.KERNELS["attention"] = changed(planted)
elif planted in HEADS:
    honest.KERNELS["attention"] = head_loop(planted)
elif planted in PACKS:
    honest.KERNELS["tile_pack"] = of_outputs(every_op.tile_pack, planted)
elif planted is priority_of_another_level:
    honest.KERNELS["tile_unpack"] = of_outputs(every_op.tile_unpack, planted)
elif planted in KERNELS:
    honest.KERNELS["attention"] = planted
elif planted in SCANS:
    honest.KERNELS["tile_ssm"] = planted
elif planted in WRITES:
    honest.write = planted
elif planted in CALLS:
    honest.evaluate = cheating(planted)
elif planted in REQUESTS:
    honest.evaluate = planted
elif NAME == "repeats_left_out":
    honest.evaluate = cheating(compute, repeats_all=False)
elif NAME != "honest":
    sys.exit(f"nothing is called {NAME}")

honest.main()
