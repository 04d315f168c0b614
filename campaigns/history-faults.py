#!/usr/bin/env python3
"""What does a history lose when its writers are killed, its disk is full, its server goes away or two hundred write at once?

    campaigns/history-faults.py target/release/holdpoint [--kills 500] [--writers 200] [--away 10]

SQLite in a temporary folder; PostgreSQL on a server that is made there, where initdb is installed. The full disk is a small file system
where one can be mounted (as root), and else a limit on the size of files; the line says which. A run counts as acknowledged once the
command that added it has ended with 0. Prints a line for each fault and store, and ends with 1 if anything acknowledged was lost, a run
is there by half, or a refusal is not one line.
"""

import argparse
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

METRICS = 40
problems = []


def trend(number, suite="kill"):
    at = f"2026-01-{1 + number // 86400:02}T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    metrics = [
        {"metric": f"w{i}_p50_ms", "status": "pass", "baseline_ms": None, "allowed_max_ms": None, "current_ms": 1.0 + i, "regression_ratio": None}
        for i in range(METRICS)
    ]
    return json.dumps(
        {"schema_version": 1, "suite": suite, "timestamp_utc": at, "overall_status": "pass", "total_metrics": METRICS, "failed_metrics": 0, "metrics": metrics}
    )


def add(binary, store, file, **more):
    return subprocess.Popen([binary, "history", "add", file, "--store", store], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def counts(binary, store, suite):
    """Points by series, and the number of runs."""
    done = subprocess.run([binary, "history", "export", "--store", store, "--suite", suite], capture_output=True, text=True)
    if "there is no history yet" in done.stderr:
        return {}, set()
    if done.returncode != 0:
        problem(f"the store cannot be read: {done.stderr.strip()}")
        return {}, set()
    rows = [line.split(",") for line in done.stdout.splitlines()[1:]]
    return collections.Counter(row[0] for row in rows), {row[5] for row in rows}


def problem(text):
    problems.append(text)
    print(f"PROBLEM: {text}")


def check(name, binary, store, suite, acknowledged):
    by_series, runs = counts(binary, store, suite)
    sizes = set(by_series.values())
    if len(sizes) > 1 or (runs and sizes != {len(runs)}):
        problem(f"{name}: runs that are there by half: {sizes}, {len(runs)} runs")
    if len(runs) < acknowledged:
        problem(f"{name}: {acknowledged} runs were acknowledged, {len(runs)} are there")
    return len(runs)


def kills(name, binary, store, folder, count):
    rng, acknowledged, killed, number = random.Random(1), 0, 0, 0
    take_s = 0.05
    while killed < count:
        file = folder / "kill.ndjson"
        runs = rng.randint(1, 60)
        file.write_text("".join(trend(number + i) + "\n" for i in range(runs)))
        number += runs
        begin = time.monotonic()
        writer = add(binary, store, file)
        time.sleep(rng.uniform(0, 1.2 * take_s))
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        if writer.returncode == 0:
            acknowledged += runs
            take_s = 0.8 * take_s + 0.2 * (time.monotonic() - begin)
        else:
            killed += 1
            take_s *= 1.02
    there = check(f"{name}: kill -9", binary, store, "kill", acknowledged)
    print(f"{name}: kill -9: {killed} writers killed, {acknowledged} runs acknowledged, {there} there, none by half")


def writers(name, binary, store, folder, count):
    files = []
    for i in range(count):
        file = folder / f"writer{i}.ndjson"
        # The first run is everybody's.
        file.write_text(trend(0, "writers") + "\n" + trend(1 + i, "writers") + "\n")
        files.append(file)
    begin = time.monotonic()
    all_ = [add(binary, store, file) for file in files]
    for writer in all_:
        _, err = writer.communicate()
        if writer.returncode != 0:
            problem(f"{name}: a writer failed: {err.strip()}")
    took = time.monotonic() - begin
    there = check(f"{name}: writers", binary, store, "writers", count + 1)
    if there != count + 1:
        problem(f"{name}: {there} runs, {count + 1} wanted")
    print(f"{name}: {count} writers at once: {there} runs there, in {took:.1f} s")


def one_line(name, err):
    lines = err.strip().splitlines()
    if len(lines) != 1:
        problem(f"{name}: {len(lines)} lines: {err.strip()}")
    return lines[0] if lines else ""


class SmallDisk:
    """A file system of its own that is soon full: ext4 in a file, a tmpfs, or else a limit on the size of files. The first two need root."""

    def __init__(self, folder, name, megabytes):
        self.place, self.megabytes, self.image = folder / name, megabytes, folder / f"{name}.img"
        self.place.mkdir()
        if self._make_ext4():
            self.kind = f"an ext4 of {megabytes} MB"
        elif run_quietly("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", self.place):
            self.kind = f"a tmpfs of {megabytes} MB"
        else:
            self.kind = None

    def _make_ext4(self):
        with open(self.image, "wb") as image:
            image.truncate(self.megabytes << 20)
        return run_quietly("mkfs.ext4", "-q", "-F", self.image) and run_quietly("mount", "-o", "loop", self.image, self.place)

    def fill(self):
        """Takes all space but a little, so that the fault comes soon; returns the file to remove."""
        ballast = self.place / "ballast"
        free = shutil.disk_usage(self.place).free
        with open(ballast, "wb") as out:
            out.write(b"\0" * max(0, free - (2 << 20)))
        return ballast

    def remove(self):
        if self.kind:
            run_quietly("umount", self.place)
        self.image.unlink(missing_ok=True)


def run_quietly(*command):
    try:
        return subprocess.run(list(map(str, command)), capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def add_until_refused(name, binary, store, folder, **more):
    """Adds fifty runs at a time until that fails: how many were acknowledged, and the line of the refusal."""
    file = folder / "full.ndjson"
    for number in range(10_000):
        file.write_text("".join(trend(number * 50 + i, "full") + "\n" for i in range(50)))
        writer = add(binary, store, file, **more)
        _, err = writer.communicate()
        if writer.returncode != 0:
            if writer.returncode != 70:
                problem(f"{name}: full disk: exit code {writer.returncode}")
            return number * 50, one_line(f"{name}: full disk", err)
    problem(f"{name}: the disk never was full")
    return 10_000 * 50, ""


def check_full(name, binary, store, folder, kind, acknowledged, refused, make_space):
    there = check(f"{name}: full disk", binary, store, "full", acknowledged)
    print(f"{name}: full disk ({kind}): {acknowledged} runs acknowledged, {there} there, then: {refused}")
    # With space again it goes on.
    make_space()
    writer = add(binary, store, folder / "full.ndjson")
    _, err = writer.communicate()
    if writer.returncode != 0 or check(f"{name}: full disk", binary, store, "full", acknowledged + 50) != acknowledged + 50:
        problem(f"{name}: it does not go on once there is space: {err.strip()}")


def full_disk(binary, folder):
    """SQLite on a file system that is full, or where none can be mounted, with a limit on the size of files."""
    disk = SmallDisk(folder, "small", 8)
    try:
        if disk.kind:
            store, ballast = str(disk.place / "full.db"), disk.fill()
            acknowledged, refused = add_until_refused("SQLite", binary, store, folder)
            check_full("SQLite", binary, store, folder, disk.kind, acknowledged, refused, ballast.unlink)
        else:
            store = str(folder / "full.db")
            acknowledged, refused = add_until_refused("SQLite", binary, store, folder, preexec_fn=limit_files)
            check_full("SQLite", binary, store, folder, "a limit on the size of files", acknowledged, refused, lambda: None)
    finally:
        disk.remove()


def limit_files():
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))


