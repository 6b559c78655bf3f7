#!/usr/bin/env python3
"""Measures `rose explain` with known failures, the planted ones of this folder and the real bugs of examples/bugs: the
rank that it gives the faulty function, and whether the stack where the fault fired is right.

A case is measured if it has a schedule.toml, and a case.json with the key `faulty`: the faulty functions as the source
names them, determined by reading the source or its fix before anything was explained. For each such case, this script
installs it, explains the schedule, and prints a row of a table. Further keys of case.json: `arrives` lists, for each
fault, functions that are on the stack where it fires, innermost first. `explain` lists options for rose explain.
`unseen` is the reason why rose can see no function of the case; such a case is explained only if it is named on the
command line. An inlined function has no entry of its own. The functions into which it was inlined, according to the
program's debug information, count in its place. Each row is written to the case's explained.json, and the tables to the
READMEs of both folders. """
import argparse
import datetime
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUGS = HERE.parent.parent / "examples" / "bugs"
BEGIN, END = "<!-- explained: begin (written by explain.py) -->", "<!-- explained: end -->"
LIMIT = 2400
INSTALL_SKIPS = 77
DASH = "\N{EN DASH}"


def say(text):
    print(text, file=sys.stderr, flush=True)


def bare(name):
    """Returns a function's name without parameters, in the form that `faulty` uses."""
    name = name.replace("(anonymous namespace)::", "")
    return re.sub(r"\((?!\*).*$", "", name)


def means(told, faulty):
    told, faulty = bare(told), faulty
    return told == faulty or told.endswith("::" + faulty) or told.endswith("." + faulty)


def built_into(programs, faulty):
    """Returns the functions into which the faulty one was inlined, as far as readelf reports them."""
    out = set()
    for program in programs:
        dump = subprocess.run(["readelf", "--debug-dump=info", program], capture_output=True, text=True,
                              errors="replace").stdout
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


def stack_is_right(stacks, arrives):
    """Returns whether each fault in `arrives` that fired has a stack with the functions listed for it, innermost
    first."""
    fired = {s["fault"] for s in stacks}
    wanted = {fault: functions for fault, functions in arrives.items() if fault in fired}
    if not wanted:  # not all faults of `arrives` need to fire, because some are alternatives, but one must
        return False

    def has(frames, functions):
        rest = iter(frames)
        return all(any(means(frame["function"], f) for frame in rest) for f in functions)

    return all(any(s["fault"] == fault and has(s["frames"], functions) for s in stacks)
               for fault, functions in wanted.items())


