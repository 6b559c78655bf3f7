#!/usr/bin/env python3
"""Measures what a full window costs: the tracer's memory before, during and after a dump, the duration of a dump, and
its effect on the traced program. The window has a million events, each a failure with another path.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from measure import Bench, Unable


def kib(pid, field):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(rf"^{field}:\s+(\d+) kB", status.read(), re.M).group(1))


def maps_kib(pid):
    """Returns the memory of the BPF maps that the process holds, as accounted by the kernel."""
    held = {}
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}") as info:
                fields = dict(line.split(":", 1) for line in info.read().splitlines() if ":" in line)
        except FileNotFoundError:
            continue
        if "map_id" in fields:
            held[fields["map_id"].strip()] = int(fields.get("memlock", "0"))
    return sum(held.values()) // 1024


def measure(bench, memory, events, dumps):
    control = os.path.join(bench.folder, "control.sock")
    out = os.path.join(bench.folder, "asked.bin")
    with bench.calls() as calls, bench.tracing("--pid", str(calls.pid), "--memory", memory) as rose:
        empty = kib(rose.pid, "VmRSS")
        bench.ask(calls, "paths", events)
        before = kib(rose.pid, "VmRSS")
        quiet, busy, seconds, said = [], [], [], ""
        for _ in range(dumps):
            quiet += [bench.ask(calls, "paths", 5000) for _ in range(5)]
            ended = threading.Event()

            def dump():
                nonlocal said
                begun = time.monotonic()
                said = subprocess.run([bench.rose, "dump", "--control", control, "-o", out], check=True,
                                      stdout=subprocess.PIPE, text=True).stdout.strip()
                seconds.append(time.monotonic() - begun)
                ended.set()

            writer = threading.Thread(target=dump)
            writer.start()
            while not ended.is_set():
                busy.append(bench.ask(calls, "paths", 5000))
            writer.join()
        peak, after, maps = kib(rose.pid, "VmHWM"), kib(rose.pid, "VmRSS"), maps_kib(rose.pid)
    mib = lambda value: f"{value / 1024:.1f}"
    print(f"| {memory} | {mib(empty)} | {mib(before)} | {mib(peak)} | {mib(after)} | {mib(maps)} "
          f"| {statistics.median(seconds):.2f} s | {statistics.median(busy) / statistics.median(quiet):.2f} | "
          f"{said.split(': ', 1)[-1]} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build folder with rose and the target `bench`")
    parser.add_argument("--events", type=int, default=1_100_000)
    parser.add_argument("--dumps", type=int, default=5)
    args = parser.parse_args()
    if os.geteuid() != 0:
        print("SKIPPED: bench: needs root (BPF)")
        return 77
    folder = tempfile.mkdtemp(prefix="rose-bench-")
    try:
        print("| `--memory` | process, window empty (MiB) | full | peak while dumping | after | BPF maps | a dump "
              "takes "
              "| a failing call during a dump ÷ else | the dump |")
        print("|---|---|---|---|---|---|---|---|---|")
        for memory in ("64MiB", "8MiB"):
            measure(Bench(os.path.abspath(args.build), folder), memory, args.events, args.dumps)
        return 0
    except Unable as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
