#!/usr/bin/env python3
"""Adds production's noise to a dump from the lab: the incident stays the same, and is surrounded by a day of unrelated
failures, process ends, pauses and silences. Reads and writes `rose dump show --format jsonl`.

  noise.py --strength 2 --seed 1 --profile profile.json --service-port 7000 < incident.jsonl > noisy.jsonl

Strength 1 adds ends of processes, pauses, silences, and several kinds of failures, some of which also occur in the test
deployment. Strength 2 adds more of them, renames and renumbers the hosts, and removes the time at which the workload
began. Strength 3 has a thousand kinds of failures, twelve hosts (which is more than the deployment has nodes), a window
that begins late, and a second, unrelated incident.
Only Python's standard library is needed. """
import argparse
import collections
import json
import random
import sys

SECOND = 1_000_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
HOSTS = 12            # the number of hosts at strength 3
LATE = 0.3            # this share of the time from the beginning of the workload to the incident is not in the window

Strength = collections.namedtuple("Strength", "kinds processes silences renamed twelve late second")
STRENGTHS = {
    1: Strength(100, 10, 10, False, False, False, False),
    2: Strength(400, 20, 20, True, False, False, False),
    3: Strength(1000, 30, 30, True, True, True, True),
}

# Failures that are usual in fleets without a problem (USUAL), and rarer ones. They contain no errors of disks or
# memory, because those would be incidents themselves.
USUAL = [("openat", "ENOENT"), ("access", "ENOENT"), ("readlink", "EINVAL"), ("mkdir", "EEXIST"), ("unlink", "ENOENT"),
         ("connect", "ECONNREFUSED"), ("recvfrom", "EAGAIN"), ("sendto", "EPIPE"), ("statx", "ENOENT"),
         ("newfstatat", "ENOENT")]
LESS_USUAL = [("openat", "EACCES"), ("rename", "ENOENT"), ("openat", "ELOOP"), ("fallocate", "EOPNOTSUPP"),
              ("write", "EINTR"),
              ("read", "EISDIR"), ("connect", "ETIMEDOUT"), ("recvfrom", "ECONNRESET"), ("fcntl", "EAGAIN"),
              ("rmdir", "ENOTEMPTY"),
              ("openat", "EBUSY"), ("link", "EEXIST"), ("sendmsg", "EMSGSIZE"), ("setsockopt", "EINVAL")]
# Errors of those added failures whose calls the nodes make in the test deployment, too.
FIRING = ["EINTR", "EACCES", "EBUSY", "EAGAIN", "ENOENT"]
SYLLABLES = ["ba", "co", "du", "fe", "gi", "ha", "jo", "ku", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "wu", "xe",
             "ya", "zo"]


def word(rng, least=2):
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(least, 4)))


