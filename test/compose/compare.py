#!/usr/bin/env python3
"""Compares rose's reading of Compose files with that of compose-go, the library behind `docker compose config`.

Usage: compare.py COMPOSE_NODES            compare with the answers of compose-go in answers.json
       compare.py COMPOSE_NODES --refresh  write answers.json anew with load.go (needs Go and its module proxy)

The cases are the folders below cases/ and ../cluster/compose_kinds/. A case is a compose.yaml; case.json names other
files and profiles. It also gives the reason if only one of the two refuses the file: "rose_only" or "compose_only".
Where Go is installed, the test also checks that answers.json is what compose-go answers."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ANSWERS = HERE / "answers.json"
HOME = "/home/someone"
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": HOME, "FROM_OUTSIDE": "outside"}
ALWAYS = 1000000  # rose's number of restarts for "always"


def cases():
    found = {}
    for folder in sorted([*(HERE / "cases").iterdir(), *(HERE.parent / "cluster" / "compose_kinds").iterdir()]):
        about = json.loads((folder / "case.json").read_text()) if (folder / "case.json").exists() else {}
        files = [folder / name for name in about.get("files", ["compose.yaml"])]
        if all(file.exists() for file in files):
            found[folder.name] = (folder, files, about)
    return found


def without_paths(text, folder):
    """Replaces the folder of the case, and its parent folder, by placeholders."""
    return text.replace(str(folder), "${case}").replace(str(folder.parent), "${cases}")


def ask_compose(cases):
    """compose-go's answers, or the reason why it cannot be asked."""
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if not go:
        return None, "Go is not installed"
    with tempfile.TemporaryDirectory(prefix="rose-compose-") as folder:
        environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false"}
        try:
            built = subprocess.run([go, "build", "-o", f"{folder}/load", "load.go"], cwd=HERE, env=environment,
                                   capture_output=True, text=True, timeout=600)
        except subprocess.TimeoutExpired:
            return None, "compose-go was not built within 10 minutes"
        if built.returncode != 0:
            return None, "compose-go cannot be built here: " + (built.stderr.strip().splitlines() or ["?"])[-1]
        requests = [{"folder": str(folder), "files": [str(file) for file in files],
                     "profiles": about.get("profiles", [])} for folder, files, about in cases.values()]
        ran = subprocess.run([f"{folder}/load"], input=json.dumps(requests), env=ENVIRONMENT, capture_output=True,
                             text=True, timeout=60, check=True)
    answers = {}
    for (name, (folder, _, _)), answer in zip(cases.items(), json.loads(ran.stdout), strict=True):
        answers[name] = json.loads(without_paths(json.dumps(answer), folder))
    return answers, None


def same(one, other):
    """True if the answers are equal. The text of a refusal does not count, as it depends on the order of Go's maps."""
    return one == other or (bool(one and other) and "refused" in one and "refused" in other)