def full_server_disk(binary, folder):
    """PostgreSQL with its data on a file system that is full."""
    disk = SmallDisk(folder, "smallpg", 128)
    try:
        if not disk.kind:
            print("PostgreSQL: full disk: skipped, no file system can be mounted")
            return
        disk.place.chmod(0o755)
        server = Server(disk.place)
        store = server.start()
        try:
            ballast = disk.fill()
            acknowledged, refused = add_until_refused("PostgreSQL", binary, store, folder)
            check_full("PostgreSQL", binary, store, folder, disk.kind, acknowledged, refused, lambda: make_space(ballast, server))
        finally:
            server.stop()
    finally:
        disk.remove()


def make_space(ballast, server):
    """A server that could not write its log has ended itself and does not start by itself."""
    ballast.unlink()
    if not server.is_up():
        server.resume()


def newer(name, binary, store, raise_version):
    raise_version()
    done = subprocess.run([binary, "history", "list", "--store", store], capture_output=True, text=True)
    line = one_line(f"{name}: newer", done.stderr)
    if done.returncode != 64 or "update holdpoint" not in line:
        problem(f"{name}: newer: {done.returncode} {line}")
    print(f"{name}: newer store: {line}")


class Server:
    """A PostgreSQL server of its own."""

    def __init__(self, folder):
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        program = found[-1] if found else shutil.which("initdb")
        self.bin = Path(program).parent if program else None
        self.folder = folder / "pg"

    def run(self, name, *arguments):
        user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups"] if os.getuid() == 0 else []
        with open(self.folder / f"{name}.log", "w") as log:
            subprocess.run([*user, self.bin / name, *map(str, arguments)], check=True, stdout=log, stderr=log, cwd=self.folder)

    def start(self):
        self.folder.mkdir(mode=0o755)
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
        self.run("initdb", "-A", "trust", "-U", "holdpoint", "-D", self.folder / "data")
        self.resume()
        self.run("createdb", "-U", "holdpoint", "-h", self.folder, "faults")
        return f"postgres://holdpoint@/faults?host={self.folder}"

    def resume(self):
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}'"
        self.run("pg_ctl", "start", "-w", "-D", self.folder / "data", "-o", options, "-l", self.folder / "server.log")

    def stop(self):
        self.run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", self.folder / "data")

    def is_up(self):
        return run_quietly(self.bin / "pg_isready", "-q", "-h", self.folder)

    def sql(self, text):
        self.run("psql", "-U", "holdpoint", "-h", self.folder, "-c", text, "faults")


