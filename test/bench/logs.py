#!/usr/bin/env python3
"""Measures how long rose takes to read many logs: `logs.py ROSE [--size MiB] [--hosts N]`.

Writes logs of N hosts with this total size (default: 30 hosts, 1024 MiB), in the formats of six systems, with a failure
near their end. Then runs `rose diagnose --plan --log`, and prints how many seconds it took and its peak memory. Needs
no root, but space on the disk of TMPDIR. """
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KINDS = [
    "committed entry {n} of term {m} in {f} ms", "accepted connection from 10.0.{a}.{b}:{p}",
    "closed connection to 10.0.{a}.{b}:{p}, {n} bytes sent",
    "compacted table /srv/data/t-{n}.sst into level {a}", "request {x} for key user-{n} took {m} us",
    "lease {x} renewed until epoch {n}",
    "snapshot {n} written to /srv/data/snap/{n}.db ({m} bytes)", "heartbeat to n{a} acknowledged, match index {n}",
    "cache: {n} hits, {m} misses, ratio {f}", "applied batch of {a} operations at index {n}",
    "session {x} opened by client {m}",
    "session {x} expired after {n} ms", "segment {n} rolled, {m} bytes", "garbage collection freed {n} KiB in {f} ms",
    "replica of shard {a} is {n} entries behind", "flushed memtable {n} to /srv/data/L0/{x}.sst",
]
TROUBLE = "cannot write /srv/data/wal/{n}.log: No space left on device"


def message(rng, text):
    return text.format(n=rng.randrange(10**7), m=rng.randrange(10**5), a=rng.randrange(250), b=rng.randrange(250),
                       p=rng.randrange(1024, 65536),
                       f=f"{rng.random() * 100:.3f}", x=f"{rng.getrandbits(64):016x}")


def forms():
    def stamp(ms, form, sub=""):
        return time.strftime(form, time.gmtime(ms // 1000)) + sub.format(ms % 1000)
    iso = "%Y-%m-%d %H:%M:%S"
    return [
        lambda ms, level, text, i: f"{stamp(ms, iso, ',{:03}')} [worker-{i % 8}] {level:5} o.x.Store - {text}\n",
        lambda ms, level, text, i: json.dumps({"level": level.lower(), "ts": stamp(ms, "%Y-%m-%dT%H:%M:%S", ".{:03}Z"),
                                               "caller": "raft/node.go:81", "msg": text}) + "\n",
        lambda ms, level, text, i: f"41:M {stamp(ms, '%d %b %Y %H:%M:%S', '.{:03}')} "
                                   f"{'#' if level == 'ERROR' else '*'} {text}\n",
        lambda ms, level, text, i: f"[{i % 900}] {stamp(ms, '%Y/%m/%d %H:%M:%S', '.{:03}000')} [{level[:3]}] {text}\n",
        lambda ms, level, text, i: f"{stamp(ms, '%b %e %H:%M:%S')} db store[41]: {text}\n",
        lambda ms, level, text, i: f"{level[0]}{stamp(ms, '%m%d %H:%M:%S', '.{:03}000')}      41 store.cc:{i % 700}] "
                                   f"{text}\n",
    ]


def write_log(path, size, form, rng):
    written, ms, i = 0, 1_763_755_200_000, 0
    with open(path, "w", buffering=1 << 20) as out:
        while written < size:
            i += 1
            ms += rng.randrange(12)
            trouble = size - written < 4096
            line = form(ms, "ERROR" if trouble else "INFO",
                        message(rng, TROUBLE if trouble else KINDS[min(rng.randrange(20), rng.randrange(16))]), i)
            out.write(line)
            written += len(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rose", type=Path)
    parser.add_argument("--size", type=int, default=1024, help="MiB in all (default: 1024)")
    parser.add_argument("--hosts", type=int, default=30)
    options = parser.parse_args()
    rose = options.rose.resolve()
    work = Path(tempfile.mkdtemp(prefix="rosebench-"))
    try:
        hosts = [f"h{i:02}" for i in range(1, options.hosts + 1)]
        nodes = "".join(f'[[node]]\nname = "{host}"\ncommand = ["true"]\n' for host in hosts)
        (work / "rose.toml").write_text(nodes + '[workload]\ncommand = ["true"]\n[oracle]\ncommand = ["true"]\n')
        for i, host in enumerate(hosts):
            write_log(work / f"{host}.log", (options.size << 20) // len(hosts), forms()[i % len(forms())],
                      random.Random(i))
        whole = sum((work / f"{host}.log").stat().st_size for host in hosts)
        began = time.monotonic()
        process = subprocess.Popen([rose, "diagnose", "--plan", "--json", "-c", "rose.toml",
                                    *(word for host in hosts for word in ("--log", f"{host}={host}.log"))],
                                   cwd=work, stdout=open(work / "plan.json", "w"), stderr=open(work / "told", "w"))
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        if status != 0:
            sys.exit(f"logs.py: rose ended with status {status}:\n" + (work / "told").read_text()[-2000:])
        candidates = json.loads((work / "plan.json").read_text())["candidates"]
        found = sum("No space left" in candidate["why"] for candidate in candidates)
        print("| logs | hosts | seconds | of processor | most memory | candidates that quote the failure |\n|---|---|"
              "---|---|---|---|")
        print(f"| {whole / 2**20:.0f} MiB | {len(hosts)} | {seconds:.1f} | {usage.ru_utime + usage.ru_stime:.1f} | "
              f"{usage.ru_maxrss / 1024:.0f} MiB | {found} of {len(candidates)} |")
        print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