def nanoseconds(text):
    """Go's form of a duration: "1m30s"."""
    units = {"h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "µs": 10**3, "ns": 1}
    parts = re.findall(r"([\d.]+)(h|ms|m|s|µs|ns)", text or "")
    return round(sum(float(number) * units[unit] for number, unit in parts))


def in_bytes(text):
    match = re.fullmatch(r"(-?[\d.]+) ?([kmgtp]?)(i?b)?", str(text).lower())
    return round(float(match[1]) * 1024 ** "bkmgtp".index(match[2] or "b")) if match else text


def mapping(value, between="="):
    """A map or list of Compose's as a map; a name alone has the value None."""
    if isinstance(value, list):
        return {pair.partition(between)[0]: pair.partition(between)[2] if between in pair else None for pair in value}
    return dict(value or {})


SIZES = {"--shm-size", "--memory", "--memory-reservation", "--memory-swap"}


def pairs_of_options(words):
    """The engine's arguments as a sorted list of (flag, value)."""
    found, i = [], 0
    while i < len(words):
        flag, value = words[i], ""
        if i + 1 < len(words) and not words[i + 1].startswith("--"):
            value = words[i + 1]
            i += 1
        i += 1
        if flag in SIZES:
            value = str(in_bytes(value))
        if flag.startswith("--device-") and flag.endswith("bps"):
            path, _, rate = value.rpartition(":")
            value = f"{path}:{in_bytes(rate)}"
        if flag == "--device":
            parts = value.split(":")
            target = parts[1] if len(parts) > 1 else parts[0]
            value = ":".join([parts[0], target, parts[2] if len(parts) > 2 else "rwm"])
        if flag == "--label" and "=" not in value:
            value += "="
        if flag == "--cpus":
            value = str(float(value))
        found.append((flag, value))
    return sorted(found)


def options_of(service):
    """The engine's arguments that the keys of a service stand for."""
    words = []
    for key, flag in [("working_dir", "--workdir"), ("shm_size", "--shm-size"), ("platform", "--platform"),
                      ("mem_limit", "--memory"), ("mem_reservation", "--memory-reservation"),
                      ("memswap_limit", "--memory-swap"), ("mem_swappiness", "--memory-swappiness"),
                      ("oom_score_adj", "--oom-score-adj"), ("cpus", "--cpus"), ("cpu_shares", "--cpu-shares"),
                      ("cpu_period", "--cpu-period"), ("cpu_quota", "--cpu-quota"), ("cpuset", "--cpuset-cpus"),
                      ("pids_limit", "--pids-limit"), ("userns_mode", "--userns"), ("cgroup", "--cgroupns")]:
        if service.get(key):
            words += [flag, str(service[key])]
    for key, flag in [("oom_kill_disable", "--oom-kill-disable"), ("read_only", "--read-only"), ("init", "--init"),
                      ("privileged", "--privileged"), ("tty", "--tty"), ("stdin_open", "--interactive")]:
        if service.get(key):
            words.append(flag)
    for key, flag in [("cap_add", "--cap-add"), ("cap_drop", "--cap-drop"), ("tmpfs", "--tmpfs"),
                      ("security_opt", "--security-opt"), ("group_add", "--group-add"),
                      ("device_cgroup_rules", "--device-cgroup-rule")]:
        for value in service.get(key) or []:
            words += [flag, value]
    for key, flag in [("sysctls", "--sysctl"), ("labels", "--label"), ("annotations", "--annotation")]:
        for name, value in mapping(service.get(key)).items():
            words += [flag, name if value is None else f"{name}={value}"]
    for device in service.get("devices") or []:
        words += ["--device", ":".join(device[part] for part in ("source", "target", "permissions"))]
    for key in ("ipc", "pid"):
        mode = service.get(key, "")
        if mode and ":" not in mode and (key == "ipc" or mode == "host"):
            words += [f"--{key}", mode]
    resources = service.get("deploy", {}).get("resources", {})
    limits, reserved = resources.get("limits", {}), resources.get("reservations", {})
    for value, flag in [(limits.get("cpus"), "--cpus"), (limits.get("memory"), "--memory"),
                        (limits.get("pids"), "--pids-limit"), (reserved.get("memory"), "--memory-reservation")]:
        if value:
            words += [flag, str(value)]
    blocks = service.get("blkio_config") or {}
    if blocks.get("weight"):
        words += ["--blkio-weight", str(blocks["weight"])]
    for key, flag, amount in [("weight_device", "--blkio-weight-device", "weight"),
                              ("device_read_bps", "--device-read-bps", "rate"),
                              ("device_write_bps", "--device-write-bps", "rate"),
                              ("device_read_iops", "--device-read-iops", "rate"),
                              ("device_write_iops", "--device-write-iops", "rate")]:
        for device in blocks.get(key) or []:
            device = {part.lower(): value for part, value in device.items()}
            words += [flag, f"{device['path']}:{device[amount]}"]
    for volume in service.get("volumes") or []:
        if volume["type"] == "tmpfs":
            memory = volume.get("tmpfs") or {}
            how = [f"size={memory['size']}"] if memory.get("size") else []
            how += [f"mode={memory['mode']:o}"] if memory.get("mode") else []
            words += ["--tmpfs", volume["target"] + (":" + ",".join(how) if how else "")]
        elif not volume.get("source"):
            words += ["--volume", volume["target"]]
    return pairs_of_options(words)


def volumes_of(service, project):
    found = []
    for volume in service.get("volumes") or []:
        if volume["type"] == "tmpfs" or not volume.get("source"):
            continue
        source = volume["source"]
        if volume["type"] == "volume":
            driver = (project.get("volumes", {}).get(source) or {}).get("driver_opts") or {}
            if driver.get("o", "").split(",")[0] == "bind":
                source = driver["device"]
        how = ["ro"] if volume.get("read_only") else []
        bind = volume.get("bind") or {}
        how += [bind[key] for key in ("selinux", "propagation") if bind.get(key)]
        how += ["nocopy"] if (volume.get("volume") or {}).get("nocopy") else []
        found.append([source.rstrip("/") or "/", volume["target"], sorted(how)])
    for kind in ("secrets", "configs"):
        for handed in service.get(kind) or []:
            declared = project.get(kind, {}).get(handed["source"], {})
            if declared.get("file"):
                found.append([declared["file"], place_of(kind, handed), ["ro"]])
    return sorted(found)


def place_of(kind, handed):
    target = handed.get("target") or ("" if kind == "secrets" else "/") + handed["source"]
    return target if target.startswith("/") else "/run/secrets/" + target


def files_of(service, project):
    found = {}
    for kind in ("secrets", "configs"):
        for handed in service.get(kind) or []:
            declared = project.get(kind, {}).get(handed["source"], {})
            content = declared.get("content")
            if content is None and declared.get("environment"):
                content = ENVIRONMENT.get(declared["environment"])
            if content is not None:
                mode = handed.get("mode") or "0444"
                mode = int(mode, 8) if isinstance(mode, str) else mode
                owned = 0o444 if handed.get("uid") or handed.get("gid") else 0
                found[place_of(kind, handed)] = {"content": content, "mode": mode | owned}
    return found


def restart_of(service):
    policy = service.get("deploy", {}).get("restart_policy")
    if policy is not None:
        how = policy.get("condition", "any")
        most = 0 if how == "none" else policy.get("max_attempts") or ALWAYS
        return {"max": most, "only_failures": how == "on-failure"}
    word = service.get("restart", "")
    if word in ("", "no"):
        return None
    most = int(word.partition(":")[2] or 0) if word.startswith("on-failure") else 0
    return {"max": most or ALWAYS, "only_failures": word.startswith("on-failure")}


def health_of(service):
    health = service.get("healthcheck")
    if health is None:
        return None
    test = health.get("test") or []
    found = {"disable": bool(health.get("disable")) or test[:1] == ["NONE"]}
    if found["disable"]:
        return found
    found["test"] = ["/bin/sh", "-c", *test[1:]] if test[:1] == ["CMD-SHELL"] else test[1:]
    for key in ("interval", "timeout", "start_period"):
        if health.get(key):
            found[key] = nanoseconds(health[key])
    if health.get("retries"):
        found["retries"] = health["retries"]
    return found


def hooks_of(hooks):
    return [{"command": hook["command"], "user": hook.get("user", ""), "privileged": bool(hook.get("privileged")),
             "working_dir": hook.get("working_dir", ""),
             "environment": {k: v for k, v in mapping(hook.get("environment")).items() if v is not None}}
            for hook in hooks or []]


def build_of(build):
    if not build:
        return None
    words = []
    for key, flag in [("target", "--target"), ("network", "--network"), ("shm_size", "--shm-size")]:
        if build.get(key):
            words += [flag, str(build[key])]
    for key, flag in [("args", "--build-arg"), ("labels", "--label"), ("additional_contexts", "--build-context")]:
        for name, value in mapping(build.get(key)).items():
            words += [flag, name if value is None else f"{name}={value}"]
    for pair in build.get("extra_hosts") or []:
        words += ["--add-host", pair.replace("=", ":", 1)]
    for key, flag in [("no_cache", "--no-cache"), ("pull", "--pull")]:
        if build.get(key):
            words.append(flag)
    for tag in build.get("tags") or []:
        words += ["--tag", tag]
    file = build.get("dockerfile", "")
    if file and file != "Dockerfile":
        words += ["--file", file if file.startswith("/") else f"{build['context']}/{file}"]
    return [build["context"], pairs_of_options(words)]


def ports_of(service):
    """The TCP ports, those of `ports` first. Of a range, only the first port counts."""
    found = [port["target"] for port in service.get("ports") or [] if port.get("protocol", "tcp") == "tcp"]
    for port in service.get("expose") or []:
        number, _, protocol = str(port).partition("/")
        if protocol in ("", "tcp"):
            found.append(int(number.partition("-")[0]))
    return list(dict.fromkeys(found))


def expected_nodes(project):
    """What rose must make of the project that compose-go has read."""
    services = project["services"]
    replicas = {}
    for name, service in services.items():
        count = service.get("scale")
        if count is None:
            count = service.get("deploy", {}).get("replicas")
        replicas[name] = 1 if count is None else int(count)
    nodes_of = {name: [name] if count == 1 else [f"{name}-{n + 1}" for n in range(count)]
                for name, count in replicas.items()}

    def named(word):
        return nodes_of.get(word, [word])[0]

    linked = {}
    for service in services.values():
        for link in service.get("links") or []:
            other, _, alias = link.partition(":")
            if alias:
                linked.setdefault(other, []).append(alias)
    found = {}
    for name, service in services.items():
        after = {}
        for other, how in (service.get("depends_on") or {}).items():
            for node in nodes_of.get(other, [] if not how["required"] else [other]):
                after[node] = {"condition": how["condition"], "required": how["required"]}
        networks = service.get("networks") or {}
        aliases = [alias for how in networks.values() for alias in (how or {}).get("aliases") or []]
        aliases += linked.get(name, [])
        shared = {key: named(service[key].partition(":")[2]) if service.get(key, "").startswith("service:") else ""
                  for key in ("network_mode", "pid", "ipc")}
        domain = service.get("domainname", "")
        limits = []
        for limit, value in (service.get("ulimits") or {}).items():
            limits.append(f"{limit}={value['soft']}:{value['hard']}" if isinstance(value, dict) else f"{limit}={value}")
        build = build_of(service.get("build"))
        tmpfs = {}
        for volume in service.get("volumes") or []:
            driver = (project.get("volumes", {}).get(volume.get("source", "")) or {}).get("driver_opts") or {}
            if volume["type"] == "volume" and driver.get("type") == "tmpfs":
                how = [word for word in driver.get("o", "").split(",")
                       if word not in ("", "rw", "nodev", "nosuid", "noatime")]
                tmpfs[volume["source"]] = ",".join(how)
        for n, node in enumerate(nodes_of[name]):
            if service.get("container_name"):
                own = [service["container_name"]]
            else:
                own = [f"{project['name']}-{name}-{n + 1}"] + ([name] if replicas[name] > 1 else [])
            found[node] = {
                "image": None if build and not service.get("image") else service.get("image"),
                "build": build,
                "dockerfile_inline": (service.get("build") or {}).get("dockerfile_inline", ""),
                "command": service.get("command") or [],
                "entrypoint": service.get("entrypoint"),
                "environment": {k: v for k, v in mapping(service.get("environment")).items() if v is not None},
                "user": service.get("user", ""),
                "hostname": service.get("hostname") or (name if domain else ""),
                "domainname": domain,
                "aliases": sorted(set(aliases + own)),
                "options": options_of(service),
                "ulimits": sorted(limits),
                "stop_signal": service.get("stop_signal", ""),
                "stop_grace_period": nanoseconds(service.get("stop_grace_period")),
                "files": files_of(service, project),
                "ports": ports_of(service),
                "extra_hosts": sorted(service.get("extra_hosts") or []),
                "network_of": shared["network_mode"],
                "host_network": service.get("network_mode") == "host",
                "pid_of": shared["pid"],
                "ipc_of": shared["ipc"],
                "uts": service.get("uts", ""),
                "depends_on": after,
                "post_start": hooks_of(service.get("post_start")),
                "pre_stop": hooks_of(service.get("pre_stop")),
                "tmpfs_volumes": tmpfs,
                "volumes": volumes_of(service, project),
                "restart": restart_of(service),
                "healthcheck": health_of(service),
                "ip": next((how["ipv4_address"] for how in networks.values() if how and how.get("ipv4_address")), ""),
            }
    return {name: node for name, node in found.items() if replicas.get(name, 1) > 0}


def actual_nodes(nodes):
    """The output of compose_nodes in the form of expected_nodes()."""
    found = {}
    for node in nodes:
        one = dict(node)
        name = one.pop("name")
        del one["dns"]  # rose keeps only name servers that are nodes
        one["options"] = pairs_of_options(one["options"])
        one["aliases"] = sorted(set(one["aliases"]))
        one["ulimits"] = sorted(one["ulimits"])
        one["extra_hosts"] = sorted(one["extra_hosts"])
        one["entrypoint"] = one.get("entrypoint")
        one["restart"] = one.get("restart")
        one["healthcheck"] = one.get("healthcheck")
        if (one["healthcheck"] or {}).get("disable"):
            one["healthcheck"] = {"disable": True}
        volumes = []
        for volume in one["volumes"]:
            source, target, *how = volume.split(":")
            how = how[0].split(",") if how else []
            volumes.append([source, target, sorted(word for word in how if word != "rw")])
        one["volumes"] = sorted(volumes)
        if one["build"]:
            one["build"] = [one["build"][-1], pairs_of_options(one["build"][:-1])]
            if one["image"].startswith("localhost/rose-"):
                one["image"] = None
        else:
            one["build"] = None
        found[name] = one
    return found


def differences(expected, actual):
    if sorted(expected) != sorted(actual):
        return [f"nodes: Compose has {sorted(expected)}, rose {sorted(actual)}"]
    wrong = []
    for name, want in expected.items():
        have = actual[name]
        if sorted(want) != sorted(have):
            sys.exit(f"compare.py: the members differ: {sorted(set(want) ^ set(have))}")
        for key, value in want.items():
            # compare both in JSON form, which has lists instead of tuples
            if json.loads(json.dumps(value)) != json.loads(json.dumps(have[key])):
                wrong.append(f"{name}: {key}: Compose has {json.dumps(value)}, rose {json.dumps(have[key])}")
    return wrong


def main():
    compose_nodes, all_cases = sys.argv[1], cases()
    asked, why_not = ask_compose(all_cases)
    if "--refresh" in sys.argv[2:]:
        if why_not:
            sys.exit(f"compare.py: {why_not}")
        new = ANSWERS.with_suffix(".new")
        new.write_text(json.dumps(asked, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        new.rename(ANSWERS)
    answers = json.loads(ANSWERS.read_text())
    failures = []
    if why_not:
        print(f"SKIPPED: asking compose-go itself: {why_not}")
    else:
        failures += [f"{name}: answers.json is out of date: run compare.py with --refresh"
                     for name in sorted(set(asked) | set(answers)) if not same(asked.get(name), answers.get(name))]
    read = refused = 0
    for name, (folder, files, about) in all_cases.items():
        arguments = [word for profile in about.get("profiles", []) for word in ("--profile", profile)]
        ran = subprocess.run([compose_nodes, *arguments, *files], env=ENVIRONMENT, capture_output=True, text=True,
                             check=True, timeout=60)
        rose = json.loads(without_paths(ran.stdout, folder))
        compose = answers.get(name)
        if compose is None:
            failures.append(f"{name}: no answer of compose-go is recorded: run compare.py with --refresh")
            continue
        if not compose.get("project", {"services": "refused"})["services"]:
            compose = {"refused": "no service is started"}  # as `docker compose up` reports
        read += "refused" not in rose
        refused += "refused" in rose
        only = {(True, False): "rose_only", (False, True): "compose_only"}.get(
            ("refused" in rose, "refused" in compose))
        if only not in [None, *about]:
            failures.append(f"{name}: one refuses it, the other does not: {rose.get('refused') or compose['refused']}")
        elif any(reason in about and reason != only for reason in ("rose_only", "compose_only")):
            failures.append(f"{name}: case.json names a refusal that does not happen")
        elif "refused" not in rose and only is None:
            failures += [f"{name}: {line}" for line in
                         differences(expected_nodes(compose["project"]), actual_nodes(rose["nodes"]))]
    print("\n".join(failures))
    print(f"{len(all_cases)} cases: {read} read by rose, {refused} refused; {len(failures)} differences")
    sys.exit(1 if failures or not read else 0)


main()
