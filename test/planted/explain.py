#!/usr/bin/env python3
"""Measures `rose explain` with the planted failures: at which rank it tells the function that is at fault.

For each case that has a schedule.toml, and in its case.json a `faulty` (functions as the source has them, found by reading it before
anything is explained): installs it, explains the schedule, and prints a row of a table. A function that the compiler has built into
others has no entry of its own: then those count that it stands in, by the program's debug information.
"""
import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT = 1800


def say(text):
    print(text, file=sys.stderr, flush=True)


def bare(name):
    """A name without parameters and what stands before the last of its parts that `faulty` may name."""
    name = name.replace("(anonymous namespace)::", "")
    return re.sub(r"\((?!\*).*$", "", name)


def means(told, faulty):
    told, faulty = bare(told), faulty
    return told == faulty or told.endswith("::" + faulty) or told.endswith("." + faulty)


def built_into(programs, faulty):
    """The functions that it was inlined into, as far as readelf knows."""
    out = set()
    for program in programs:
        dump = subprocess.run(["readelf", "--debug-dump=info", program], capture_output=True, text=True, errors="replace").stdout
        names, origins, stack, inlined = {}, {}, [], []
        for line in dump.splitlines():
            head = re.match(r"\s*<([0-9a-f]+)><([0-9a-f]+)>: Abbrev Number: \d+ \((DW_TAG_\w+)\)", line)
            if head:
                depth, offset, tag = int(head[1], 16), int(head[2], 16), head[3]
                while stack and stack[-1][0] >= depth:
                    stack.pop()
                stack.append((depth, offset, tag))
                continue
            if not stack:
                continue
            offset, tag = stack[-1][1], stack[-1][2]
            name = re.search(r"DW_AT_name\s*:\s*(?:\(.*?\):\s*)?(\S.*)$", line)
            if name and tag == "DW_TAG_subprogram":
                names[offset] = name[1].strip()
            origin = re.search(r"DW_AT_(?:abstract_origin|specification)\s*:\s*<0x([0-9a-f]+)>", line)
            if origin:
                origins[offset] = int(origin[1], 16)
                if tag == "DW_TAG_inlined_subroutine":
                    around = next((entry[1] for entry in reversed(stack) if entry[2] == "DW_TAG_subprogram"), None)
                    inlined.append((origins[offset], around))

        def name_of(offset):
            for _ in range(4):
                if offset in names:
                    return names[offset]
                if offset not in origins:
                    return ""
                offset = origins[offset]
            return ""

        wanted = faulty.split("::")[-1].split(".")[-1]
        for origin, around in inlined:
            if around is not None and name_of(origin) == wanted:
                out.add(name_of(around))
    return sorted(name for name in out if name)


def rank_of(suspects, functions):
    return next((s["rank"] for s in suspects if any(means(s["function"], f) for f in functions)), None)


def measure(case, rose, runs, keep):
    facts = json.loads((case / "case.json").read_text())
    install = subprocess.run(["./install"], cwd=case, capture_output=True, text=True) if (case / "install").exists() else None
    if install is not None and install.returncode != 0:
        say(f"{case.name}: {install.stdout.strip() or install.stderr.strip()}")
        return None
    out = Path(os.environ.get("TMPDIR", "/tmp")) / f"explain-{case.name}.md"
    command = [rose, "explain", "schedule.toml", "-c", "rose.toml", "-o", str(out), "--json", *(["--runs", str(runs)] if runs else [])]
    made = subprocess.run(command, cwd=case, capture_output=True, text=True, errors="replace", timeout=LIMIT)
    if keep:
        (Path(keep) / f"{case.name}.json").write_text(made.stdout)
        (Path(keep) / f"{case.name}.err").write_text(made.stderr)
    if not made.stdout:
        say(f"{case.name}: exit {made.returncode}: {made.stderr.strip().splitlines()[-1] if made.stderr else ''}")
        return {"case": case.name, "faulty": facts["faulty"], "verdict": f"exit {made.returncode}"}
    told = json.loads(made.stdout)
    programs = [p for p in (case / "build").glob("*") if p.is_file()] if (case / "build").is_dir() else []
    into = sorted({name for f in facts["faulty"] for name in built_into(programs, f)})
    return {"case": case.name, "faulty": facts["faulty"], "verdict": told["verdict"], "rank": rank_of(told["suspects"], facts["faulty"]), "into": into,
            "rank_into": rank_of(told["suspects"], into), "suspects": len(told["suspects"]), "runs": told["runs"], "seconds": told["seconds"],
            "stacks": len(told["stacks"]), "chance": told["chance"],
            "first": [s["function"] for s in told["suspects"][:3]]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--keep", metavar="DIR", help="keep what explain prints in this folder")
    arguments = parser.parse_args()
    rose = os.environ.get("ROSE", str(HERE / "../../build/release/rose"))
    known = [c for c in sorted(HERE.iterdir()) if (c / "schedule.toml").exists() and "faulty" in json.loads((c / "case.json").read_text())]
    names = [c.name for c in known]
    for name in arguments.cases:
        if name not in names:
            parser.error(f"no case '{name}' with a schedule and a known faulty function: there are {', '.join(names)}")
    rows = []
    for case in known:
        if arguments.cases and case.name not in arguments.cases:
            continue
        say(f"{case.name}...")
        row = measure(case, rose, arguments.runs, arguments.keep)
        if row is not None:
            rows.append(row)
            say(f"{case.name}: {json.dumps(row)}")
    print("| case | faulty function | built into | verdict | its rank | rank of what it is built into | stacks | failing, sound, near | seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    dash = "\N{EN DASH}"
    for r in rows:
        runs = r.get("runs")
        print(f"| {r['case']} | {', '.join(r['faulty'])} | {', '.join(r.get('into', [])) or dash} | {r['verdict']} | {r.get('rank') or dash} | "
              f"{r.get('rank_into') or dash} | {r.get('stacks', dash)} | "
              f"{', '.join(str(runs[k]) for k in ('failing', 'sound', 'near')) if runs else dash} | {r.get('seconds', 0):.0f} |")
    best = [min(x for x in (r.get("rank"), r.get("rank_into")) if x) if r.get("rank") or r.get("rank_into") else None for r in rows]
    if rows:
        for most in (1, 3, 10):
            print(f"\nfirst {most}: {sum(1 for b in best if b and b <= most)} of {len(rows)}", end="")
        print()


if __name__ == "__main__":
    main()
