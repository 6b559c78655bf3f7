#!/usr/bin/env python3
"""Checks for false alarms: a fault-free log has at most three candidates, and none that a message states. Otherwise
exits 1.

Usage: quiet.py ROSE
"""
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEAST_LOGS, LEAST_SYSTEMS = 50, 15

made = subprocess.run(
    [HERE / "run", "--rose", sys.argv[1], "--logs", HERE / "corpora/quiet", "--json"], stdout=subprocess.PIPE, text=True
)
if made.returncode != 0:
    sys.exit(f"quiet: run exits {made.returncode}")
cases = json.loads(made.stdout)["cases"]
loud = [one for one in cases if one["rank"] is None]
for one in loud:
    print(f"FAILED: {one['case']}: {one['of']} candidates, or one that a message states; first: {one['top']}")
systems = {one["system"] for one in cases}
if len(cases) < LEAST_LOGS or len(systems) < LEAST_SYSTEMS:
    sys.exit(f"quiet: {len(cases)} logs of {len(systems)} systems: {LEAST_LOGS} of {LEAST_SYSTEMS} are needed")
print(f"{len(cases)} fault-free logs of {len(systems)} systems: {len(loud)} have false alarms")
sys.exit(1 if loud else 0)
