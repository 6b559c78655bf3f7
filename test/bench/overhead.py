#!/usr/bin/env python3
"""Measures what `rose trace` costs a running program, compared with no tracer: the run time of a load and the program's
processor time.

Usage: overhead.py --rose ROSE --pid PID [--rounds N] -- LOAD [ARG...]

LOAD is a command that sends a fixed amount of work to the process PID, such as a benchmark client. It runs alternately
without and with a tracer of PID, so that slow changes of the machine affect both sides. Prints two ratios (traced /
untraced): that of the load's run time, and that of the processor time that PID and its threads used. Each has a 95 %
interval, computed from the logarithms of the rounds' ratios. """
import argparse
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time


def processor_time(pid):
    """Returns the seconds of user and system processor time of all threads of a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def round_of(load, pid):
    before, began = processor_time(pid), time.monotonic()
    subprocess.run(load, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began, processor_time(pid) - before


def traced_round(rose, load, pid, work):
    tracer = subprocess.Popen([rose, "trace", "--pid", str(pid), "--control", f"{work}/sock", "-o", f"{work}/dump.bin"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        # The first line reports that the tracer is attached. If the output ends before it, the tracer did not start.
        if not tracer.stdout.readline():
            raise SystemExit("overhead.py: 'rose trace' did not start; run it by hand to see why")
        return round_of(load, pid)
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.communicate()


def ratio(name, pairs):
    logs = [math.log(traced / plain) for plain, traced in pairs if plain > 0 and traced > 0]
    if len(logs) < 2:
        print(f"{name}: too few rounds with a measurable time")
        return
    middle, error = statistics.mean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    print(f"{name}: {math.exp(middle):.3f} [{math.exp(middle - 2 * error):.3f}-{math.exp(middle + 2 * error):.3f}] "
          f"of the untraced ({len(logs)} rounds)")


def main():
    words = sys.argv[1:]
    if "--" not in words:
        raise SystemExit(__doc__)
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rose", default="rose")
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args(words[: words.index("--")])
    load = words[words.index("--") + 1 :]
    round_of(load, options.pid)  # warms caches up
    durations, times = [], []
    with tempfile.TemporaryDirectory(prefix="rose-overhead-") as work:
        for number in range(options.rounds):
            # The side that comes first alternates from round to round.
            order = (False, True) if number % 2 else (True, False)
            seen = {traced: traced_round(options.rose, load, options.pid, work) if traced
                    else round_of(load, options.pid) for traced in order}
            durations.append((seen[False][0], seen[True][0]))
            times.append((seen[False][1], seen[True][1]))
    ratio("run time of the load", durations)
    ratio("processor time of the process", times)


main()
