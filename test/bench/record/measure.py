#!/usr/bin/env python3
"""Runs the store alternately with and without recordings, with four clients, and prints lines of a Markdown table.

Usage: measure.py FOLDER-OF-KV-SERVER ROUNDS     (in a separate network namespace: see run.sh)
"""
import os
import subprocess
import sys

import pairs

programs, rounds = sys.argv[1], int(sys.argv[2])
addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
clients, writes = 4, 4000


def client(*arguments, **how):
    return subprocess.Popen([programs + "/kv-client", "--nodes", ",".join(addresses), *arguments],
                            stdout=subprocess.DEVNULL, **how)


def measured(folder, record):
    """Runs one cluster. Returns its writes per second, between the first and the last write, and the processor time of
    its nodes per write, in us."""
    nodes, used = [], 0
    try:
        for number in range(1, 4):
            environment = {**os.environ, "ROSE_RR": f"record:{folder}/{number}.rr"} if record else os.environ
            nodes.append(subprocess.Popen([programs + "/kv-server", "--id", str(number), "--cluster",
                                           ",".join(addresses), "--data", f"{folder}/{number}"],
                                          env=environment, stderr=subprocess.DEVNULL))
        assert client("put", "a", "b").wait() == 0
        begun = os.times().elapsed
        all = [client("load", "--count", str(writes), "--interval-ms", "0", "--prefix", f"{i}-")
               for i in range(clients)]
        assert all_ended(all)
        seconds = os.times().elapsed - begun
    finally:
        for node in nodes:
            node.kill()
            usage = os.wait4(node.pid, 0)[2]
            node.returncode = 0
            used += usage.ru_utime + usage.ru_stime
    return clients * writes / seconds, 1e6 * used / (clients * writes)


def all_ended(all):
    return [one.wait() for one in all] == [0] * len(all)


pairs.show(pairs.measure(measured, rounds), "a store of three nodes",
           [("writes a second", "a second"), ("processor time of a write", "us")])
