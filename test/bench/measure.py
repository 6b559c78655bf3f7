#!/usr/bin/env python3
"""Measures ratios within one run: the cost of rose relative to the cost of an empty program.

In every round, the machine is measured in each state (without a tracer, with an empty raw_tp/sys_exit program, with
rose), so that noise of the machine affects all states equally. Each ratio is computed from two states of one round.
Prints the median of the rounds and its 95 % bootstrap interval. Absolute times are printed for orientation only.
"""
import argparse
import contextlib
import os
import random
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time


class Unable(Exception):
    pass


def median_interval(values, confidence=0.95, draws=2000):
    """Returns the median and its bootstrap interval. The same numbers always give the same interval."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(draws))
    tail = (1 - confidence) / 2
    return statistics.median(values), medians[int(tail * draws)], medians[min(draws - 1, int((1 - tail) * draws))]


def wait_line(stream, wanted, seconds):
    """Reads lines until one contains `wanted`."""
    end = time.monotonic() + seconds
    text = b""
    while True:
        left = end - time.monotonic()
        ready, _, _ = select.select([stream], [], [], max(0, left))
        chunk = os.read(stream.fileno(), 4096) if ready else b""
        text += chunk
        if wanted in text:
            return
        if not chunk:
            raise Unable(f"waited for {wanted!r}, got {text.decode(errors='replace')!r}")


@contextlib.contextmanager
def process(argv, ready, stream="stdout", end="input", **more):
    """Runs a program for the duration of the block, which begins when the program reports that it is ready."""
    child = subprocess.Popen(argv, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE if stream == "stdout" else subprocess.DEVNULL,
                             stderr=subprocess.PIPE if stream == "stderr" else subprocess.DEVNULL, **more)
    try:
        if ready:
            wait_line(getattr(child, stream), ready, 60)
        yield child
    finally:
        if end == "input":
            child.stdin.close()
        elif child.poll() is None:
            child.send_signal(end)
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


class Bench:
    def __init__(self, build, folder):
        self.rose = os.path.join(build, "rose")
        self.programs = os.path.join(build, "test", "bench")
        self.folder = folder

    def calls(self):
        return process([os.path.join(self.programs, "rose_bench_calls")], None)

    def nothing(self):
        return contextlib.nullcontext()

    def empty(self):
        return process([os.path.join(self.programs, "rose_bench_empty")], b"ready")

    def tracing(self, *targets):
        argv = [self.rose, "trace", *targets, "--control", os.path.join(self.folder, "control.sock"),
                "-o", os.path.join(self.folder, "dump.bin")]
        return process(argv, b"ready", stream="stderr", end=signal.SIGINT)

    @staticmethod
    def ask(calls, kind, count):
        calls.stdin.write(f"{kind} {count}\n".encode())
        calls.stdin.flush()
        return float(calls.stdout.readline())


def syscalls(bench, rounds, count):
    """Returns, for each round, by how many nanoseconds a call is slower in each state."""
    found = []
    with bench.calls() as calls, bench.calls() as other:
        states = {
            "nothing": bench.nothing,
            "empty": bench.empty,
            "traced": lambda: bench.tracing("--pid", str(calls.pid)),
            "untraced": lambda: bench.tracing("--pid", str(other.pid)),
        }
        order = list(states)
        for round_number in range(rounds):
            times = {}
            # Each round begins with another state, so that no state always follows the same other one.
            for name in order[round_number % 4:] + order[:round_number % 4]:
                with states[name]():
                    bench.ask(calls, "write", count // 10)  # warms caches up
                    times[name] = {"write": bench.ask(calls, "write", count)}
                    if name in ("nothing", "empty", "traced"):
                        times[name]["open"] = bench.ask(calls, "open", count // 10)
            found.append(times)
    return found


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


@contextlib.contextmanager
def redis_cluster(folder):
    """Runs a primary and two replicas."""
    ports = free_ports(3)
    with contextlib.ExitStack() as stack:
        nodes = []
        for index, port in enumerate(ports):
            place = os.path.join(folder, f"redis{index}")
            os.makedirs(place, exist_ok=True)
            argv = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
                    "--appendfsync", "everysec", "--dir", place]
            if index:
                argv += ["--replicaof", "127.0.0.1", str(ports[0])]
            nodes.append(stack.enter_context(process(argv, b"Ready to accept connections", end=signal.SIGTERM)))
        end = time.monotonic() + 30
        while True:
            info = subprocess.run(["redis-cli", "-p", str(ports[0]), "info", "replication"], capture_output=True,
                                  text=True)
            if info.stdout.count("state=online") == 2:
                break
            if time.monotonic() > end:
                raise Unable("the Redis replicas do not follow")
            time.sleep(0.05)
        yield ports[0], [node.pid for node in nodes]


def redis_throughput(port, requests):
    done = subprocess.run(["redis-benchmark", "-p", str(port), "-t", "set,get", "-n", str(requests), "-c", "20",
                           "--csv"],
                          capture_output=True, text=True, timeout=300)
    rates = [float(line.split(",")[1].strip('"')) for line in done.stdout.splitlines()
             if line.startswith(('"SET"', '"GET"'))]
    if len(rates) != 2:
        raise Unable(f"redis-benchmark said {done.stdout!r} {done.stderr!r}")
    return statistics.harmonic_mean(rates)


def redis(bench, rounds, requests):
    found = []
    with redis_cluster(bench.folder) as (port, pids):
        nodes = [word for index, pid in enumerate(pids) for word in ("--node", f"redis{index}=pid:{pid}")]
        # The empty program is measured twice. The difference between two equal states is the noise.
        states = {"nothing": bench.nothing, "empty": bench.empty, "rose": lambda: bench.tracing(*nodes),
                  "empty again": bench.empty}
        order = list(states)
        redis_throughput(port, requests)  # warms caches up
        for round_number in range(rounds):
            rates = {}
            for name in order[round_number % 4:] + order[:round_number % 4]:
                with states[name]():
                    rates[name] = redis_throughput(port, requests)
            found.append(rates)
    return found


def row(what, values, bar, unit=""):
    middle, low, high = median_interval(values)
    return f"| {what} | {middle:.3g}{unit} | {low:.3g}–{high:.3g} | {bar} |"


def report(calls, throughputs):
    print("| what (medians of one run) | measured | 95 % interval | bar |\n|---|---|---|---|")
    if calls:
        def added(times, state, kind="write"):
            return times[state][kind] - times["nothing"][kind]
        # Leave out rounds in which the empty program appeared to cost nothing, because they were disturbed.
        good = [t for t in calls if added(t, "empty") > 0]
        if good:
            print(row("successful `write`, traced: added ÷ added by an empty program",
                      [added(t, "traced") / added(t, "empty") for t in good], "≤ 1.30"))
            print(row("successful `write`, not traced while another process is: the same",
                      [added(t, "untraced") / added(t, "empty") for t in good], "≤ 1.20"))
        print(row("the same in time: nothing attached", [t["nothing"]["write"] for t in calls], "", " ns"))
        print(row("… added by an empty program", [added(t, "empty") for t in calls], "", " ns"))
        print(row("… added by rose, traced", [added(t, "traced") for t in calls], "", " ns"))
        print(row("… added by rose, not traced", [added(t, "untraced") for t in calls], "", " ns"))
        print(row("failed `open` recorded with its path: added", [added(t, "traced", "open") for t in calls], "",
                  " ns"))
    if throughputs:
        print(row("Redis, 3 nodes, requests/s: rose ÷ empty program",
                  [t["rose"] / statistics.mean((t["empty"], t["empty again"])) for t in throughputs], "within noise"))
        print(row("… the noise: empty program ÷ empty program",
                  [t["empty again"] / t["empty"] for t in throughputs], ""))
        print(row("… lost to rose, of requests/s with nothing attached",
                  [100 * (1 - t["rose"] / t["nothing"]) for t in throughputs], "", " %"))
        print(row("… lost to an empty program", [100 * (1 - t["empty"] / t["nothing"]) for t in throughputs], "", " %"))
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build folder with rose and the target `bench`")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--calls", type=int, default=400_000, help="writes a measurement")
    parser.add_argument("--redis-rounds", type=int, default=15)
    parser.add_argument("--requests", type=int, default=60_000, help="requests of each kind a measurement")
    parser.add_argument("--only", choices=("syscalls", "redis"))
    parser.add_argument("--smoke", action="store_true", help="tiny counts: only that everything works")
    args = parser.parse_args()
    if args.smoke:
        args.rounds, args.calls, args.redis_rounds, args.requests = 1, 2000, 1, 1000
    if os.geteuid() != 0:
        print("SKIPPED: bench: needs root (BPF)")
        return 77
    folder = tempfile.mkdtemp(prefix="rose-bench-")
    try:
        bench = Bench(os.path.abspath(args.build), folder)
        calls = syscalls(bench, args.rounds, args.calls) if args.only != "redis" else None
        throughputs = None
        if args.only == "syscalls":
            pass
        elif shutil.which("redis-server") and shutil.which("redis-benchmark"):
            throughputs = redis(bench, args.redis_rounds, args.requests)
        else:
            print("redis-server is missing: its rows are left out", file=sys.stderr)
        report(calls, throughputs)
        if args.smoke:
            program = os.path.join(bench.programs, "rose_bench")
            if os.path.exists(program):  # the smoke run executes one benchmark once
                subprocess.run([program, "--benchmark_min_time=0", "--benchmark_filter=ring_to_window"], check=True)
        return 0
    except Unable as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
