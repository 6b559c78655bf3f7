#!/usr/bin/env python3
"""Measures what rose does with known failures: the planted ones of test/planted and the real bugs of examples/bugs.

For each case (a folder with a rose.toml): install, profile, trace with the incident until the bug occurs, diagnose with
default settings, replay the schedule that was found, run without faults, and, for comparison, search blindly with the
same faults at random times. The figures are written to the case's figures.json, those of all cases to results.json, and
a table for readers to the folder's README.md. Only Python's standard library is needed. """
import argparse
import datetime
import json
import os
import random
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from noise import STRENGTHS, add_noise

BEGIN, END = "<!-- figures: begin (written by run-all) -->", "<!-- figures: end -->"
TRACE_TRIES = 3
CONTROL_RUNS = 10
SOLVED_SHARE = 0.8   # a case is solved if its schedule attains at least this share of the correct schedule's rate
# The number of seconds after which a command is stopped.
LIMITS = {"install": 1800, "profile": 900, "trace": 900, "split": 120, "plan": 120, "diagnose": 2400, "replay": 1800,
          "control": 1800,
          "fixed": 1800, "blind": 600}
PACKED_FROM = 4096     # a kept log of at least this many bytes is compressed
PATIENCE = 90        # seconds that a command has for its cleanup after a request to stop
INSTALL_SKIPS = 77


class Failed(Exception):
    """The measurement of a case failed; the text is the reason."""


