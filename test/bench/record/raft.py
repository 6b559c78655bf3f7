#!/usr/bin/env python3
"""Runs examples/record/raft alternately with and without recordings, and prints lines of a Markdown table.

Usage: raft.py RAFT-COUNTER ROUNDS [SECONDS]     (in a separate network namespace: see raft.sh)
"""
import os
import re
import subprocess
import sys

import pairs

program, rounds, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "2"
addresses = "127.0.0.1,127.0.0.2,127.0.0.3"


def measured(folder, record):
    """Returns the additions per second, the latency in ms that only the slowest percent exceeds, and the processor time
    of the nodes per addition, in us."""
    nodes, used = [], 0
    try:
        for number in range(1, 4):
            environment = {**os.environ, "ROSE_RR": f"record:{folder}/{number}.rr",
                           "ROSE_RR_WINDOW": "16MiB"} if record else os.environ
            nodes.append(subprocess.Popen([program, "-id", str(number), "-nodes", addresses], env=environment,
                                          stderr=subprocess.DEVNULL))
        said = subprocess.run([program, "load", "-nodes", addresses, "-seconds", seconds, "-writers", "8", "-readers",
                               "0"], stdout=subprocess.PIPE, text=True, check=True).stdout
        a_second, slowest = re.fullmatch(r"(\d+) a second, 99th percentile ([\d.]+) ms\n", said).groups()
    finally:
        for node in nodes:
            node.kill()
            usage = os.wait4(node.pid, 0)[2]
            node.returncode = 0
            used += usage.ru_utime + usage.ru_stime
    return float(a_second), float(slowest), 1e6 * used / (float(a_second) * float(seconds))


pairs.show(pairs.measure(measured, rounds), "three nodes on etcd's raft module",
           [("additions a second", "a second"), ("99th percentile of an addition", "ms"),
            ("processor time of an addition", "us")])
