#!/usr/bin/env python3
"""Judges logs as long as those of real machines: an hour of everyday messages that contain those of an incident, and
the same hour without the incident.

Usage: long.py ROSE

Composes the logs of all files of test/eval/incidents with @long, also those that the corpora leave out for their size.
Fails when the cause comes first in fewer than LEAST_FIRST of 100 logs, or when more than MOST_LOUD of the logs without
an incident have more than three candidates, or a candidate that a message states. For held-out systems it prints only
numbers.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEAST_FIRST, MOST_LOUD = 94, 3
HELD_OUT = set(json.loads((HERE / "corpora/systems.json").read_text())["logs"])


def judged(folder, *options):
    subprocess.run(
        [HERE / "compose", "--long", "--all", "--plain", "-o", folder, *options], stdout=subprocess.DEVNULL, check=True
    )
    made = subprocess.run(
        [HERE / "run", "--rose", sys.argv[1], "--logs", folder / "long", "--json"], stdout=subprocess.PIPE, text=True
    )
    if made.returncode != 0:
        sys.exit(f"long: run exits {made.returncode}")
    return json.loads(made.stdout)["cases"]


def tell(cases, wrong, what):
    for one in wrong:
        if one["system"] not in HELD_OUT:
            print(f"{what}: {one['case']}: rank {one['rank']} of {one['of']}; first: {one['top']}")
    held_out = [one for one in cases if one["system"] in HELD_OUT]
    print(
        f"{what}: {len(wrong)} of {len(cases)}, of held-out systems"
        f" {sum(1 for one in wrong if one['system'] in HELD_OUT)} of {len(held_out)}"
    )


with tempfile.TemporaryDirectory(prefix="eval-long-") as work:
    incidents = judged(Path(work, "incidents"))
    fault_free = judged(Path(work, "quiet"), "--quiet")
missed = [one for one in incidents if one["rank"] != 1]
loud = [one for one in fault_free if one["rank"] is None]
tell(incidents, missed, "another cause comes first")
tell(fault_free, loud, "false alarms without an incident")
if len(incidents) < 50:
    sys.exit(f"long: only {len(incidents)} incidents")
sys.exit((len(incidents) - len(missed)) * 100 < LEAST_FIRST * len(incidents) or len(loud) > MOST_LOUD)