class Skipped(Exception):
    """A case cannot run on this machine; the text is the reason."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def terminate(signum, frame):
    raise KeyboardInterrupt


# --- commands


class Commands:
    """Runs one external command at a time, each in its own session, so that Ctrl-C reaches only this script, which
    lets the command clean up first."""

    def __init__(self, work):
        self.work = work
        self.count = 0
        # Put kept runs into the work folder, so that they are removed together with it.
        self.environment = {**os.environ, "TMPDIR": str(work)}

    def stop(self, process):
        """Interrupts the process before it is killed, so that rose undoes its changes to the system."""
        for signum, patience in ((signal.SIGINT, PATIENCE), (signal.SIGTERM, 10), (signal.SIGKILL, 10)):
            try:
                process.send_signal(signum)
            except ProcessLookupError:
                pass
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline:
                try:
                    process.wait(timeout=max(0.1, deadline - time.monotonic()))
                    return
                except subprocess.TimeoutExpired:
                    pass
                except KeyboardInterrupt:
                    say("measure: still stopping what runs; have a moment's patience")

    def run(self, what, command, cwd, limit, env=None):
        """Returns the exit status (None after a timeout), the standard output, and the file that contains the standard
        error."""
        self.count += 1
        base = self.work / f"{self.count:03}-{what}"
        out_file, err_file = base.with_suffix(".out"), base.with_suffix(".err")
        with open(out_file, "wb") as out, open(err_file, "wb") as err:
            err.write(f"$ {shlex.join(map(str, command))}\n".encode())
            err.flush()
            process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       start_new_session=True, env={**self.environment, **(env or {})})
            try:
                status = process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                self.stop(process)
                status = None
            except BaseException:
                self.stop(process)
                raise
        return status, out_file.read_text(errors="replace"), err_file


def tail_of(file, lines=12):
    return "\n".join("    " + line
                     for line in file.read_text(errors="replace").replace("\r", "\n").splitlines()[-lines:])


# --- recordings are packed


def pack(data, target):
    subprocess.run(["zstd", "-q", "-19", "-f", "-o", target], input=data, check=True)
    target.chmod(0o644)


def unpacked(file):
    return subprocess.run(["zstd", "-q", "-d", "-c", file], capture_output=True, check=True).stdout


# --- schedules of the blind search


def toml_value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(one) for one in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(
            f"{key if re.fullmatch(r'[A-Za-z0-9_-]+', key) else json.dumps(key)} = {toml_value(one)}"
                                for key, one in value.items()) + " }"
    raise TypeError(f"no TOML for {value!r}")


def toml_schedule(schedule):
    lines = ["version = 1", f"name = {toml_value(schedule['name'])}"]
    for fault in schedule.get("fault", []):
        lines.append("[[fault]]")
        lines += [f"{key} = {toml_value(value)}" for key, value in fault.items()]
    return "\n".join(lines) + "\n"


def blind_schedule(found, nodes, workload_seconds, rng):
    """Returns the same faults at random times of the workload, without the injection points that rose found."""
    faults, groups = [], {}
    for fault in found.get("fault", []):
        if "group" in fault:
            groups.setdefault(fault["group"], []).append(fault)
        else:
            groups[f"\0{fault['id']}"] = [fault]
    for alternatives in groups.values():
        fault = dict(rng.choice(alternatives))
        if "until" in fault:  # a partition that ended at an event gets a random duration instead
            fault["duration"] = f"{rng.uniform(0.1, 1) * workload_seconds:.3f}s"
        for key in ("when", "after", "before", "group", "until", "count"):
            fault.pop(key, None)
        for key in ("node", "peers"):
            value = fault.get(key)
            if isinstance(value, str) and value.startswith("@"):
                fault[key] = rng.choice(nodes)
            elif isinstance(value, list):
                fault[key] = list(dict.fromkeys(rng.choice(nodes) if one.startswith("@") else one for one in value))
        fault["when"] = [{"elapsed": f"{max(1, round(rng.uniform(0, workload_seconds) * 1000))}ms"}]
        faults.append(fault)
    return {"name": found.get("name", "blind"), "fault": faults}


# --- one case


class Case:
    def __init__(self, folder, rose, commands, options):
        self.folder = folder
        self.name = folder.name
        self.rose = rose
        self.commands = commands
        self.options = options
        facts = folder / "case.json"
        self.facts = json.loads(facts.read_text()) if facts.exists() else {}
        self.config = tomllib.loads((folder / "rose.toml").read_text())
        self.nodes = [node["name"] for node in self.config.get("node", [])]
        self.attainable = float(self.facts.get("attainable", 1.0))
        self.profile = commands.work / "profile.json"
        self.dump = commands.work / "incident.dump"
        self.dumps = [self.dump]  # dumps to diagnose
        self.logs = []  # or logs to diagnose: "node=file"
        self.hosts = {}  # the node of each host in the dump
        self.schedule = commands.work / "schedule.toml"
        self.record = commands.work / "diagnosis"

    def step(self, what, command, limit=None, accept=(0,), env=None):
        say(f"  {what} ...")
        began = time.monotonic()
        status, out, err = self.commands.run(what.split()[0], command, self.folder, limit or LIMITS[what.split()[0]],
                                             env)
        seconds = time.monotonic() - began
        say(f"  {what}: {'stopped' if status is None else f'exit {status}'} after {seconds:.1f} s")
        if status is None:
            raise Failed(f"{what} took longer than {limit or LIMITS[what.split()[0]]} s")
        if status not in accept:
            say(tail_of(err))
            if not (what == "install" and status == INSTALL_SKIPS):
                reason = [line for line in err.read_text(errors="replace").splitlines()
                          if line.startswith("rose: error:")]
                raise Failed(f"{what}: exit {status}"
                             + (f" ({reason[-1].removeprefix('rose: error: ')})" if reason else ""))
        return status, out

    def rose_json(self, what, *arguments, limit=None, accept=(0, 1, 4), env=None):
        status, out = self.step(what, [self.rose, *map(str, arguments), "--json"], limit, accept, env)
        try:
            return status, json.loads(out)
        except json.JSONDecodeError as error:
            raise Failed(f"{what}: no JSON on standard output ({error})") from error

    # The steps, in their order.

    def install(self):
        script = self.folder / "install"
        if not script.exists():
            return
        status, out = self.step("install", [script], accept=(0, INSTALL_SKIPS), env={"ROSE": str(self.rose)})
        if status == INSTALL_SKIPS:
            lines = out.strip().splitlines()
            raise Skipped(lines[-1] if lines else "its install script says so")

    def learn(self):
        runs = self.facts.get("profile_runs")
        more = ["--runs", runs] if runs else []
        self.rose_json("profile", "profile", "-c", "rose.toml", "-o", self.profile, *more, accept=(0,))

    def incident(self, figures):
        production = self.facts.get("production")
        own = "rose.incident.toml"  # settings that only the incident needs, but not rose's runs
        config = production["config"] if production else own if (self.folder / own).exists() else "rose.toml"
        if production:
            hosts = [node["name"] for node in tomllib.loads((self.folder / config).read_text())["node"]]
            self.dumps = [self.commands.work / f"incident-{host}.dump" for host in hosts]
        if self.options.recorded and self.options.logs:
            self.logs = [f"{file.parent.name}={file}" for file in sorted((self.folder / "incident-logs").glob("*/*"))]
            if not self.logs:
                raise Failed("--recorded: there is no incident-logs")
            figures["source"] = "recorded logs"
            return
        if self.options.recorded:
            for name in [dump.name for dump in self.dumps] + ["profile.json.zst"]:
                if not (self.folder / name).exists():
                    raise Failed(f"--recorded: there is no {name}")
            for dump in self.dumps:
                shutil.copyfile(self.folder / dump.name, dump)
            self.profile.write_bytes(unpacked(self.folder / "profile.json.zst"))
            figures["source"] = "recorded"
            return
        self.learn()
        figures["source"] = "logs" if self.options.logs else "dump and logs" if self.options.both else "incident"
        with_logs = self.options.logs or self.options.both
        tries = self.facts.get("trace_tries", TRACE_TRIES)
        for attempt in range(1, tries + 1):
            keep, env = [], None
            if with_logs:
                runs = Path(tempfile.mkdtemp(prefix="incident-", dir=self.commands.work))
                runs.chmod(0o711)
                keep, env = ["--keep"], {"TMPDIR": str(runs)}
            status, result = self.rose_json(f"trace {attempt}", "trace", "-c", config, "--profile", self.profile, *keep,
                                            "--incident", shlex.quote(str(self.folder / "incident")), "-o", self.dump,
                                            env=env)
            figures["trace_tries"] = attempt
            if status == 0:
                figures["events"] = sum(result["events"].values())
                if with_logs:
                    self.collect_logs(config, runs)
                if self.options.logs and self.options.record:
                    self.keep_logs()
                if production:
                    self.split_by_host(hosts)
                return
            say(f"    the bug did not show: {result.get('reason', '')}; incident: {result.get('incident')}")
        raise Failed(f"the bug did not show in {tries} incidents")

    def keep_logs(self):
        """Keeps the logs, in which only the folders of the run and the case are replaced by /srv/run and /srv/case."""
        kept = self.folder / "incident-logs"
        shutil.rmtree(kept, ignore_errors=True)
        for entry in self.logs:
            node, file = entry.split("=", 1)
            text = Path(file).read_bytes()
            for folder, name in ((Path(file).parent.parent, b"/srv/run"), (self.folder, b"/srv/case")):
                text = text.replace(str(folder).encode(), name)
            target = kept / node / Path(file).name
            target.parent.mkdir(parents=True, exist_ok=True)
            if len(text) > PACKED_FROM:
                pack(text, target.with_name(f"{target.name}.zst"))
            else:
                target.write_bytes(text)

    def collect_logs(self, config, runs):
        """Collects the logs of the incident's run, that is, the files that the diagnosis also reads in its own
        runs."""
        for node in tomllib.loads((self.folder / config).read_text())["node"]:
            folder = next(runs.glob(f"rose-runs/*/run-*/{node['name']}"))
            files = [folder / name for name in ("stdout.log", "stderr.log", *node.get("logs", []))]
            self.logs += [f"{node['name']}={file}" for file in files if file.is_file() and file.stat().st_size]
        if not self.logs:
            raise Failed("the incident left no logs")

    def split_by_host(self, hosts):
        """Splits a dump into one per host, as separate tracers would write them: none contains data of another host or
        of a workload."""
        for host, file in zip(hosts, self.dumps):
            _, text = self.step(f"split {host}",
                                [self.rose, "dump", "show", self.dump, "--format", "jsonl", "--node", host])
            head, *events = text.splitlines()
            meta = json.loads(head)["meta"]
            meta.pop("workload_ts", None)
            meta.update(node=host, host=host, nodes=[host])
            meta["addresses"] = [entry for entry in meta["addresses"] if entry.startswith(f"{host}=")]
            lines = file.with_suffix(".jsonl")
            lines.write_text("\n".join([json.dumps({"meta": meta}), *events]) + "\n")
            self.step(f"split {host}", [self.rose, "dump", "import", lines, "-o", file])

    def add_noise(self, figures):
        """Adds unrelated events, because a dump in production would contain such events, too (see noise.py)."""
        profile = json.loads(self.profile.read_text())
        ports = [node["ready"]["tcp"] for node in self.config.get("node", []) if "tcp" in node.get("ready", {})]
        for dump in self.dumps:
            _, text = self.step("split noise", [self.rose, "dump", "show", dump, "--format", "jsonl"])
            text, hosts = add_noise(text, profile, self.options.noise, self.options.seed, (ports or [7000])[0],
                                    rename="production" not in self.facts)
            self.hosts.update(hosts)
            lines = dump.with_suffix(".noisy.jsonl")
            lines.write_text(text)
            self.step("split noise", [self.rose, "dump", "import", lines, "-o", dump])
            figures["noisy_events"] = figures.get("noisy_events", 0) + len(text.splitlines()) - 1
        figures["noise"] = self.options.noise

    def evidence(self, config="rose.toml", logs=None):
        logs = self.logs if logs is None else logs
        hosts = self.facts.get("production", {}).get("map", {})
        mapped = [word for host, node in hosts.items() for word in ("--map", f"{host}={node}")]
        logs = [word for entry in logs for word in ("--log", entry)]
        if self.options.logs:
            return [*logs, *mapped, "-c", config]
        return ["--trace", *self.dumps, *logs, *mapped, "-c", config, "--profile", self.profile]

    def diagnose_dump_alone(self, figures):
        """For comparison, diagnoses the incident only from the dump, without logs, until a schedule is found and
        confirmed."""
        text = re.sub(r"(?m)^(simplify|confirm_runs)\s*=.*\n", "", (self.folder / "rose.toml").read_text())
        short = "simplify = false\nconfirm_runs = 1\n"
        head, section, rest = text.partition("[diagnose]\n")
        config = self.folder / f".rose.{os.getpid()}.toml"  # it must be in the folder of the files that it names
        try:
            config.write_text(f"{head}\n[diagnose]\n{short}{rest}")
            _, found = self.rose_json("diagnose dump alone", "diagnose", *self.evidence(config.name, logs=[]), "-o",
                                      self.schedule,
                                      limit=self.options.limit)
        except Failed as failure:
            figures["dump_alone"] = {"solved": False, "failure": str(failure)}
            return
        finally:
            config.unlink(missing_ok=True)
        self.schedule.unlink(missing_ok=True)
        figures["dump_alone"] = {"solved": found["target_reached"]} | {
            key: found.get(key) for key in ("schedules", "runs", "confirm_runs", "simplify_runs", "rate_runs")}

    def plan(self, figures):
        _, plan = self.rose_json("plan", "diagnose", "--plan", *self.evidence(), accept=(0,))
        figures["candidates"] = len(plan["candidates"])
        figures["rank"] = rank_of(self.facts["root"], plan["candidates"])

    def diagnose(self, figures):
        began = time.monotonic()
        try:
            without = [word for name in self.options.without for word in ("--without", name)]
            _, found = self.rose_json("diagnose", "diagnose", *self.evidence(), *without, "-o", self.schedule,
                                      "--report", self.record,
                                      limit=self.options.limit)
        finally:
            figures["seconds"] = time.monotonic() - began
            self.progress_of(figures)
        for key in ("verdict", "target_reached", "level", "schedules", "runs", "confirm_runs", "simplify_runs",
                    "rate_runs", "rate", "interval",
                    "seconds",
                    "words", "reason", "discarded_share"):
            figures[key] = found.get(key)
        figures["seconds_a_run"] = found["seconds"] / max(1, found["runs"])
        if not self.schedule.exists():
            raise Failed(f"diagnose found nothing: {found.get('reason')}")

    def progress_of(self, figures):
        """Reads the progress from the diagnosis's record, even if the diagnosis was interrupted."""
        try:
            lines = (self.record / "record.jsonl").read_text().splitlines()
        except OSError:
            return
        runs = [json.loads(line) for line in lines if line.endswith("}")]
        figures["runs"] = len(runs)
        if runs:
            # The first run is a control run, so it shows how long the workload takes without faults.
            figures["workload_seconds"] = runs[0]["workload"]["seconds"]

    def replay(self, figures):
        more = ["--runs", self.facts["replay_runs"]] if "replay_runs" in self.facts else []
        _, result = self.rose_json("replay", "replay", self.schedule, "-c", "rose.toml", *more)
        figures["replay"] = {key: result[key]
                             for key in ("rate", "interval", "runs", "reproduced", "inconclusive", "seconds")}
        return result["rate"]

    def fixed(self, figures):
        config = self.facts.get("fixed")
        if not config:
            return
        script = self.folder / "install-fixed"
        if script.exists():
            status, out = self.step("install fixed", [script], accept=(0, INSTALL_SKIPS))
            if status == INSTALL_SKIPS:
                say(f"    not run with the fixed version: {out.strip()}")
                return
        status, result = self.rose_json("fixed", "replay", self.schedule, "-c", config, "--expect", "fixed")
        figures["fixed"] = {"ok": status == 0, "verdict": result["verdict"], "reason": result["reason"],
                            "runs": result["runs"]}

    def control(self, figures):
        schedule = self.commands.work / "no-faults.toml"
        schedule.write_text(toml_schedule({"name": self.name}))
        _, result = self.rose_json("control", "replay", schedule, "-c", "rose.toml", "--runs",
                                   self.options.control_runs)
        figures["control"] = {key: result[key] for key in ("runs", "reproduced", "inconclusive")}

    def blind(self, figures, found):
        # The time that the workload takes without faults. Faults at a later time would have no effect.
        seconds = figures.get("workload_seconds") or 1.0
        rng = random.Random(f"{self.name}/{self.options.seed}")
        runs = self.options.blind_runs or figures["runs"]
        tally = {"runs": 0, "hits": 0, "inconclusive": 0, "seconds": 0.0}
        schedule = self.commands.work / "blind.toml"
        began = time.monotonic()
        for number in range(1, runs + 1):
            schedule.write_text(toml_schedule(blind_schedule(found, self.nodes, seconds, rng)))
            command = [self.rose, "replay", schedule, "-c", "rose.toml", "--runs", "1", "--json"]
            status, out, err = self.commands.run("blind", command, self.folder, LIMITS["blind"])
            if status not in (0, 1, 4):
                say(tail_of(err))
                raise Failed(f"blind run {number}: " + ("took too long" if status is None else f"exit {status}"))
            result = json.loads(out)
            tally["runs"] += 1
            tally["hits"] += result["reproduced"]
            tally["inconclusive"] += result["inconclusive"]
            tally["seconds"] = round(time.monotonic() - began, 1)
            figures["blind"] = dict(tally)
        say(f"  blind: {tally['hits']} of {tally['runs']} after {tally['seconds']:.1f} s")

    def keep_recordings(self):
        for file in (*self.dumps, self.schedule):
            if file.exists():
                shutil.copyfile(file, self.folder / file.name)
                (self.folder / file.name).chmod(0o644)
        if self.profile.exists():
            pack(self.profile.read_bytes(), self.folder / "profile.json.zst")

    def measure(self):
        figures = {"case": self.name, "date": datetime.date.today().isoformat(), "machine": machine(),
                   "commit": commit_of(self.folder),
                   "solved": False, "what": self.facts.get("what") or self.facts.get("fault", ""),
                   "system": self.facts.get("system", ""),
                   "language": self.facts.get("language", ""), "planted_level": self.facts.get("level"),
                   "attainable": self.attainable}
        try:
            if not self.facts.get("root"):
                raise Failed('case.json has no "root": the faults that are the cause')
            self.install()
            self.incident(figures)
            if self.options.noise:
                self.add_noise(figures)
            if self.options.both:
                self.diagnose_dump_alone(figures)
            self.diagnose(figures)
            found = tomllib.loads(self.schedule.read_text())
            rate = self.replay(figures)
            self.plan(figures)
            self.fixed(figures)
            if self.options.control:
                self.control(figures)
            # If the fixed version also fails under this schedule, the failure does not come from the bug.
            another = figures.get("fixed", {}).get("verdict") == "reproduced"
            figures["solved"] = (rate + 1e-9 >= SOLVED_SHARE * self.attainable and not another and
                                 figures.get("control", {}).get("reproduced", 0) == 0)
            if not figures["solved"]:
                figures["failure"] = (f"replayed at {rate:.2f}" if rate < SOLVED_SHARE * self.attainable else
                                      "shows in the fixed version, too" if another else "shows without faults")
            if self.options.blind:
                self.blind(figures, found)
            if self.options.record and figures["solved"] and not self.options.logs:
                self.keep_recordings()
        except Failed as failure:
            figures["failure"] = str(failure)
            say(f"  FAILED: {failure}")
        return figures