class Noise:
    def __init__(self, meta, events, profile, strength, seed, service_port, rename=True):
        self.meta = meta
        self.events = events
        self.profile = profile
        self.strength = STRENGTHS[strength]._replace(renamed=rename and STRENGTHS[strength].renamed)
        self.rng = random.Random(f"noise {strength} {seed}")
        self.port = service_port
        self.nodes = [node for node in meta.get("nodes") or []
                      if node] or sorted({e["node"] for e in events if e.get("node")})
        self.addresses = dict(entry.rsplit("=", 1) for entry in meta.get("addresses") or [] if "=" in entry)
        times = [event["ts"] for event in events]
        self.begin = min([*times, meta.get("begin_ns") or min(times)])
        self.end = max([*times, meta.get("end_ns") or max(times)])
        self.pid = 50_000

    # The times of the events. Some kinds of events occur all day at a constant rate, some in bursts, some once.
    def times(self):
        manner = self.rng.random()
        if manner < 0.4:
            return [self.rng.randrange(self.end - DAY, self.end) for _ in range(self.rng.randint(3, 40))]
        if manner < 0.7:
            at = self.rng.randrange(self.end - DAY, self.end)
            return [min(self.end, at + self.rng.randrange(5 * SECOND)) for _ in range(self.rng.randint(2, 12))]
        return [self.rng.randrange(self.end - DAY, self.end)]

    def add(self, **event):
        self.events.append(event)

    def failures(self):
        made = self.profile.get("state_changes") or []
        made = [call for call in made if call.get("path") and call["node"] in self.nodes]
        for kind in range(self.strength.kinds):
            node = self.rng.choice(self.nodes)
            self.pid += 1
            event = {"node": node, "type": "scf", "pid": self.pid, "tid": self.pid, "fd": None, "path": None,
                     "peer": None}
            if made and kind % 5 == 0:
                call = self.rng.choice(made)
                event.update(node=call["node"], syscall=call["syscall"], errno=self.rng.choice(FIRING),
                             path=call["path"].replace("*", "1"))
            else:
                syscall, errno = self.rng.choice(USUAL if self.rng.random() < 0.7 else LESS_USUAL)
                event.update(syscall=syscall, errno=errno)
                if syscall in ("connect", "recvfrom", "sendto", "sendmsg", "setsockopt"):
                    event["peer"] = f"10.{self.rng.randrange(200, 250)}.{self.rng.randrange(256)}.{self.rng.randrange(1, 255)}:{self.rng.randrange(1000, 30000)}"
                else:
                    event["path"] = f"/var/lib/{word(self.rng)}/{word(self.rng)}.{self.rng.choice(['conf', 'db', 'log', 'tmp', 'json'])}"
            for ts in self.times():
                self.add(ts=ts, **event)

    def process_ends(self):
        """Adds pauses, kills followed by a restart, and processes that exit with an error."""
        for number in range(self.strength.processes):
            node = self.rng.choice(self.nodes)
            ts = self.rng.randrange(self.end - DAY, self.begin - 60 * SECOND)
            self.pid += 1
            event = {"node": node, "type": "ps", "pid": self.pid, "planned": False}
            manner = number % 3
            if manner == 0:
                self.add(ts=ts, state="paused", signal=None, exit_code=None,
                         duration_ms=self.rng.randrange(3100, 15000), main=True, **event)
            elif manner == 1:
                self.add(ts=ts, state="crashed", signal="SIGKILL", exit_code=None, duration_ms=None, main=True, **event)
                self.add(ts=ts + 2 * SECOND, state="started", signal=None, exit_code=None, duration_ms=None, main=True,
                         **{**event, "pid": self.pid + 1})
                self.pid += 1
            else:
                self.add(ts=ts, state="exited", signal=None, exit_code=self.rng.choice([1, 2, 137]), duration_ms=None,
                         **event)

    def silences(self):
        ends = [(node, self.addresses[node]) for node in self.nodes if node in self.addresses]
        for _ in range(self.strength.silences):
            if not ends:
                return
            node, address = self.rng.choice(ends)
            others = [other for name, other in ends if name != node] + [f"10.240.0.{self.rng.randrange(1, 255)}"]
            length = self.rng.randrange(5100, 60000)
            self.add(ts=self.rng.randrange(self.end - DAY, self.begin - 60 * SECOND), node=node, type="nd",
                     src=self.rng.choice(others), dst=address,
                     duration_ms=length, packets=self.rng.randrange(10, 5000), open=False, sport=self.port,
                     dport=self.rng.randrange(32768, 60000), proto="tcp")

    def other_incident(self):
        """Adds an unrelated incident: three hours before the real one, a host loses power and is down for a minute. The
        other hosts cannot connect to it and receive nothing from it."""
        at = self.begin - 3 * HOUR
        node = self.rng.choice(self.nodes)
        self.pid += 2
        self.add(ts=at, node=node, type="ps", pid=self.pid - 1, state="crashed", signal="SIGKILL", exit_code=None,
                 duration_ms=None, planned=False, main=True)
        self.add(ts=at + 60 * SECOND, node=node, type="ps", pid=self.pid, state="started", signal=None, exit_code=None,
                 duration_ms=None, planned=False, main=True)
        for other in self.nodes:
            if other == node or node not in self.addresses or other not in self.addresses:
                continue
            self.add(ts=at + 60 * SECOND, node=other, type="nd", src=self.addresses[node], dst=self.addresses[other],
                     duration_ms=59_500, packets=400,
                     open=False, sport=self.port, dport=45_000, proto="tcp")
            for number in range(20):
                self.add(ts=at + (1 + 3 * number) * SECOND, node=other, type="scf", pid=77, tid=77, syscall="connect",
                         errno="ECONNREFUSED", fd=9, path=None,
                         peer=f"{self.addresses[node]}:{self.port}")

    def begin_late(self):
        """Removes the first part of the incident's run (set-up, starts of the nodes), as if it had been overwritten in
        the window."""
        workload = self.meta.get("workload_ts") or self.begin
        faults = [e["ts"] - (e.get("duration_ms") or 0) * 1_000_000 for e in self.events
                  if e["type"] == "nd" or (e["type"] == "ps" and e["state"] != "started" and not e.get("planned")
                                           and (e.get("signal") or e["state"] == "paused"))]
        # Keep failures that are not in the profile, because the incident must stay in the window.
        usual = {(failure["syscall"], failure["errno"]) for failure in self.profile.get("failures") or []}
        scf = [e for e in self.events if e["type"] == "scf"]
        failed = sorted(e["ts"] for e in [e for e in scf if (e["syscall"], e["errno"]) not in usual] or scf)
        first = min(faults) if faults else failed[len(failed) // 2] if failed else self.end
        since = workload + int(LATE * max(0, first - workload))
        self.events = [e for e in self.events if e["ts"] >= since]

    def twelve_hosts(self):
        """Adds further healthy hosts, each of which behaves like one of the nodes: it has the events that the profile
        contains."""
        healthy = collections.defaultdict(list)
        for call in self.profile.get("state_changes") or []:
            healthy[call["node"]].append(("sys", call))
        for function in self.profile.get("functions") or []:
            # skips functions that are never entered, of which there are many
            if function.get("infrequent") and function.get("count"):
                healthy[function["node"]].append(("af", function))
        if not self.nodes:
            return
        originals = list(self.nodes)
        for number in range(len(originals), HOSTS):
            like = originals[number % len(originals)]
            host = f"{like}-like-{number}"
            self.nodes.append(host)
            self.addresses[host] = f"10.199.0.{number + 1}"
            for kind, what in healthy[like]:
                for _ in range(min(3, what.get("count") or 1)):
                    event = {"ts": self.rng.randrange(self.end - DAY, self.end), "node": host, "type": kind,
                             "pid": 40 + number, "tid": 40 + number}
                    if kind == "af":
                        event["function"] = what["function"]
                    else:
                        path, peer = what.get("path"), what.get("peer")
                        event.update(syscall=what["syscall"], result=0, fd=None, path=path and path.replace("*", "1"),
                                     peer=peer and peer.replace("*", "40000"))
                    self.add(**event)

    def rename(self):
        names = {node: f"{word(self.rng, 3)}-{number:02}.dc{1 + number % 3}.example"
                 for number, node in enumerate(self.rng.sample(self.nodes, len(self.nodes)))}
        moved = {address: f"10.{100 + number % 3}.{number}.{self.rng.randrange(2, 250)}"
                 for number, address in enumerate(sorted(set(self.addresses.values())))}

        def renumber(text):
            if not text:
                return text
            address, colon, port = text.rpartition(":")
            return moved[address] + colon + port if address in moved else moved.get(text, text)

        for event in self.events:
            event["node"] = names.get(event.get("node"), event.get("node"))
            for key in ("src", "dst", "peer"):
                if event.get(key):
                    event[key] = renumber(event[key])
            for key in ("path", "path2"):
                for node, host in names.items():
                    if event.get(key):
                        event[key] = event[key].replace(f"/{node}/", f"/{host.split('.')[0]}/")
        self.nodes = [names[node] for node in self.nodes]
        self.addresses = {names[node]: moved[address] for node, address in self.addresses.items()}
        self.meta.pop("workload_ts", None)
        return names

    def make(self):
        """Returns the meta data and events of the noisy dump, and the node of each host."""
        if self.strength.late:
            self.begin_late()
        originals = {node: node for node in self.nodes}
        if self.strength.twelve:
            self.twelve_hosts()
        self.failures()
        self.process_ends()
        self.silences()
        if self.strength.second:
            self.other_incident()
        hosts = dict(originals)
        if self.strength.renamed:
            names = self.rename()
            hosts = {names[node]: node for node in originals}
        self.events.sort(key=lambda event: event["ts"])
        self.meta.update(nodes=self.nodes, addresses=[f"{node}={address}" for node, address in self.addresses.items()],
                         begin_ns=self.end - DAY)
        for key in ("handshakes", "clock", "trigger"):
            self.meta.pop(key, None)
        return self.meta, self.events, hosts


def add_noise(text, profile, strength, seed, service_port, rename=True):
    """Adds noise to a dump in JSON Lines. Returns the new JSON Lines, and the node of each host."""
    head, *lines = text.splitlines()
    events = [json.loads(line) for line in lines if line]
    meta, events, hosts = Noise(json.loads(head)["meta"], events, profile, strength, seed, service_port, rename).make()
    return "\n".join([json.dumps({"meta": meta}), *map(json.dumps, events)]) + "\n", hosts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strength", type=int, choices=sorted(STRENGTHS), required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", required=True,
                        help="profile of the nodes; some noise consists of failures of calls that the nodes make")
    parser.add_argument("--service-port", type=int, default=7000,
                        help="port at which the nodes serve (default: %(default)s)")
    options = parser.parse_args()
    with open(options.profile, encoding="utf-8") as file:
        profile = json.load(file)
    text, _ = add_noise(sys.stdin.read(), profile, options.strength, options.seed, options.service_port)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
