#!/usr/bin/env python3
"""Checks that `rose explain` finds nothing in groups of runs that do not differ.

It uses the planted programs, without their bugs. Each pair of a program and a harmless fault (a call takes a
millisecond longer, or a node is paused for five milliseconds) has one of two oracles. The first reports every other run
as failing, whatever happened in it, so that failing and correct runs differ only by noise. The second is the program's
own, so that the symptom does not occur. The only right results are "nothing-found" for the first and "not-reproduced"
for the second, without suspects and differences; everything else is a false explanation. """
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The case, the node, and a call that the node makes in every run.
CASES = [("crash-between-writes", "shelf", "pwrite64"), ("scf-by-path", "store", "fdatasync"),
         ("flaky-60", "catalog", "fsync"),
         ("pause", "first", "sendto"), ("partition", "n1", "sendto"), ("role-specific", "n1", "sendto"),
         ("scf-on-socket", "greeter", "sendto"), ("go-crash-between-calls", "shelf", "pwrite64"),
         ("two-hosts-dump", "primary", "write"),
         ("scf-by-nth-call", "journal", "fdatasync")]
ORACLE = """#!/bin/sh
# Every run with an odd number fails.
number=${ROSE_RUN_DIR##*run-}
case $number in *[13579]) echo "an odd run"; exit 0 ;; esac
exit 1
"""


def say(text):
    print(text, file=sys.stderr, flush=True)


def schedule(name, node, call, sort):
    fault = f'kind = "pause"\nduration = "5ms"\nwhen = [ {{ elapsed = "600ms" }} ]' if sort == "stands still" else \
        f'kind = "syscall"\nsyscall = "{call}"\ndelay = "1ms"'
    return f'version = 1\nname = "{name}"\n[[fault]]\nid = "harmless"\nnode = "{node}"\n{fault}\n'


def prepare(case, name, node, call, sort):
    """Writes nothing.toml and harmless.toml."""
    text = (case / "rose.toml").read_text()
    if sort != "no symptom":
        head, oracle = text.split("[oracle]", 1)
        rest = re.sub(r'command\s*=.*', 'command = ["./by_number"]', oracle, count=1)
        text = head + "[oracle]" + rest
        (case / "by_number").write_text(ORACLE)
        (case / "by_number").chmod(0o755)
    (case / "nothing.toml").write_text(text)
    (case / "harmless.toml").write_text(schedule(name, node, call, sort))


def explain(rose, folder, name, node, call, sort, runs):
    case = folder / name
    prepare(case, name, node, call, sort)
    made = subprocess.run([rose, "explain", "harmless.toml", "-c", "nothing.toml", "-o", str(folder / "why.md"),
                           "--json", "--runs", str(runs)], cwd=case,
                          capture_output=True, text=True, errors="replace")
    if not made.stdout:
        return None, made.stderr.strip().splitlines()[-1] if made.stderr else f"exit {made.returncode}"
    told = json.loads(made.stdout)
    wanted = "not-reproduced" if sort == "no symptom" else "nothing-found"
    good = told["verdict"] == wanted and not told["suspects"] and not told["differences"]
    words = told["verdict"] if good else f"{told['verdict']}: {told['reason']}; " + "; ".join(
        f"{d['node']} {'no longer ' if d['missing'] else ''}{d['what']} ({d['failing']:.1f}, {d['sound']:.1f})"
        for d in told["differences"][:5])
    return good, words


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="begin with this case")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    rose = str(Path(os.environ.get("ROSE", HERE / "../../build/release/rose")).resolve())
    all_pairs = [(*CASES[i % len(CASES)], ("takes longer", "stands still", "no symptom")[(i + i // len(CASES)) % 3])
                 for i in range(arguments.pairs)]
    said_nothing, told = 0, 0
    with tempfile.TemporaryDirectory(prefix="nothing-") as work:
        folder = Path(work) / "planted"
        shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("build"))
        installed = set()
        for i, (name, node, call, sort) in enumerate(all_pairs):
            if i < arguments.first:
                continue
            if name not in installed:
                made = subprocess.run(["./install"], cwd=folder / name, capture_output=True, text=True)
                if made.returncode != 0:
                    say(f"{name}: SKIPPED: {made.stdout.strip() or made.stderr.strip()}")
                    continue
                installed.add(name)
            good, words = explain(rose, folder, name, node, call, sort, arguments.runs)
            say(f"{i + 1}. {name}, {node} {sort}: {words}")
            if good is None:
                sys.exit(f"{name}: {words}")
            said_nothing, told = said_nothing + good, told + 1
    print(f"said that it found nothing: {said_nothing} of {told}")
    sys.exit(0 if said_nothing == told else 1)


if __name__ == "__main__":
    main()
