#!/usr/bin/env python3
"""Checks the oracles in configs/oracles.md: they must report a hit if the bug occurred, a miss if it did not, and
otherwise that this is unknown."""
import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).parent.parent.parent
page = (root / "configs/oracles.md").read_text()
failures = 0

# For each oracle and each of its answers: the files of a run for which the oracle must give this answer.
RUNS = {
    "lost-writes": {
        0: {"acked.txt": "a 1\nb 2\n", "read.txt": "a 1\n"},
        1: {"acked.txt": "b 2\na 1\n", "read.txt": "a 1\nb 2\n"},
        2: {"acked.txt": "", "read.txt": ""},
    },
    "stale-reads": {
        0: {"writes.txt": "1.0 1\n2.0 2\n", "reads.txt": "1.5 1\n2.5 1\n"},
        1: {"writes.txt": "1.0 1\n2.0 2\n", "reads.txt": "0.5 0\n1.5 2\n2.5 2\n"},
        2: {"writes.txt": "", "reads.txt": "1.0 1\n"},
    },
    "hang": {
        0: {"ok.txt": "100\n101\n", "ended.txt": "130\n"},
        1: {"ok.txt": "100\n129\n", "ended.txt": "130\n"},
        2: {"ok.txt": "", "ended.txt": "130\n"},
    },
    "replicas-differ": {
        0: {"state.1": "a 1\n", "state.2": "a 2\n", "state.3": "a 1\n"},
        1: {"state.1": "a 1\n", "state.2": "a 1\n"},
        2: {"state.1": "a 1\n", "state.2": ""},
    },
    "assertion": {
        0: {"n1/stderr.log": "x\nassertion failed: entry 93 puts another value in the place\n",
            "n1/stdout.log": "ready\n"},
        1: {"n1/stderr.log": "panic: something else\n", "n1/stdout.log": "ready\n"},
        2: {"n1/stderr.log": "", "n1/stdout.log": "starting\n"},
    },
}


def fail(text):
    global failures
    failures += 1
    print(f"FAILED: {text}")


blocks = {}
for block in re.findall(r"^```shell\n(.*?)^```\s*$", page, flags=re.M | re.S):
    if named := re.search(r"^# oracle: (\S+)$", block, flags=re.M):
        blocks[named[1]] = block
if set(blocks) != set(RUNS):
    fail(f"configs/oracles.md has the oracles {sorted(blocks)}, this test knows {sorted(RUNS)}")
for name in sorted(set(blocks) & set(RUNS)):
    for wanted, files in RUNS[name].items():
        with tempfile.TemporaryDirectory(prefix="rosetest-") as work:
            for file, text in files.items():
                path = pathlib.Path(work) / file
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            script = pathlib.Path(work) / "oracle.sh"
            script.write_text(blocks[name])
            run = subprocess.run(["sh", script], cwd=work, capture_output=True, text=True, timeout=60)
        if run.returncode != wanted:
            fail(f"the oracle '{name}' exits with {run.returncode} instead of {wanted} for {files}: "
                 f"{run.stdout}{run.stderr}")
print("oracles: ok" if failures == 0 else f"oracles: {failures} failures")
sys.exit(1 if failures else 0)
