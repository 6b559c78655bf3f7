#!/usr/bin/env python3
"""Checks test/eval/run: what it accepts and refuses, and that its ranks agree with those of the commands it runs.

Usage: check.py ROSE
"""
import importlib.machinery
import importlib.util
import json
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("run", str(HERE / "run"))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
loader.exec_module(run)
sys.path.insert(0, str(HERE))

ROSE = str(Path(sys.argv[1]).resolve())
failures = 0


def check(what, holds):
    global failures
    if not holds:
        failures += 1
        print(f"FAILED: {what}")


CONFIG = """name = "t"
[deployment]
subnet = "10.9.0.0/24"
[[node]]
name = "n1"
ip = "10.9.0.1"
command = ["sleep", "9"]
[[node]]
name = "n2"
ip = "10.9.0.2"
command = ["sleep", "9"]
[workload]
command = ["true"]
[oracle]
command = ["false"]
"""
EVENTS = [
    {"meta": {"version": 1, "node": "n1", "window": 1000, "lost": 0}},
    {
        "ts": 1763755200000000000,
        "node": "n1",
        "type": "ps",
        "pid": 41,
        "state": "crashed",
        "signal": "SIGKILL",
        "exit_code": None,
        "duration_ms": None,
        "planned": False,
    },
    {
        "ts": 1763755203000000000,
        "node": "n2",
        "type": "scf",
        "pid": 42,
        "tid": 42,
        "syscall": "write",
        "errno": "ENOSPC",
        "fd": 3,
        "path": "/data/log",
        "peer": None,
    },
]
LOG = (
    "2024-06-12T03:06:17.114Z INFO storage: serving\n2024-06-12T03:06:27.114Z INFO storage: compacted\n"
    "2024-06-12T03:07:53.382Z ERROR storage: write /srv/kv/0001.wal: no space left on device\n"
)


def plan_case(folder, root, **more):
    folder.mkdir(parents=True)
    (folder / "rose.toml").write_text(CONFIG)
    (folder / "incident.jsonl").write_text("".join(json.dumps(one) + "\n" for one in EVENTS))
    (folder / "case.json").write_text(json.dumps({"system": "t 1.0", "root": root, **more}))


def log_case(folder, expect):
    folder.mkdir(parents=True)
    (folder / "rose.toml").write_text(CONFIG)
    (folder / "server.log").write_text(LOG)
    (folder / "args").write_text("--log n1=server.log\n")
    (folder / "expect.txt").write_text(expect)


def asked(*words):
    made = subprocess.run([HERE / "run", "--rose", ROSE, *map(str, words)], capture_output=True, text=True)
    return made.returncode, made.stdout, made.stderr


def check_plans(work):
    corpus = work / "plans"
    plan_case(corpus / "a", [{"kind": "crash", "node": "n1"}])
    plan_case(corpus / "b", [{"kind": "syscall", "node": "n2", "error": "ENOSPC", "path": ".*/log"}])
    plan_case(corpus / "c", [{"kind": "partition"}])
    status, out, err = asked("--plans", corpus, "--json")
    check(f"plans: exit {status}: {err}", status == 0)
    told = json.loads(out)
    ranks = {one["case"]: one["rank"] for one in told["cases"]}
    check(
        f"ranks of plans: {ranks}",
        set(ranks) == {"a", "b", "c"} and ranks["c"] is None and sorted([ranks["a"], ranks["b"]]) == [1, 2],
    )
    check(
        "the result has all keys",
        {"kind", "cases", "first", "first3", "first10", "mean_log_rank"} <= set(told) and told["kind"] == "plans",
    )
    check(
        "each case has the number of candidates, the first one and the system",
        all(one["of"] == 2 and one["top"] and one["system"] == "t 1.0" for one in told["cases"]),
    )
    wanted = (math.log(1) + math.log(2) + math.log(3)) / 3
    check(f"mean log rank {told['mean_log_rank']}", abs(told["mean_log_rank"] - wanted) < 1e-3)
    check("ranks up to 1, 3 and 10 are counted", (told["first"], told["first3"], told["first10"]) == (1, 2, 2))
    status, out, err = asked("--plans", corpus, "--json", "--ablate")
    told = json.loads(out)
    names = {one["without"] for one in told["ablations"]}
    parts = {
        one["name"]
        for one in json.loads(
            subprocess.run([ROSE, "diagnose", "--show-weights", "--json"], capture_output=True, text=True).stdout
        )["parts"]
    }
    check(f"ablations: {names ^ parts}", names == parts)
    without = {one["without"]: one for one in told["ablations"]}
    check("without the calls, their cause has no rank", without["calls"]["first10"] == 1)


