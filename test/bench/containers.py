#!/usr/bin/env python3
"""Measures how much longer a run takes in containers than with processes.

For this, the same schedule is run alternately with the nodes of the system as processes and in containers:

    test/bench/containers.py --rose build/release/rose [--runs 10] [CASE...]

The image contains the system's own program and mount points; its libraries and interpreters are this machine's, mounted
read-only. For each case and both forms, it prints how often the bug occurred and how often the faults fired, the median
seconds of a run, and what the runs left behind. Needs podman and runc or crun; without them it prints a message and
exits with 3.
"""
import argparse
import fcntl
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
# where `install` puts systems
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "rose"
KV = '''version = 1
[[fault]]
id = "crash-n3"
kind = "crash"
node = "n3"
when = [ { function = "kv::Log::append", count = 20 } ]
'''
CUT = '''version = 1
[[fault]]
id = "cut-n1"
kind = "partition"
node = "n1"
duration = "4s"
when = [ { elapsed = "1s" } ]
[[fault]]
id = "stall-n2"
kind = "pause"
node = "n2"
duration = "300ms"
when = [ { elapsed = "500ms" } ]
'''
# For each name: the folder of the system, and a schedule if the folder has none.
CASES = {
    "kv, a crash at a function": ("examples/kv/crash-double-apply", KV),
    "kv, a cut and a pause": ("examples/kv/split-lost-writes", CUT),
    "redis-sentinel": ("examples/bugs/redis-sentinel", None),
    "zookeeper-4203": ("examples/bugs/zookeeper-4203", None),
    "zookeeper": ("examples/systems/zookeeper", None),
}


class Unable(Exception):
    pass


def toml(value):
    """Returns the value in TOML's notation. Tables are written inline."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(value[key])}" for key in value) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def driver(folder):
    """Returns "overlay", podman's usual storage driver, or "vfs" if no overlay can be mounted in the folder.

    With vfs, each container is a copy of its image, so that the cost of a run depends on the image.
    """
    for part in ("lower", "upper", "work", "shown"):
        (folder / part).mkdir()
    layers = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
    if subprocess.run(["mount", "-t", "overlay", "-o", layers, "overlay", folder / "shown"],
                      capture_output=True).returncode:
        return "vfs"
    subprocess.run(["umount", folder / "shown"], check=True)
    return "overlay"


class Engine:
    """Calls podman so that all its images and containers are below one folder."""

    def __init__(self, work):
        if not shutil.which("podman"):
            raise Unable("no podman")
        runtime = shutil.which("runc") or shutil.which("crun")
        if not runtime:
            raise Unable("neither runc nor crun")
        store = work / "store"
        store.mkdir()
        (store / "storage.conf").write_text(
            f'[storage]\ndriver = "{driver(store)}"\ngraphroot = "{store}/graph"\nrunroot = "{store}/run"\n')
        (store / "containers.conf").write_text(
            '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n'
            f'[engine]\nruntime = "{runtime}"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n'
            f'lock_type = "file"\ntmp_dir = "{store}/tmp"\n')
        self.environment = os.environ | {"CONTAINERS_STORAGE_CONF": str(store / "storage.conf"),
                                         "CONTAINERS_CONF": str(store / "containers.conf")}

    def run(self, *words, **options):
        done = subprocess.run(["podman", *words], env=self.environment, capture_output=True, text=True, timeout=120,
                              **options)
        if done.returncode:
            raise Unable(f"podman {words[0]}: {done.stderr.strip()}")
        return done.stdout

    def image(self, root, name):
        with tempfile.NamedTemporaryFile(suffix=".tar") as tar:
            subprocess.run(["tar", "-C", root, "-cf", tar.name, "."], check=True)
            self.run("import", tar.name, name)

    def containers(self):
        return self.run("ps", "-aq").split()


def image_root(work, name, program):
    """Makes the root folder of the image, with mount points, the machine's links and users, and the program."""
    root = work / "root" / name
    for folder in ("usr", "etc", "tmp", "opt", "proc", "sys", "dev"):
        (root / folder).mkdir(parents=True)
    for link in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink("/" + link):
            (root / link).symlink_to(os.readlink("/" + link))
    for kept in ("passwd", "group", "alternatives", "ld.so.cache",
                 *(path.name for path in pathlib.Path("/etc").glob("java-*"))):
        source = pathlib.Path("/etc") / kept
        if source.is_dir():
            shutil.copytree(source, root / "etc" / kept, symlinks=True)
        elif source.exists():
            shutil.copy(source, root / "etc" / kept)
    (root / "tmp").chmod(0o1777)
    if program:
        shutil.copy(program, root / "opt")
    return root