def explain(command, case):
    """Runs rose explain; when interrupted, stops rose so that it undoes its changes."""
    process = subprocess.Popen(command, cwd=case, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace")
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        return "", err, f"longer than {LIMIT} s"
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
    return out, err, f"exit {process.returncode}"


def measure(case, rose, runs, keep, kept):
    facts = json.loads((case / "case.json").read_text())
    if kept:
        if not (Path(kept) / case.name / "explained.runs").exists():
            return None
        said, complained, ended = explain([rose, "explain", "--from", str(Path(kept).resolve() / case.name), "--json"],
                                          case)
        return row_of(case, facts, said, complained, ended)
    install = subprocess.run(["./install"], cwd=case, capture_output=True,
                             text=True) if (case / "install").exists() else None
    if install is not None and install.returncode == INSTALL_SKIPS:
        say(f"{case.name}: SKIPPED: {install.stdout.strip()}")
        return None
    if install is not None and install.returncode != 0:
        say(f"{case.name}: {install.stdout.strip() or install.stderr.strip()}")
        return None
    out = Path(keep or os.environ.get("TMPDIR", "/tmp")) / f"explain-{case.name}.md"
    command = [rose, "explain", "schedule.toml", "-c", "rose.toml", "-o", str(out), "--json", *facts.get("explain", []),
               *(["--runs", str(runs)] if runs else [])]
    said, complained, ended = explain(command, case)
    if keep:
        (Path(keep) / f"{case.name}.json").write_text(said)
        (Path(keep) / f"{case.name}.err").write_text(complained)
    else:
        out.unlink(missing_ok=True)
    return row_of(case, facts, said, complained, ended)


def row_of(case, facts, said, complained, ended):
    if not said:
        say(f"{case.name}: {ended}: {complained.strip().splitlines()[-1] if complained else ''}")
        return {"case": case.name, "faulty": facts["faulty"], "verdict": ended}
    told = json.loads(said)
    programs = [p for p in (case / "build").glob("*") if p.is_file()] if (case / "build").is_dir() else []
    into = sorted({name for f in facts["faulty"] for name in built_into(programs, f)})
    row = {"case": case.name, "date": datetime.date.today().isoformat(), "faulty": facts["faulty"],
           "verdict": told["verdict"],
           "rank": rank_of(told["suspects"], facts["faulty"]), "into": into,
           "rank_into": rank_of(told["suspects"], into),
           "suspects": len(told["suspects"]), "runs": told["runs"], "seconds": round(told["seconds"], 1),
           "stacks": len(told["stacks"]),
           "chance": told["chance"], "first": [s["function"] for s in told["suspects"][:3]]}
    if "arrives" in facts:
        row["stack_right"] = stack_is_right(told["stacks"], facts["arrives"])
    return row


def best(row):
    return min((x for x in (row.get("rank"), row.get("rank_into")) if x), default=None)


def table(folder):
    """Returns the table of all cases of a folder that were measured now or before."""
    lines = ["| case | at fault | its rank | built into (rank) | stack where it fired | verdict | failing, sound, "
             "fault without bug | seconds |",
             "|---|---|---|---|---|---|---|---|"]
    rows = []
    for case in sorted(folder.iterdir()):
        facts = json.loads((case / "case.json").read_text()) if (case / "case.json").exists() else {}
        if "unseen" in facts:
            lines.append(f"| {case.name} | {', '.join(facts['faulty'])} | {DASH} | {DASH} | {DASH} | not counted: "
                         f"{facts['unseen']} | {DASH} | {DASH} |")
            continue
        if not (case / "explained.json").exists():
            continue
        r = json.loads((case / "explained.json").read_text())
        rows.append(r)
        runs = r.get("runs")
        into = f"{', '.join(r['into'])} ({r.get('rank_into') or DASH})" if r.get("into") else DASH
        right = {True: "right", False: "**not told**", None: DASH}[r.get("stack_right")]
        lines.append(
            f"| {r['case']} | {', '.join(r['faulty'])} | {r.get('rank') or DASH} | {into} | {right} | {r['verdict']} | "
                     f"{', '.join(str(runs[k]) for k in ('failing', 'sound', 'near')) if runs else DASH} | "
                     f"{r.get('seconds', 0):.0f} |")
    return "\n".join(lines) + "\n", rows


def summary(rows):
    """Returns the summary of all cases for readers. The rank of each case is in measure.py's table, everything else in
    results.json."""
    lines = [f"- a faulty function has rank {most}{' or better' if most > 1 else ''}: "
             f"{sum(1 for r in rows if best(r) and best(r) <= most)} of {len(rows)}"
             for most in (1, 3, 10)]
    judged = [r for r in rows if r.get("stack_right") is not None]
    if judged:
        lines.append("- the reported stack is the one on which the fault fired: "
                     f"{sum(1 for r in judged if r['stack_right'])} of {len(judged)}")
    dates = sorted({r["date"] for r in rows if "date" in r})
    if dates:
        lines.append(f"- measured {dates[0]}" + (f" to {dates[-1]}" if dates[-1] != dates[0] else ""))
    return "\n".join(lines) + "\n"


def with_summary(folder):
    """Returns the text of the folder's README with the summary, or None if there is nothing to write."""
    _, rows = table(folder)
    old = (folder / "README.md").read_text()
    if not rows or BEGIN not in old:
        return None
    return old[:old.index(BEGIN) + len(BEGIN)] + "\n" + summary(rows) + old[old.index(END):]


def write_readme(folder):
    text = with_summary(folder)
    if text is None:
        return
    beside = (folder / "README.md").with_suffix(".md.new")
    beside.write_text(text)
    beside.rename(folder / "README.md")
    # The table of measure.py also contains the ranks, so refresh it.
    subprocess.run([HERE / "measure.py", "--folder", folder, "--kind", "bugs" if folder == BUGS else "planted",
                    "--only-table"],
                   check=True, stdout=subprocess.DEVNULL)


def known_in(folder):
    return [c for c in sorted(folder.iterdir())
            if (c / "schedule.toml").exists() and (c / "case.json").exists()
            and "faulty" in json.loads((c / "case.json").read_text())]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help="case of either folder (default: all planted ones)")
    parser.add_argument("--bugs", action="store_true", help="all real bugs instead")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--keep", metavar="DIR", help="keep what explain prints and writes in this folder")
    parser.add_argument("--from", dest="kept", metavar="DIR",
                        help="explain the runs again that 'explain --report' kept in DIR/CASE; others are left out")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    rose = str(Path(os.environ.get("ROSE", HERE / "../../build/release/rose")).resolve())
    known = {c.name: c for folder in (HERE, BUGS) for c in known_in(folder)}
    for name in arguments.cases:
        if name not in known:
            parser.error(f"no case '{name}' with a schedule and a known faulty function: there are {', '.join(known)}")
    folder = BUGS if arguments.bugs else HERE
    chosen = arguments.cases or [c.name for c in known_in(folder)
                                 if "unseen" not in json.loads((c / "case.json").read_text())]
    for name in chosen:
        case = known[name]
        say(f"{name}...")
        row = measure(case, rose, arguments.runs, arguments.keep, arguments.kept)
        if row is None:
            continue
        (case / "explained.json").write_text(json.dumps(row, indent=1) + "\n")
        say(f"{name}: rank {best(row) or DASH}; {json.dumps(row)}")
        write_readme(case.parent)
    for one in (HERE, BUGS):
        text, rows = table(one)
        if rows:
            print(f"{one.name}\n\n{text}\n{summary(rows)}")


if __name__ == "__main__":
    main()