def check_logs(work):
    corpus = work / "logs"
    log_case(
        corpus / "right",
        (
            "# why\nrank <= 3: kind=syscall node=n1 error=ENOSPC path=*wal*\nabsent: kind=clock\nmessages: server.log"
            " 3\ntimed: server.log 3\n"
        ),
    )
    log_case(corpus / "wrong", "rank <= 1: kind=crash|pause node=n2\nabsent: error=ENOSPC\nmessages: server.log 4\n")
    log_case(corpus / "nothing", "absent: kind=clock\n")
    status, out, err = asked("--logs", corpus, "--json")
    check(f"logs: exit {status}: {err}", status == 0)
    rows = {one["case"]: one for one in json.loads(out)["cases"]}
    check(
        f"right: {rows['right']}",
        rows["right"]["held"] == rows["right"]["expected"] == 4 and rows["right"]["rank"] <= 3,
    )
    check(f"wrong: {rows['wrong']}", rows["wrong"]["held"] == 0 and rows["wrong"]["rank"] is None)
    check("a case without a rank line has rank 1", rows["nothing"]["rank"] == 1)
    check("without a case.json the case's name is its system", rows["right"]["system"] == "right")


def check_refused(work):
    def refused(what, spoil, kind="--plans"):
        corpus = work / "refused"
        shutil.rmtree(corpus, ignore_errors=True)
        if kind == "--plans":
            plan_case(corpus / "a", [{"kind": "crash"}])
        else:
            log_case(corpus / "a", "rank <= 1: kind=crash\n")
        spoil(corpus / "a")
        status, out, err = asked(kind, corpus)
        lines = [line for line in err.splitlines() if line]
        check(
            f"{what}: exit {status}, {err!r}",
            status == 2 and len(lines) == 1 and lines[0].startswith("eval: error: ") and not out,
        )

    refused("case.json is no JSON", lambda case: (case / "case.json").write_text("{"))
    refused("case.json is a list", lambda case: (case / "case.json").write_text("[]"))
    refused("no root", lambda case: (case / "case.json").write_text('{"system": "t"}'))
    refused(
        "root is no list", lambda case: (case / "case.json").write_text('{"system": "t", "root": {"kind": "crash"}}')
    )
    refused(
        "a bad expression", lambda case: (case / "case.json").write_text('{"system": "t", "root": [{"kind": "("}]}')
    )
    refused("no expression", lambda case: (case / "case.json").write_text('{"system": "t", "root": [{"kind": 1}]}'))
    refused(
        "a bad map",
        lambda case: (case / "case.json").write_text('{"system": "t", "root": [{"kind": "crash"}], "map": ["x"]}'),
    )
    refused("no configuration", lambda case: (case / "rose.toml").unlink())
    refused("a bad configuration", lambda case: (case / "rose.toml").write_text("name = "))
    refused("a wrong configuration", lambda case: (case / "rose.toml").write_text('nam = "x"\n'))
    refused("no dump", lambda case: (case / "incident.jsonl").unlink())
    refused("a damaged dump", lambda case: (case / "incident.jsonl").write_text("{\n"))
    refused("a damaged profile", lambda case: (case / "profile.json").write_text("{"))
    refused("a damaged packed profile", lambda case: (case / "profile.json.zst").write_bytes(b"\x28\xb5\x2f\xfd\x00"))
    refused("no args", lambda case: (case / "args").unlink(), "--logs")
    refused("args without a log", lambda case: (case / "args").write_text("\n"), "--logs")
    refused("a missing log", lambda case: (case / "server.log").unlink(), "--logs")
    refused("no expectation", lambda case: (case / "expect.txt").write_text("it works\n"), "--logs")
    refused("an unknown expectation", lambda case: (case / "expect.txt").write_text("rank < 3: kind=crash\n"), "--logs")
    refused("an empty expectation", lambda case: (case / "expect.txt").write_text("rank <= 3:\n"), "--logs")
    refused("a wrong number", lambda case: (case / "expect.txt").write_text("messages: server.log many\n"), "--logs")
    for corpus in (work / "none", work):
        (work / "none").mkdir(exist_ok=True)
        status, _, err = asked("--explain", work / "none")
        check(f"an empty corpus: {err!r}", status == 2 and err.count("\n") == 1)


