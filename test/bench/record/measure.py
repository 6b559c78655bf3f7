#!/usr/bin/env python3
"""Runs the store with and without recordings by turns, with four clients, and prints a line of a Markdown table.

Usage: measure.py FOLDER-OF-KV-SERVER ROUNDS     (in a network of its own: see run.sh)
"""
import math
import os
import statistics
import subprocess
import sys
import tempfile

programs, rounds = sys.argv[1], int(sys.argv[2])
addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
clients, writes = 4, 1000


def client(*arguments, **how):
    return subprocess.Popen([programs + "/kv-client", "--nodes", ",".join(addresses), *arguments], stdout=subprocess.DEVNULL, **how)


def writes_a_second(folder, record):
    """Of one cluster, from its first write to its last."""
    nodes = []
    try:
        for number in range(1, 4):
            environment = {**os.environ, "ROSE_RR": f"record:{folder}/{number}.rr"} if record else os.environ
            nodes.append(subprocess.Popen([programs + "/kv-server", "--id", str(number), "--cluster", ",".join(addresses), "--data", f"{folder}/{number}"],
                                          env=environment, stderr=subprocess.DEVNULL))
        assert client("put", "a", "b").wait() == 0
        begun = os.times().elapsed
        all = [client("load", "--count", str(writes), "--interval-ms", "0", "--prefix", f"{i}-") for i in range(clients)]
        assert all_ended(all)
        return clients * writes / (os.times().elapsed - begun)
    finally:
        for node in nodes:
            node.kill()
            node.wait()


def all_ended(all):
    return [one.wait() for one in all] == [0] * len(all)


ratios, plain = [], []
for turn in range(rounds):
    measured = {}
    for record in (True, False) if turn % 2 else (False, True):
        with tempfile.TemporaryDirectory(prefix="rose-bench-") as folder:
            measured[record] = writes_a_second(folder, record)
    plain.append(measured[False])
    ratios.append(math.log(measured[True] / measured[False]))
mean = statistics.mean(ratios)
spread = 1.96 * statistics.stdev(ratios) / math.sqrt(rounds) if rounds > 1 else 0
print("| what | measured |\n|---|---|")
print(f"| writes a second of a store of three nodes, all recorded ÷ not, {rounds} rounds | {math.exp(mean):.2f} "
      f"[{math.exp(mean - spread):.2f}–{math.exp(mean + spread):.2f}] ({statistics.median(plain):.0f} a second without) |")