# --- the machine, the table


def machine():
    model = ""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {"cores": os.cpu_count(), "cpu": model, "kernel": os.uname().release, "load": round(os.getloadavg()[0], 1)}


def commit_of(folder):
    """Returns the commit that was measured, or None if this is no repository."""
    asked = subprocess.run(["git", "-C", folder, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return asked.stdout.strip() if asked.returncode == 0 else None


def rank_of(root, candidates):
    """Returns the rank of the cause; None if one of its faults is not among the candidates. The rank is one more than
    the number of other candidates before the last fault of the cause."""
    def is_meant(fault, candidate):
        return all(re.fullmatch(value, str(candidate.get(key) or "")) for key, value in fault.items())

    places = [[i for i, one in enumerate(candidates) if is_meant(fault, one)] for fault in root]
    if not all(places):
        return None
    last = max(found[0] for found in places)
    return 1 + len(set(range(last)).difference(*places))


def cell(value):
    return str(value).replace("|", "\\|").replace("\n", " ") if value not in (None, "") else "–"


def rate_cell(result):
    if not result:
        return "–"
    low, high = result["interval"]
    return f"{result['reproduced']} of {result['runs'] - result['inconclusive']} ({low:.2f}–{high:.2f})"


def finding_runs(figures):
    """Returns how many runs were needed to find and confirm a schedule, without those that simplify it and measure its
    rate."""
    if figures.get("runs") is None:
        return None
    return figures["runs"] - (figures.get("simplify_runs") or 0) - (figures.get("rate_runs") or 0)


def before_confirming(figures):
    return finding_runs(figures) - (figures.get("confirm_runs") or 0)


def runs_cell(figures):
    return number_cell(finding_runs(figures), "d")


def blind_cell(figures):
    blind = figures.get("blind")
    return f"{blind['hits']} of {blind['runs']}" if blind else "–"


def level_cell(figures):
    return cell(figures.get("level") or None)


def words_cell(figures):
    """Returns the faults of the schedule; the rate, remarks and doubts are in results.json."""
    lines = []
    for line in (figures.get("words") or "").splitlines():
        # A fault begins with a verb in lower case or a number, a remark with a sentence.
        if re.match(r"[A-Z]", line.strip()):
            break
        lines.append(line.strip())
    return cell(" ".join(line for line in lines if line))


def state_cell(figures):
    return "yes" if figures["solved"] else "**no**: " + cell((figures.get("failure") or "").split("; ")[0])


def plural(count, one):
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


def number_cell(value, form):
    return format(value, form) if value is not None else "–"


def explained_cell(figures):
    """Returns the rank at which `rose explain` names the faulty function, or the one that it was inlined into."""
    explained = figures.get("explained")
    if not explained:
        return "–"
    return number_cell(min((rank for rank in (explained.get("rank"), explained.get("rank_into")) if rank),
                           default=None), "d")


def first_cell(figures):
    return number_cell(figures.get("first_reproduction_seconds"), ".0f")


# The columns that readers need. Everything else is in results.json.
PLANTED = [
    ("case", lambda f: f"[{f['case']}]({f['case']})"),
    ("what", lambda f: cell(f.get("what"))),
    ("level", level_cell),
    ("runs", runs_cell),
    ("seconds to first reproduction", first_cell),
    ("rate (95 %)", lambda f: rate_cell(f.get("replay"))),
    ("rank of the cause", lambda f: number_cell(f.get("rank"), "d")),
    ("rank of the explanation", explained_cell),
    ("blind search", blind_cell),
    ("solved", state_cell),
]


def minutes_cell(figures):
    return number_cell(figures["seconds"] / 60 if figures.get("seconds") is not None else None, ".1f")


BUGS = [
    ("bug", lambda f: f"[{f['case']}]({f['case']})"),
    ("system", lambda f: cell(f.get("system"))),
    ("fault", words_cell),
    ("runs", runs_cell),
    ("seconds to first reproduction", first_cell),
    ("minutes in all", minutes_cell),
    ("rate (95 %)", lambda f: rate_cell(f.get("replay"))),
    ("rank of the cause", lambda f: number_cell(f.get("rank"), "d")),
    ("rank of the explanation", explained_cell),
    ("solved", state_cell),
]


def median_of(rows, key):
    values = [row[key] for row in rows if row.get(key) is not None]
    return statistics.median(values) if values else None


def ranks_line(rows):
    ranked = [row for row in rows if row.get("rank") is not None and row["rank"] <= 2]
    return f"- root cause ranked first or second: {len(ranked)} of {len(rows)}"


def planted_summary(rows):
    solved = [row for row in rows if row["solved"]]
    lines = [f"- solved at 80 % of the attainable rate or more: {len(solved)} of {len(rows)}", ranks_line(rows)]
    for level in (1, 2, 3):
        of_level = [row for row in solved if row.get("level") == level]
        if of_level:
            lines.append(f"- level {level}: {len(of_level)} cases; number of schedules tried before confirmation: "
                         f"{median_of(of_level, 'schedules'):g} (median)")
    blind = [row["blind"] for row in rows if row.get("blind")]
    if blind:
        lines.append(f"- blind search: {sum(b['hits'] for b in blind)} of {sum(b['runs'] for b in blind)} runs "
                     f"reproduced the bug; in {sum(1 for b in blind if b['hits'] >= SOLVED_SHARE * b['runs'])} of "
                     f"{len(blind)} cases, 80 % or more of the runs did")
    return lines


def logs_summary(rows, logs_only):
    rows = [row["from_logs"] for row in rows if row.get("from_logs")] + logs_only
    if not rows:
        return []
    runs = [before_confirming(row) for row in rows if row["solved"]]
    return [f"- from logs alone, without a dump and a profile: {sum(row['solved'] for row in rows)} of {len(rows)} "
            f"solved" +
            (f", in a median of {statistics.median(runs):g} runs before confirmation" if runs else "")]


def both_summary(rows):
    """Compares the diagnosis from dump and logs together with those from the dump alone and from the logs alone: by how
    many runs it is slower than the faster of these two. If possible, the diagnosis from the dump alone is one of the
    same incident as the diagnosis from both."""
    rows = [row for row in rows if row.get("from_both")]
    if not rows:
        return []
    solved = [row for row in rows if row["from_both"]["solved"]]
    differences = []
    for row in solved:
        dump = row["from_both"].get("dump_alone", row)
        alone = [before_confirming(one) for one in (dump, row.get("from_logs")) if one and one["solved"]]
        if alone:
            differences.append(before_confirming(row["from_both"]) - min(alone))
    return [f"- dump and logs together: {len(solved)} of {len(rows)} solved" +
            (f"; compared with dump or logs alone, whichever is better, the number of runs before confirmation changes "
             f"by {statistics.median(differences):+g} (median), at worst by {max(differences):+g}"
             if differences else "")]


def bugs_summary(rows):
    solved = [row for row in rows if row["solved"]]
    runs = [finding_runs(row) for row in solved if row.get("runs") is not None]
    slowest = max(rows, key=lambda row: row.get("seconds") or 0, default=None)
    noisy = [row["case"] for row in rows if row.get("control", {}).get("reproduced", 0)]
    lines = [f"- reproduced at 80 % or more: {len(solved)} of {len(rows)}"]
    if runs:
        lines.append(f"- median of the runs to find and confirm: {statistics.median(runs):g}")
    if slowest and slowest.get("seconds"):
        lines.append(f"- the longest search took {slowest['seconds'] / 60:.0f} minutes ({slowest['case']})")
    lines += [
        ranks_line(rows),
        "- no bug occurs without faults" if not noisy else f"- occurs without faults, too: {', '.join(noisy)}",
    ]
    blind = [row["blind"] for row in rows if row.get("blind")]
    if blind:
        lines.append(f"- blind search: {sum(b['hits'] for b in blind)} of {sum(b['runs'] for b in blind)} runs "
                     f"reproduced the bug")
    return lines


KINDS = {"planted": (PLANTED, planted_summary), "bugs": (BUGS, bugs_summary)}


def read_figures(folder):
    rows = []
    for file in sorted(folder.glob("*/figures.json")):
        rows.append(json.loads(file.read_text()))
        for kept in ("from_logs", "from_both", "explained"):
            other = file.with_name(f"{kept}.json")
            if other.exists():
                rows[-1][kept] = json.loads(other.read_text())
        for strength in STRENGTHS:
            noisy = file.with_name(f"noise-{strength}.json")
            if noisy.exists():
                rows[-1].setdefault("with_noise", {})[strength] = json.loads(noisy.read_text())
    return rows


def read_logs_only(folder):
    """Returns the cases that have logs but no dump from the lab: their cause is a jump of the clock, which the lab
    cannot make, because all nodes share the clock of its one machine."""
    rows = []
    for file in sorted(folder.glob("*/from_logs.json")):
        if file.with_name("figures.json").exists():
            continue
        rows.append(json.loads(file.read_text()))
        if (explained := file.with_name("explained.json")).exists():
            rows[-1]["explained"] = json.loads(explained.read_text())
    return rows


def noise_summary(rows):
    """Summarises the diagnoses of the same incidents with production's noise."""
    rows = [row for row in rows if row.get("with_noise")]
    lines = []
    for strength in sorted({strength for row in rows for strength in row["with_noise"]}):
        both = [(row, row["with_noise"][strength]) for row in rows if row["solved"] and strength in row["with_noise"]]
        if not both:
            continue
        ratios = [finding_runs(noisy) / max(1, finding_runs(row)) for row, noisy in both if noisy["solved"]]
        lines.append(f"- with noise of strength {strength} (`--noise {strength}`, see noise.py): {len(ratios)} of the "
                     f"{len(both)} cases that are solved without noise are solved, too" +
                     (f", in {statistics.median(ratios):.2f} times as many runs (median)" if ratios else ""))
    return lines


def when_and_where(rows):
    dates = sorted({row["date"] for row in rows})
    machines = sorted({f"{row['machine']['cores']} cores, kernel {row['machine']['kernel']}" for row in rows})
    loads = [row["machine"]["load"] for row in rows]
    commits = {row.get("commit") for row in rows}
    of = "of a commit that was not noted" if None in commits else f"rose of {commits.pop()}" if len(
        commits) == 1 else f"rose of {', '.join(sorted(commits))}"
    return (f"Measured {dates[0] if len(dates) == 1 else f'{dates[0]} to {dates[-1]}'} ({of}) on "
            f"{'; '.join(machines)}, "
            f"at a load of {min(loads):.0f} to {max(loads):.0f}.")


def rows_of(columns, rows):
    return ["| " + " | ".join(title for title, _ in columns) + " |", "|" + "---|" * len(columns),
            *("| " + " | ".join(of(row) for _, of in columns) + " |" for row in rows)]


def logs_only_table(columns, rows):
    if not rows:
        return []
    return ["", "From logs alone, because no dump can show their cause:", "", *rows_of(columns, rows), "",
            when_and_where(rows)]


def table_of(kind, rows, logs_only=()):
    columns, summary = KINDS[kind]
    seldom = {first_cell: "first_reproduction_seconds"}
    shown = [column for column in columns if column[1] not in seldom or any(row.get(seldom[column[1]]) for row in rows)]
    lines = rows_of(shown, rows) + ["", when_and_where(rows) if rows
                                    else "Not measured yet."] + logs_only_table(shown, logs_only)
    return "\n".join(
        lines + [""] + summary(rows) + logs_summary(rows, list(logs_only)) + both_summary(rows) + noise_summary(rows))


def results_of(rows, logs_only=()):
    """Returns the content of results.json: all figures of each case, one case per line."""
    def lines(cases):
        return ",\n".join(json.dumps(case, ensure_ascii=False, sort_keys=True, separators=(",", ":")) for case in cases)

    return f'{{"cases":[\n{lines(rows)}\n],"from_logs_only":[\n{lines(logs_only)}\n]}}\n'


def replace(file, text):
    """Replaces a file by a rename; does nothing if the file already has that text."""
    if file.exists() and file.read_text() == text:
        return
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        temporary.write_text(text)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def with_table(readme, table):
    """Returns the text of the README with this table, or None if the README has no place for a table."""
    text = readme.read_text() if readme.exists() else ""
    if BEGIN not in text or END not in text:
        return None
    head, rest = text.split(BEGIN, 1)
    return f"{head}{BEGIN}\n{table}\n{END}{rest.split(END, 1)[1]}"


def refresh_table(folder, table, rows, logs_only):
    readme = folder / "README.md"
    text = with_table(readme, table)
    if text is None:
        say(f"measure: {readme} has no place for the table (a line '{BEGIN}' and a line '{END}')")
        return
    replace(readme, text)
    replace(folder / "results.json", results_of(rows, logs_only))


# --- the command


def options_of(arguments):
    parser = argparse.ArgumentParser(
        description="Measures known failures: profile, incident, diagnose, replay, control, blind search; keeps the "
                    "table.",
        epilog="examples:\n  test/planted/run-all                           all planted failures\n"
               "  test/planted/run-all --no-blind partition      one of them, without the blind search\n"
               "  examples/bugs/run-all --recorded nats-meta     from the recorded dump",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="the folder of the cases")
    parser.add_argument("--kind", choices=sorted(KINDS), required=True, help="which table")
    parser.add_argument("cases", nargs="*", help="their names (default: all)")
    parser.add_argument("--only-table", action="store_true",
                        help="measure nothing, write the table from the kept figures")
    parser.add_argument("--recorded", action="store_true",
                        help="use incident.dump and profile.json of the case's folder; with --logs its incident-logs")
    parser.add_argument("--logs", action="store_true",
                        help="diagnose from the incident's logs alone, without dump and profile; kept in "
                             "from_logs.json, without blind search and control")
    parser.add_argument("--both", action="store_true",
                        help="diagnose from the incident's dump and logs together; kept in from_both.json, without "
                             "blind search and control")
    parser.add_argument("--noise", type=int, choices=sorted(STRENGTHS),
                        help="diagnose within a day of production's noise of this strength (noise.py); kept in "
                             "noise-N.json, without blind search and control")
    parser.add_argument("--without", action="append", default=[], metavar="PART",
                        help="leave a part of the search out to measure its effect (rose diagnose --without); "
                             "figures are not kept")
    parser.add_argument("--record", action="store_true", help="keep dump, profile and schedule of solved cases in "
                                                              "their folders; with --logs the incident's logs")
    parser.add_argument("--no-blind", dest="blind", action="store_false", help="without the blind search")
    parser.add_argument("--no-control", dest="control", action="store_false",
                        help="without the fault-free control runs")
    parser.add_argument("--no-figures", dest="figures", action="store_false",
                        help="leave figures.json and the table as they are")
    parser.add_argument("--blind-runs", type=int, help="runs of the blind search (default: as many as diagnose made)")
    parser.add_argument("--control-runs", type=int, default=CONTROL_RUNS, help=f"(default: {CONTROL_RUNS})")
    parser.add_argument("--limit", type=int, default=LIMITS["diagnose"],
                        help="seconds that one diagnosis may take (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the blind search (default: 1)")
    parser.add_argument("--keep", type=Path, help="keep each case's dumps, logs and record of runs in this folder")
    options = parser.parse_args(arguments)
    if options.logs and options.both:
        parser.error("--both is about the dump, too: without --logs")
    if options.logs and options.recorded and options.record:
        parser.error("--recorded reads what --record keeps: one of them")
    if options.both and (options.recorded or options.record):
        parser.error("--both makes the incident anew and keeps no recording: without --recorded and --record")
    if options.logs or options.both:
        options.blind = options.control = False
    if options.noise:
        if options.logs or options.both or options.record:
            parser.error("--noise is about dumps and keeps no recording: without --logs, --both and --record")
        options.blind = options.control = False
    if options.without:
        options.figures = False
    return options


def figures_file(options):
    return "from_logs.json" if options.logs else "from_both.json" if options.both else f"noise-{options.noise}.json" if options.noise else "figures.json"


def find_rose(folder):
    named = os.environ.get("ROSE")
    if named:
        path = shutil.which(named)
        if not path:
            sys.exit(f"measure: ROSE={named} cannot be executed")
        return Path(path).resolve()
    for parent in folder.parents:
        built = parent / "build/release/rose"
        if built.exists():
            return built
    path = shutil.which("rose")
    if not path:
        sys.exit("measure: no rose: build the release preset, install it, or say ROSE=/path/to/rose")
    return Path(path).resolve()


def chosen_cases(folder, names):
    known = sorted(file.parent for file in folder.glob("*/rose.toml"))
    if not names:
        return known
    by_name = {case.name: case for case in known}
    for name in names:
        if name.strip("/") not in by_name:
            sys.exit(f"measure: there is no case '{name}' in {folder}; there are: {', '.join(by_name) or 'none'}")
    return [by_name[name.strip("/")] for name in names]


def measure_case(folder, rose, options):
    if options.keep:
        work = options.keep.resolve() / folder.name
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
    else:
        work = Path(tempfile.mkdtemp(prefix=f"rose-{options.kind}-"))
    try:
        work.chmod(0o711)  # nodes may run as another user and must reach their folders in it
        return Case(folder, rose, Commands(work), options).measure()
    finally:
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)


def one_line(figures):
    if not figures["solved"]:
        return f"not solved: {figures.get('failure')}"
    return (f"level {figures['level']}, {figures['schedules']} schedules, {figures['runs']} runs "
            f"({figures['confirm_runs']} to confirm), "
            f"{figures['seconds']:.0f} s, replayed {rate_cell(figures['replay'])}, blind {blind_cell(figures)}")


def main(arguments):
    options = options_of(arguments)
    folder = options.folder.resolve()
    if options.only_table:
        rows, logs_only = read_figures(folder), read_logs_only(folder)
        table = table_of(options.kind, rows, logs_only)
        refresh_table(folder, table, rows, logs_only)
        print(table)
        return 0
    if os.geteuid() != 0:
        sys.exit("measure: needs root: runs make namespaces, cgroups and load programs into the kernel")
    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGHUP, terminate)
    rose = find_rose(folder)
    measured, skipped, status = [], [], 0
    try:
        for case in chosen_cases(folder, options.cases):
            say(f"{case.name}:")
            try:
                figures = measure_case(case, rose, options)
            except Skipped as reason:
                skipped.append(case.name)
                say(f"  SKIPPED: {reason}")
                continue
            measured.append(figures)
            if options.figures:
                (case / figures_file(options)).write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")
            say(f"  {one_line(figures)}")
    except KeyboardInterrupt:
        say("measure: interrupted")
        status = 130
    rows, logs_only = (read_figures(folder), read_logs_only(folder)) if options.figures else (measured, [])
    table = table_of(options.kind, rows, logs_only)
    if options.figures and measured:
        refresh_table(folder, table, rows, logs_only)
    print(table)
    if status:
        return status
    if skipped and not measured:
        return INSTALL_SKIPS
    if any(not figures["solved"] for figures in measured):
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