def check_ranks():
    candidates = [
        {"rank": i + 1, "kind": kind, "node": node, "words": kind, "nodes": [node]}
        for i, (kind, node) in enumerate([("crash", "n1"), ("pause", "n2"), ("crash", "n2"), ("syscall", "n3")])
    ]
    check(
        "the cause has the rank of its last fault",
        run.rank_of([{"kind": "crash", "node": "n1"}, {"kind": "syscall"}], candidates) == 3,
    )
    check(
        "other faults of the cause do not count", run.rank_of([{"kind": "crash"}, {"kind": "syscall"}], candidates) == 2
    )
    check("a value must match as a whole", run.rank_of([{"node": "n"}], candidates) is None)
    check(
        "a function matches by the last parts of its name",
        run.means("(anonymous namespace)::kv::Store::save(int)", "Store::save")
        and not run.means("MyStore::save", "Store::save"),
    )
    check(
        "a system's name has no version",
        run.family("etcd 3.5.2") == run.family("etcd") == "etcd" and run.family("ZooKeeper 3.5.3-beta") == "zookeeper",
    )
    check(
        "perturbed weights stay in their range",
        run.perturbed_weight({"value": 0.5, "unit": "share"}, 3) == "1.0"
        and run.perturbed_weight({"value": 2, "unit": "count"}, 0.34) == "1",
    )


def check_fit():
    try:
        import fit
    except ImportError:
        print("SKIPPED: python3-numpy is missing: the fit is not tested")
        return
    # In ten systems, the candidate with the larger x is the cause; y contains no information.
    choices = []
    for system in range(10):
        candidates = [{"features": {"x": float(i == system % 4), "y": float((i * 7 + system) % 5)}} for i in range(4)]
        choices.append(fit.Choice(f"s{system}", candidates, [[system % 4]]))
    # A weight keeps its sign, whatever the cases show. A weight keeps its prior value if there is no evidence for it,
    # or if it has no sign.
    known = [
        {"name": "x", "sign": 1, "prior": 0.5},
        {"name": "against", "sign": -1, "prior": -0.5},
        {"name": "silent", "sign": 1, "prior": 0.7},
        {"name": "y", "sign": 0, "prior": 0.1},
    ]
    for choice in choices:
        for one in choice.features:
            one["against"] = one["x"]
    ranks, weights = fit.Signed(known, 0.1).leave_one_system_out(
        choices, lambda i, keys: (1 + sorted(range(4), key=lambda j: keys[j]).index(i % 4), 4)
    )
    values = {one["feature"]: one["value"] for one in weights}
    check(f"ranks by signed weights: {ranks}", all(rank == 1 for rank, _ in ranks))
    check(f"signed weights: {values}", values["x"] > 1 and values["against"] == 0 and values["silent"] == 0.7)
    check(f"a weight without a sign: {values}", values["y"] == 0.1)