def in_containers(folder, work, engine, name):
    """Writes the folder's configuration with an image for each node, and returns its path."""
    config = tomllib.loads((folder / "rose.toml").read_text())
    image = f"localhost/rose-bench-{name}:1"
    program = None
    for node in config["node"]:
        first = (folder / node["command"][0]).resolve()
        with open(first, "rb") as file:
            if file.read(4) == b"\x7fELF":
                program = first
    engine.image(image_root(work, name, program), image)
    for node in config["node"]:
        words = list(node["command"])
        if program:
            node["command"] = [f"/opt/{program.name}", *words[1:]]
            node["binary"] = f"/opt/{program.name}"
        else:
            node["command"] = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', "${dir}", f"{folder}/{words[0]}", *words[1:]]
            node.pop("binary", None)
        node["image"] = image
        node["volumes"] = ["/usr:/usr:ro", *(f"{shown}:{shown}:ro" for shown in (folder, CACHE) if shown.exists())]
    for part in [config["workload"], config["oracle"], *(node.get("ready", {}) for node in config["node"])]:
        if isinstance(part.get("command"), list):
            part["command"] = [word if not (folder / word).exists() or word.startswith("/") or "/" not in word
                               else str(folder / word)
                               for word in (word.replace("${config_dir}", str(folder)) for word in part["command"])]
    lines = [f"{key} = {toml(value)}" for key, value in config.items() if not isinstance(value, (dict, list))]
    config.setdefault("deployment", {})["engine"] = "podman"
    for key, value in config.items():
        if isinstance(value, dict):
            lines += [f"[{key}]", *(f"{inner} = {toml(value[inner])}" for inner in value)]
    for node in config["node"]:
        lines += ["[[node]]", *(f"{key} = {toml(node[key])}" for key in node)]
    path = work / f"{name}.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def replay(rose, schedule, config, runs, engine):
    """Returns the result of `rose replay --json` for that number of runs."""
    done = subprocess.run([rose, "replay", schedule, "-c", config, "--runs", str(runs), "--json"],
                          env=engine.environment, capture_output=True, text=True, timeout=600)
    if done.returncode not in (0, 1, 4):
        raise Unable(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    return json.loads(done.stdout)


def leftovers(engine):
    """Returns the containers of the engine, and those resources of the machine whose names are rose's."""
    found = {f"container {one}" for one in engine.containers()}
    for folder in ("/run/netns", "/run/rose", "/sys/class/net", *mounts("cgroup2"), *mounts("cgroup")):
        found |= {str(path) for path in pathlib.Path(folder).glob("rose*") if path.exists()}
    others = under_way()
    return {path for path in found if not any(f"rose-{one}" in path for one in others)}


def under_way():
    """Returns the ids of runs that other users make at present. Their locks are held."""
    ids = set()
    for lock in pathlib.Path("/run/rose").glob("rose-*.lock"):
        try:
            with open(lock) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            ids.add(lock.name[len("rose-"):-len(".lock")])
        except OSError:  # the lock was removed just now
            pass
    return ids


def mounts(kind):
    return [line.split()[1] for line in open("/proc/mounts") if line.split()[2] == kind]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rose", default=ROOT / "build/release/rose", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=10, help="of each form (10)")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="; ".join(CASES))
    arguments = parser.parse_args()
    unknown = [name for name in arguments.cases if name not in CASES]
    if unknown or arguments.runs < 1:
        parser.error(f"no case {unknown[0]!r}: {', '.join(CASES)}" if unknown else "--runs is 1 or more")
    work = pathlib.Path(tempfile.mkdtemp(prefix="rose-containers-"))
    work.chmod(0o755)
    try:
        engine = Engine(work)
        before, runs = leftovers(engine), 0
        print("| case | as processes: showed, fired | s a run | in containers: showed, fired | s a run | more |\n|---|"
              "---|---|---|---|---|")
        for at, (name, (folder, text)) in enumerate(CASES.items()):
            if arguments.cases and name not in arguments.cases:
                continue
            folder = ROOT / folder
            if (folder / "install").exists():
                subprocess.run(["./install"], cwd=folder, check=True, capture_output=True)
            schedule = folder / "schedule.toml"
            if text:
                schedule = work / f"{at}.schedule.toml"
                schedule.write_text(text)
            forms = [folder / "rose.toml", in_containers(folder, work, engine, str(at))]
            told = [[], []]
            for _ in range(arguments.runs):
                for form, path in enumerate(forms):
                    told[form].append(replay(arguments.rose, schedule, path, 1, engine))
            seconds = [statistics.median(run["seconds"] for one in form for run in one["run_results"]) for form in told]
            cells = [f"{sum(one['reproduced'] for one in form)} of {sum(1 - one['inconclusive'] for one in form)}, "
                     f"{sum(all(fault['fired'] for fault in one['faults']) for one in form)} of {arguments.runs} | "
                     f"{took:.1f}"
                     for form, took in zip(told, seconds)]
            print(f"| {name} | {cells[0]} | {cells[1]} | {seconds[1] - seconds[0]:+.1f} |", flush=True)
            runs += arguments.runs
        left = leftovers(engine) - before
        print(f"\n{runs} runs in containers left behind: {', '.join(sorted(left)) or 'nothing'}")
        return 1 if left else 0
    except Unable as error:
        print(f"containers.py: {error}", file=sys.stderr)
        return 3
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
