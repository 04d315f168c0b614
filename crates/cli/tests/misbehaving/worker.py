"""A worker with one workload, `spin`, that is honest, or misbehaves in the one way that its first argument names.

`worker.py --list run|gate|ab` prints the ways, one a line. The second argument is a file for the numbers of its processes."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

STRANGE = "--list" if sys.argv[1:2] == ["--list"] else sys.argv[1]
PIDS = sys.argv[2]
state = {"seed": None, "requests": 0, "last": None}


def note(pid: int) -> None:
    with open(PIDS, "a") as file:
        file.write(f"{pid}\n")


def spin() -> None:
    total = 0
    for value in state["x"]:
        total += value
    state["out"] = total


def draw(seed: int) -> None:
    state.update(seed=seed, x=[(seed + i) % 1000 for i in range(2000)], out=None)


def honest(request: dict) -> dict:
    kind = request["type"]
    if kind == "hello":
        timer = "cuda_graph" if STRANGE == "times_of_no_device" else "host_monotonic"
        return {"type": "hello", "protocol": 2, "name": "spin", "version": "1", "timer": timer, "clock_resolution_ns": 100}
    if kind == "list":
        return {"type": "workloads", "workloads": [{"name": "spin", "op": "spin", "shape": [2000], "dtype": "i64"}]}
    if kind == "prepare":
        draw(request["seed"])
        return {"type": "prepared", "workload": "spin"}
    if kind == "run":
        if request["seed"] != state["seed"]:
            draw(request["seed"])
        elapsed_ns = []
        for _ in range(request["samples_count"]):
            start = time.perf_counter_ns()
            for _ in range(request["calls_per_sample"]):
                spin()
            elapsed_ns.append(time.perf_counter_ns() - start)
        return {"type": "samples", "workload": "spin", "calls_per_sample": request["calls_per_sample"], "elapsed_ns": elapsed_ns}
    if kind == "verify":
        if state["out"] is None:
            spin()
        passed = state["out"] == sum(state["x"])
        return {"type": "verified", "workload": "spin",
                "answer": {"passed": passed, "values_count": 1, "max_abs_err": 0.0, "max_rel_err": 0.0}}
    if kind == "release":
        return {"type": "released", "workload": "spin"}
    return {"type": "bye"}


def say(text) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def line(request: dict, answer: dict) -> str:
    return json.dumps({"id": request["id"], **answer}) + "\n"


# Ways to answer one request. Each is given the request and the line of an honest answer.

def detach(keep: list, scrub: bool = False) -> None:
    """A process in a session of its own that outlives us unless it is ended."""
    streams = {name: subprocess.DEVNULL for name in ("stdin", "stdout", "stderr") if name not in keep}
    child = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True, env={} if scrub else None, **streams)
    note(child.pid)


def hang_in_session(request, honest_line):
    """The leader of a group cannot begin a session; its child can."""
    if os.fork() == 0:
        os.setsid()
        note(os.getpid())
    time.sleep(1000)


def hang_in_our_group(request, honest_line):
    """Joins the group of whoever started it, with a child."""
    os.setpgid(0, os.getpgid(os.getppid()))
    if os.fork() == 0:
        note(os.getpid())
    time.sleep(1000)


def hang_deaf(request, honest_line):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(1000)


def leave_holder(request, honest_line):
    """Its stdout stays open when it has ended."""
    detach(["stdout", "stderr"])
    os._exit(0)


def leave_many(request, honest_line):
    for scrub in (False, True):
        for _ in range(3):
            detach([], scrub)
    os._exit(4)


def flood(request, honest_line):
    while True:
        say("x" * 65536)


def chatter(request, honest_line):
    while True:
        say(honest_line)


def late_twin(request, honest_line):
    """The answer once more, when the next one is waited for."""
    state["twin"] = honest_line
    say(honest_line)


def close_stdout(request, honest_line):
    os.close(1)
    time.sleep(1000)


def deaf(request, honest_line):
    """Reads nothing more, and lives on."""
    os.close(0)
    time.sleep(1000)


def tell(change):
    return lambda request, honest_line: say(json.dumps(change(json.loads(honest_line))) + "\n")


def text(answer):
    return lambda request, honest_line: say(answer)


ANSWERS = {
    "exits": lambda request, honest_line: os._exit(3),
    "exits_well": lambda request, honest_line: os._exit(0),
    "segfaults": lambda request, honest_line: os.kill(os.getpid(), signal.SIGSEGV),
    "is_killed": lambda request, honest_line: os.kill(os.getpid(), signal.SIGKILL),
    "stops": lambda request, honest_line: os.kill(os.getpid(), signal.SIGSTOP),
    "hangs": lambda request, honest_line: time.sleep(1000),
    "hangs_deaf": hang_deaf,
    "hangs_in_session": hang_in_session,
    "hangs_in_our_group": hang_in_our_group,
    "leaves_holder": leave_holder,
    "leaves_many": leave_many,
    "floods": flood,
    "chatters": chatter,
    "twins": lambda request, honest_line: say(honest_line * 2),
    "late_twin": late_twin,
    "closes_stdout": close_stdout,
    "closes_stdin": deaf,
    "garbage": text("Segmentation fault\n"),
    "empty": text("\n"),
    "not_utf8": text(b"\xff\xfe\n"),
    "too_long": text("x" * (5 << 20) + "\n"),
    "list": text("[1, 2]\n"),
    "half": lambda request, honest_line: (say(honest_line[: len(honest_line) // 2]), os._exit(0)),
    "no_id": tell(lambda answer: {key: value for key, value in answer.items() if key != "id"}),
    "next_id": tell(lambda answer: answer | {"id": answer["id"] + 1}),
    "earlier_id": tell(lambda answer: answer | {"id": answer["id"] - 1}),
    "huge_id": tell(lambda answer: answer | {"id": 2**64 - 1}),
    "text_id": tell(lambda answer: answer | {"id": str(answer["id"])}),
    "unknown_type": tell(lambda answer: answer | {"type": "nonsense"}),
    "another_type": tell(lambda answer: answer | {"type": "bye"}),
    "error": tell(lambda answer: {"id": answer["id"], "type": "error", "message": "no"}),
    "fatal": tell(lambda answer: {"id": answer["id"], "type": "error", "message": "no", "fatal": True}),
}
WAYS = {f"{kind}_{name}": (kind, way) for kind in ("hello", "run", "verify") for name, way in ANSWERS.items()}


def times(change):
    return ("run", tell(lambda answer: answer | {"elapsed_ns": change(answer["elapsed_ns"])}))


def eighth(answer: dict) -> dict:
    return answer | {"elapsed_ns": [max(1, ns // 8) for ns in answer["elapsed_ns"]]}


def beside_idle_thread(answer: dict) -> dict:
    """Beside a thread of idle priority, which waits for the CPU while we run on it."""
    if "idle" not in state:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

        def idle() -> None:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)

        state["idle"] = threading.Thread(target=idle, daemon=True)
        state["idle"].start()
    return eighth(answer)


def answer_of(**change):
    return ("verify", tell(lambda answer: answer | {"answer": answer["answer"] | change}))


def listed(change):
    return ("list", tell(lambda answer: answer | {"workloads": change(answer["workloads"])}))


def wrong_after_timing(request, honest_line):
    state["verified"] = state.get("verified", 0) + 1
    answer = json.loads(honest_line)
    # The first check of `run` comes before timing; `ab` has one alone.
    if state["verified"] > 1 or state["requests"] > 5:
        answer["answer"]["passed"] = False
    say(json.dumps(answer) + "\n")


WAYS |= {
    "times_zero": times(lambda all: [0 for _ in all]),
    "times_one_zero": times(lambda all: [0, *all[1:]]),
    "times_negative": times(lambda all: [-ns for ns in all]),
    "times_float": times(lambda all: [ns + 0.5 for ns in all]),
    "times_text": times(lambda all: [str(ns) for ns in all]),
    "times_huge": times(lambda all: [2**63 for _ in all]),
    "times_hour": times(lambda all: [3_600_000_000_000 for _ in all]),
    "times_too_large": times(lambda all: [2**70 for _ in all]),
    "times_hundredth": times(lambda all: [max(1, ns // 100) for ns in all]),
    "times_tenth": times(lambda all: [max(1, ns // 10) for ns in all]),
    "times_half": times(lambda all: [max(1, ns // 2) for ns in all]),
    # Whatever the calls take, one time for all; and a little less in each request than in the one before.
    "times_constant": times(lambda all: [1000 for _ in all]),
    "times_drift": times(lambda all: [max(1, int(ns * max(0.02, 0.93 ** state["requests"]))) for ns in all]),
    "times_three_of_four": ("run", tell(lambda answer: answer if state["requests"] % 4 == 0 else eighth(answer))),
    "times_beside_idle_thread": ("run", tell(beside_idle_thread)),
    "times_of_no_device": ("run", tell(eighth)),
    "times_fewer": times(lambda all: all[1:] if len(all) > 1 else []),
    "times_more": times(lambda all: [*all, all[0]]),
    "times_none": times(lambda all: []),
    "untimed_too_much": ("run", tell(lambda answer: answer | {"untimed_ns": 10**12})),
    "calls_other": ("run", tell(lambda answer: answer | {"calls_per_sample": answer["calls_per_sample"] + 1})),
    "run_other_workload": ("run", tell(lambda answer: answer | {"workload": "other"})),
    "waits_half": ("run", tell(lambda answer: answer | {"wait_ns": [ns // 2 for ns in answer["elapsed_ns"]]})),
    "waits_all": ("run", tell(lambda answer: answer | {"wait_ns": answer["elapsed_ns"]})),
    "waits_fewer": ("run", tell(lambda answer: answer | {"wait_ns": [1]})),
    "cpu_fewer": ("run", tell(lambda answer: answer | {"cpu_ns": [1]})),
    "cpu_tenth": ("run", tell(lambda answer: answer | {"cpu_ns": [ns // 10 for ns in answer["elapsed_ns"]]})),
    "cpu_tenth_untimed": ("run", tell(lambda answer: answer | {"cpu_ns": [ns // 10 for ns in answer["elapsed_ns"]], "untimed_ns": 1})),
    "cpu_huge": ("run", tell(lambda answer: answer | {"cpu_ns": [10**15 for _ in answer["elapsed_ns"]]})),
    "cpu_tenfold": ("run", tell(lambda answer: answer | {"cpu_ns": [10 * ns for ns in answer["elapsed_ns"]]})),
    "memory_huge": ("run", tell(lambda answer: answer | {"peak_rss_bytes": 2**60})),
    "work_impossible": ("prepare", tell(lambda answer: answer | {"work": {"flops": 10**13}})),
    "bytes_impossible": ("prepare", tell(lambda answer: answer | {"work": {"bytes": 10**13}})),
    "prepare_other_workload": ("prepare", tell(lambda answer: answer | {"workload": "other"})),
    "prepare_skips": ("prepare", tell(lambda answer: {"id": answer["id"], "type": "skipped", "workload": "spin", "reason": "not today"})),
    "answer_wrong": answer_of(passed=False),
    "answer_of_nothing": answer_of(values_count=0),
    "answer_negative": answer_of(max_abs_err=-1.0),
    "answer_negative_rel": answer_of(max_rel_err=-1.0),
    "answer_absurd": answer_of(max_abs_err=1e30, max_rel_err=1e30),
    "answer_unbounded": answer_of(max_abs_err=None),
    "answer_text": answer_of(passed="yes"),
    "answer_other_workload": ("verify", tell(lambda answer: answer | {"workload": "other"})),
    "answer_wrong_after_timing": ("verify", wrong_after_timing),
    "list_nothing": listed(lambda all: []),
    "list_twice": listed(lambda all: all * 2),
    "list_other_op": listed(lambda all: [all[0] | {"op": "other"}]),
    "list_other_shape": listed(lambda all: [all[0] | {"shape": [1]}]),
    "list_other_dtype": listed(lambda all: [all[0] | {"dtype": "f32"}]),
    "list_too_many": listed(lambda all: [all[0] | {"name": f"w{i}"} for i in range(20_001)]),
    "hello_older": ("hello", tell(lambda answer: answer | {"protocol": 1})),
    "hello_newer": ("hello", tell(lambda answer: answer | {"protocol": 3})),
    "hello_no_timer": ("hello", tell(lambda answer: {key: value for key, value in answer.items() if key != "timer"})),
}
# Not wrong by itself, only beside a baseline or a base that checks its answers.
UNCHECKED = {"answer_unchecked": ("verify", tell(lambda answer: answer | {"answer": None}))}


def main() -> None:
    if STRANGE == "--list":
        ways = WAYS if PIDS == "run" else WAYS | UNCHECKED
        # Nothing is asked after it, so it is never said.
        print("\n".join(way for way in ways if PIDS != "ab" or way != "verify_late_twin"))
        return
    note(os.getpid())
    kind, way = (WAYS | UNCHECKED).get(STRANGE, ("", None))
    for received in sys.stdin:
        request = json.loads(received)
        state["requests"] += 1
        answer = line(request, honest(request))
        if twin := state.pop("twin", None):
            say(twin)
        if request["type"] == kind:
            way(request, answer)
        else:
            say(answer)
        if request["type"] == "bye":
            return


main()