def check_mix():
    import mix

    second = 1_000_000_000

    def failed(ts, pid, path):
        call = {"type": "scf", "syscall": "read", "errno": "EIO", "path": path}
        return {"ts": ts, "node": "w", "pid": pid, "tid": pid, **call}

    window = [failed(i * second, 7, f"/w/{i}/x") for i in range(60)]
    incident = [failed(100 * second, 41, "/i/a") | {"node": "n1"}, failed(110 * second, 41, "/i/b") | {"node": "n2"}]
    meta = {"node": "n1", "nodes": ["n1", "n2"], "workload_ts": 1}
    dumps = [("incident.dump", meta, incident)]
    one = mix.mixed(dumps, {"w": ({}, window)}, "case")
    check("equal seeds give equal dumps", one == mix.mixed(dumps, {"w": ({}, window)}, "case"))
    [(name, new_meta, events)] = one
    there = [event for event in events if event["path"].startswith("/w/")]
    check("the incident's events are unchanged", [e for e in events if e["path"].startswith("/i/")] == incident)
    check(
        "a window keeps its own times",
        {b["ts"] - a["ts"] for a, b in zip(there, there[1:])} == {second} and there[0]["ts"] <= 100 * second,
    )
    ends = [mix.mixed(dumps, {"w": ({}, window)}, f"case {i}")[0][1]["end_ns"] for i in range(20)]
    check(
        "some dumps end with the incident, some later",
        110 * second in ends and any(110 * second < end <= (110 + mix.LATEST) * second for end in ends),
    )
    check("no event is later than the dump", events[-1]["ts"] <= new_meta["end_ns"] and len(there) >= 10)
    check("the window's processes have new ids", {e["pid"] for e in there} == {7 + mix.PIDS})
    check(
        "the window is on one node of the incident",
        len({e["node"] for e in there}) == 1 and there[0]["node"] in ("n1", "n2"),
    )
    check(
        "the time of the workload is removed",
        "workload_ts" not in new_meta and new_meta["begin_ns"] == events[0]["ts"],
    )
    talk = [{"peer": "10.4.5.6:80", "src": "10.4.5.7"}, {"peer": "127.0.0.1:9"}, {"dst": "10.4.5.6"}]
    told = mix.elsewhere(talk)
    check("addresses are replaced, equal ones equally", "10.4" not in str(told) and told[1] == talk[1])
    check("peer and dst with one address get the same one", told[0]["peer"] == told[2]["dst"] + ":80")
    loop = [failed(i, 7, f"/var/lib/w/{i}") for i in range(1000)]
    kept = mix.thinned(loop + [failed(1001, 7, "/other/x")])
    check(f"repetitions are thinned: {len(kept)}", 30 <= len(kept) - 1 <= mix.MOST and kept[-1]["path"] == "/other/x")


def check_explain(work):
    """Checks kept runs: those of a case with a known cause, and those of a case without one."""
    known = sorted((HERE / "corpora/explain").glob("*/*/case.json"))
    for wanted in (True, False):
        file = next((one for one in known if bool(json.loads(one.read_text())["faulty"]) == wanted), None)
        if file is None:
            check("explain corpora exist", False)
            return
        shutil.copytree(file.parent, work / "explain" / file.parent.name)
    status, out, err = asked("--explain", work / "explain", "--json", "--ablate")
    check(f"explain: exit {status}: {err}", status == 0)
    told = json.loads(out)
    check("the result has the kind and both cases", told["kind"] == "explain" and len(told["cases"]) == 2)
    without = [row["without"] for row in told["ablations"]]
    check(f"ablations: {without}", "arrived" in without and len(set(without)) == len(without))
    plain = subprocess.run([ROSE, "explain", "--from", file.parent, "--json"], capture_output=True, text=True)
    suspects = len(json.loads(plain.stdout)["suspects"])
    row = next(one for one in told["cases"] if one["case"] == file.parent.name)
    check(f"nothing to tell: {row}", row["rank"] == (None if suspects else 1) and row["of"] == suspects)
    case = next(one for one in (work / "explain").iterdir() if one.name != file.parent.name)
    (case / "case.json").write_text('{"system": "t", "faulty": ["no_such_function"]}')
    status, out, _ = asked("--explain", work / "explain", "--json")
    row = next(one for one in json.loads(out)["cases"] if one["case"] == case.name)
    check(f"a function that is no suspect: {row}", row["rank"] is None and row["of"] > 0 and row["top"])
    (case / "explained.runs").write_bytes((case / "explained.runs").read_bytes()[:500])
    status, _, err = asked("--explain", work / "explain")
    check(f"damaged runs: exit {status}, {err!r}", status == 2 and err.count("\n") == 1)


def check_size():
    """Checks that the corpora are small enough, because every clone of the repository contains them."""
    size = sum(one.stat().st_size for one in (HERE / "corpora").rglob("*") if one.is_file() and not one.is_symlink())
    check(f"the corpora have {size} bytes, at most 20 MB", size <= 20_000_000)


def main():
    with tempfile.TemporaryDirectory(prefix="eval-check-") as work:
        check_size()
        check_ranks()
        check_fit()
        check_mix()
        check_plans(Path(work))
        check_explain(Path(work))
        check_logs(Path(work))
        check_refused(Path(work))
    print(f"{failures} failures" if failures else "test/eval/run reads, refuses and ranks as it should")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
