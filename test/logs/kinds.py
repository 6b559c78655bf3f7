#!/usr/bin/env python3
"""kinds.py ROSE FOLDER...: checks that each case meets its expect.txt (test/eval/README.md has the format).

The cases are small logs: one for each message that rose once misread, one for each export format of collectors, and
incidents in the form of public bug reports."""
import json
import subprocess
import sys
from pathlib import Path

run = Path(__file__).resolve().parent.parent / "eval" / "run"
made = subprocess.run([run, "--rose", sys.argv[1], "--logs", *sys.argv[2:], "--json"], capture_output=True, text=True)
if made.returncode != 0:
    sys.exit(made.stderr)
cases = json.loads(made.stdout)["cases"]
wrong = [one for one in cases if not one.get("expected") or one["held"] != one["expected"]]
for one in wrong:
    rank = "absent" if one["rank"] is None else f"rank {one['rank']}"
    print(f"{one['case']}: {one.get('held', 0)} of {one.get('expected', 0)} expectations hold; the cause: {rank} of"
          f" {one['of']}; first: {one['top'] or '-'}")
print(f"{len(cases) - len(wrong)} of {len(cases)} cases hold")
sys.exit(1 if wrong or not cases else 0)