def away(binary, server, store, folder, seconds):
    """The server goes away while runs are added, and comes back; then it stays away."""
    file = folder / "away.ndjson"
    file.write_text("".join(trend(i, "away") + "\n" for i in range(100)))
    server.stop()
    begin = time.monotonic()
    writer = add(binary, store, file)
    time.sleep(seconds)
    server.resume()
    _, err = writer.communicate()
    if writer.returncode != 0:
        problem(f"PostgreSQL: away: {err.strip()}")
    there = check("away", binary, store, "away", 100)
    print(f"PostgreSQL: away for {seconds} s: {there} runs there, {time.monotonic() - begin:.1f} s after it went")
    server.stop()
    writer = add(binary, store, file)
    _, err = writer.communicate()
    line = one_line("PostgreSQL: stays away", err)
    if writer.returncode != 70:
        problem(f"PostgreSQL: stays away: exit code {writer.returncode}")
    print(f"PostgreSQL: stays away: {line}")
    server.resume()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--writers", type=int, default=200)
    parser.add_argument("--away", type=float, default=10)
    args = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    binary = str(Path(args.binary).resolve())
    folder = Path(tempfile.mkdtemp(prefix="holdpoint-faults"))
    folder.chmod(0o755)
    os.chdir(folder)
    store = str(folder / "history.db")
    kills("SQLite", binary, store, folder, args.kills)
    # A new file: the first of them make it, all at once.
    writers("SQLite", binary, str(folder / "writers.db"), folder, args.writers)
    full_disk(binary, folder)
    newer("SQLite", binary, store, lambda: set_user_version(store))
    server = Server(folder)
    if server.bin is None:
        print("PostgreSQL: skipped, initdb is not installed")
    else:
        store = server.start()
        try:
            kills("PostgreSQL", binary, store, folder, args.kills)
            writers("PostgreSQL", binary, store, folder, args.writers)
            away(binary, server, store, folder, args.away)
            newer("PostgreSQL", binary, store, lambda: server.sql("INSERT INTO holdpoint.store VALUES (99)"))
        finally:
            server.stop()
        full_server_disk(binary, folder)
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if problems else 0)


def set_user_version(path):
    import sqlite3

    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")


if __name__ == "__main__":
    main()
