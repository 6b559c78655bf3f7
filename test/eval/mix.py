"""Mixes windows that were recorded on ordinary hosts into the dumps of incidents. A window's events are assigned to one
of the incident's nodes and keep their distances in time; the window surrounds the incident. Only repetitions of events
are left out."""
import collections
import json
import math
import random
import re

WINDOWS = 4  # number of windows for each case
MOST = 40  # most occurrences of the same event in a window
FOLDERS = 4  # events count as the same if this many folders of their paths are equal
SECOND = 1_000_000_000
LATEST = 1200  # latest end, in seconds after the incident's dump
PIDS = 100_000  # this is added to the process ids of each further window


def read_lines(text):
    head, *lines = text.splitlines()
    return json.loads(head)["meta"], [json.loads(line) for line in lines if line]


def write_lines(meta, events):
    return "\n".join([json.dumps({"meta": meta}), *map(json.dumps, events)]) + "\n"


def thinned(events):
    """Keeps a limited number of events with the same call, result and place, evenly spaced: a tracer with a profile
    would not keep usual calls at all, and a thousand failures of one loop are one observation."""
    alike = collections.defaultdict(list)
    for i, event in enumerate(events):
        place = "/".join((event.get("path") or "").split("/")[:FOLDERS])
        key = (event["type"], event.get("syscall"), event.get("errno"), place, event.get("state"))
        alike[key].append(i)
    kept = set()
    for places in alike.values():
        step = max(1, -(-len(places) // MOST))
        kept.update(places[::step])
    return [event for i, event in enumerate(events) if i in kept]


def elsewhere(events):
    """Replaces the host's peers by addresses that are reserved for documentation."""
    known = {}

    def other(match):
        if match[0].startswith(("127.", "0.", "192.0.2.")):
            return match[0]
        return known.setdefault(match[0], f"198.51.100.{len(known) % 254 + 1}")

    keys = ("peer", "src", "dst")
    return [
        {**event, **{key: re.sub(r"\d+\.\d+\.\d+\.\d+", other, event[key]) for key in keys if event.get(key)}}
        for event in events
    ]


def mixed(dumps, windows, seed):
    """Mixes windows into `dumps`, each of which is given as name, meta and events, and returns them. A window begins
    before the incident and may end before or after it. Events after the time of the dump are left out. Half of the
    dumps get the time of the incident's dump, as if a trigger had caused them. The others get a time up to LATEST
    later, as if a person had requested them."""
    dice = random.Random(f"windows of {seed}")
    names = dice.sample(sorted(windows), min(WINDOWS, len(windows)))
    begin = min(event["ts"] for _, _, events in dumps for event in events)
    end = max(event["ts"] for _, _, events in dumps for event in events)
    delay = random.Random(f"delay of {seed}")
    if delay.random() < 0.5:
        end += int(SECOND * math.exp(delay.uniform(0, math.log(LATEST))))
    out = [(name, dict(meta), list(events)) for name, meta, events in dumps]
    for number, window in enumerate(names, 1):
        events = windows[window][1]
        first, last = events[0]["ts"], events[-1]["ts"]
        shift = begin - first - int(dice.uniform(0, 0.8) * (last - first))
        _, meta, to = dice.choice(out)
        nodes = [node for node in meta.get("nodes") or [] if node] or sorted({event["node"] for event in to})
        node = dice.choice(nodes)
        for event in events:
            ts = event["ts"] + shift
            if ts > end:
                continue
            moved = {**event, "ts": ts, "node": node}
            for key in ("pid", "tid"):
                if moved.get(key):
                    moved[key] += PIDS * number
            to.append(moved)
    for _, meta, events in out:
        events.sort(key=lambda event: event["ts"])
        meta["begin_ns"] = min(meta.get("begin_ns") or begin, events[0]["ts"])
        meta["end_ns"] = max(meta.get("end_ns") or end, end)
        for key in ("workload_ts", "handshakes", "clock", "trigger"):  # a dump from production has no workload
            meta.pop(key, None)
    return out
