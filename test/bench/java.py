#!/usr/bin/env python3
"""Measures what watching Java methods costs a server, with ZooKeepers that have rose's agent and others that do not.

    test/bench/java.py --rose build/release/rose [--methods 1000] [--rounds 30] [--seconds 2] [--warm 60]

Three servers run all the time, each on its own port and in its own folder: one without the agent, a second one without
it, and one whose methods are watched, with a tracer attached. After a warm-up, in which their JVMs compile their code,
they serve pipelined reads and writes in turn, each for some seconds, so that a noisy machine affects all of them
equally. Prints throughput and processor time per request of the second and third server relative to the first, as the
median of the rounds with its 95 % interval. The second server shows the noise. --methods gives the number of watched
methods; a profile of the same load lists them as infrequent. """
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

from measure import Unable, median_interval

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "rose"
SYSTEM = "zookeeper"
TICKS = os.sysconf("SC_CLK_TCK")
CONFIG = """name = "bench-java"
[deployment]
network = "host"
[[node]]
name = "n1"
command = ["/bin/sh", "%(folder)s/server"]
functions = ["org.apache.zookeeper.*"]
[workload]
command = ["%(python)s", "%(script)s", "--load", "%(port)d", "--seconds", "2", "--rounds", "5"]
timeout = "120s"
[oracle]
command = ["/bin/false"]
"""
SERVER = """#!/bin/sh
exec java -Xmx256m -Dlogback.configurationFile=%(folder)s/logback.xml -cp '%(jars)s/*' org.apache.zookeeper.server.ZooKeeperServerMain %(folder)s/zoo.cfg
"""
ZOO = "dataDir=%(folder)s/data\nclientPort=%(port)d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\nforceSync=no\nmaxSessionTimeout=3600000\n4lw.commands.whitelist=srvr\n"


class Load:
    """Connections to one server, each with a batch of pending requests: reads and writes of 100 bytes alternate."""
    CONNECTIONS, BATCH, NODES = 4, 200, 20
    SESSION_MS = 3_600_000  # long, because a server gets no requests while others are measured

    def __init__(self, port):
        self.sockets = [self.connect(port) for _ in range(self.CONNECTIONS)]
        anyone = struct.pack(">ii", 1, 31) + self.text("world") + self.text("anyone") + struct.pack(">i", 0)
        for i in range(self.NODES):
            self.sockets[0].sendall(self.request(i, 1, self.text(f"/bench{i}") + self.data() + anyone))
        self.answers(self.sockets[0], self.NODES)
        batch = []
        for i in range(self.BATCH):
            path = self.text(f"/bench{i % self.NODES}")
            batch.append(self.request(i, 4, path + b"\0") if i % 2
                         else self.request(i, 5, path + self.data() + struct.pack(">i", -1)))
        self.batch = b"".join(batch)

    @staticmethod
    def text(words):
        return struct.pack(">i", len(words)) + words.encode()

    @staticmethod
    def data():
        return struct.pack(">i", 100) + bytes(100)

    @staticmethod
    def request(number, kind, body):
        return struct.pack(">iii", len(body) + 8, number, kind) + body

    def connect(self, port):
        client = socket.create_connection(("127.0.0.1", port), timeout=60)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = struct.pack(">iqiqi", 0, 0, self.SESSION_MS, 0, 16) + bytes(16) + b"\0"
        client.sendall(struct.pack(">i", len(body)) + body)
        self.answers(client, 1)
        return client

    @staticmethod
    def answers(client, wanted):
        rest = b""
        while wanted > 0:
            more = client.recv(1 << 16)
            if not more:
                raise Unable("a ZooKeeper closed its connection")
            data, at = rest + more, 0
            while len(data) - at >= 4:
                length = int.from_bytes(data[at:at + 4], "big")
                if len(data) - at - 4 < length:
                    break
                at += 4 + length
                wanted -= 1
            rest = data[at:]

    def serve(self, seconds):
        """Returns (requests, seconds)."""
        began, done = time.monotonic(), 0
        for client in self.sockets:
            client.sendall(self.batch)
        while time.monotonic() < began + seconds:
            for client in self.sockets:
                self.answers(client, self.BATCH)
                client.sendall(self.batch)
                done += self.BATCH
        for client in self.sockets:
            self.answers(client, self.BATCH)
            done += self.BATCH
        return done, time.monotonic() - began


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_answer(port, seconds=90):
    """Waits until the server reports that it serves. A connection made before the server has opened its database is
    never answered."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2) as client:
            client.settimeout(2)
            client.sendall(b"srvr")
            if b"Mode:" in client.makefile("rb").read():
                return
        time.sleep(0.2)
    raise Unable(f"no ZooKeeper at port {port} within {seconds} s")


class Server:
    def __init__(self, folder, jars, agent=None):
        self.port = free_port()
        write_server(folder, jars, self.port)
        env = dict(os.environ)
        if agent:
            env["JAVA_TOOL_OPTIONS"] = f'"-agentpath:{agent}/rose-jvm.so={agent}/rose-jvm.spec"'
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(["/bin/sh", str(folder / "server")], env=env, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        self.load = None

    def ready(self):
        await_answer(self.port)
        self.load = Load(self.port)

    def ticks(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def turn(self, seconds):
        """Returns (requests per second, processor seconds per request)."""
        before = self.ticks()
        done, took = self.load.serve(seconds)
        return done / took, (self.ticks() - before) / TICKS / done

    def stop(self):
        self.process.kill()
        self.process.wait()


def write_server(folder, jars, port):
    folder.mkdir(parents=True)
    names = {"folder": folder, "jars": jars, "port": port}
    (folder / "zoo.cfg").write_text(ZOO % names)
    (folder / "server").write_text(SERVER % names)
    (folder / "logback.xml").write_text('<configuration><root level="WARN"/></configuration>\n')


def watched_methods(rose, work, jars, count):
    """Returns the folder of an agent that watches `count` methods, which a profile of this load lists as infrequent."""
    port = free_port()
    write_server(work / "profiled", jars, port)
    (work / "rose.toml").write_text(CONFIG % {"folder": work / "profiled", "python": sys.executable,
                                              "script": pathlib.Path(__file__).resolve(), "port": port})
    profile = work / "profile.json"
    subprocess.run([rose, "profile", "-c", "rose.toml", "--runs", "1", "-o", profile], cwd=work, check=True,
                   stdout=subprocess.DEVNULL)
    learnt = json.loads(profile.read_text())
    rare = [one for one in learnt["functions"] if one["infrequent"]]
    if len(rare) < count:
        raise Unable(f"the profile knows {len(rare)} methods that are entered rarely, and {count} are asked for")
    learnt["functions"] = rare[:count]
    profile.write_text(json.dumps(learnt))
    agent = work / "agent"
    agent.mkdir()
    subprocess.run([rose, "trace", "--java-agent", agent, "--profile", profile], check=True, stdout=subprocess.DEVNULL)
    return agent, profile


def measure(options, work, stack):
    jars = CACHE / "systems" / SYSTEM / "server"
    subprocess.run([ROOT / "examples/systems" / SYSTEM / "install"], check=True, stdout=subprocess.DEVNULL)
    agent, profile = watched_methods(options.rose, work, jars, options.methods)
    servers = []
    for name in ("without", "without-again", "watched"):
        servers.append(Server(work / name, jars, agent if name == "watched" else None))
        stack.callback(servers[-1].stop)
    for server in servers:
        server.ready()
    tracer = subprocess.Popen([options.rose, "trace", "--pid", str(servers[2].process.pid), "--java-agent", agent,
                               "--profile", profile,
                               "--control", work / "control.sock", "-o", work / "dump.bin"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    stack.callback(lambda: (tracer.terminate(), tracer.wait()))
    for server in servers:
        server.load.serve(options.warm)
    rounds = []
    for number in range(options.rounds):
        turn = [None] * len(servers)
        for which in (range(len(servers)) if number % 2 else reversed(range(len(servers)))):
            turn[which] = servers[which].turn(options.seconds)
        rounds.append(turn)
    if tracer.poll() is not None:
        raise Unable("the tracer ended meanwhile")
    print(f"{options.methods} methods watched; {options.rounds} rounds of {options.seconds} s after {options.warm} s "
          f"to warm up; "
          f"without the agent {sum(turn[0][0] for turn in rounds) / len(rounds):,.0f} requests a second")
    for which, name in ((1, "a second one without"), (2, "watched and traced")):
        for what, title in ((0, "throughput"), (1, "processor time a request")):
            middle, low, high = median_interval([turn[which][what] / turn[0][what] for turn in rounds])
            print(f"  {name + ', ' + title:<46} {middle:.3f}  ({low:.3f}-{high:.3f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rose", help="the rose to measure")
    parser.add_argument("--methods", type=int, default=1000, help="watched (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=30, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=2, help="a server's turn (default: %(default)s)")
    parser.add_argument("--warm", type=float, default=60, help="seconds of load before, each (default: %(default)s)")
    parser.add_argument("--load", type=int, help=argparse.SUPPRESS)  # the workload of the profile: the server's port
    options = parser.parse_args()
    if options.load:
        await_answer(options.load)
        load = Load(options.load)
        for _ in range(options.rounds):
            load.serve(options.seconds)
        return 0
    if not options.rose:
        parser.error("which rose? --rose build/release/rose")
    options.rose = str(pathlib.Path(options.rose).resolve())
    if not shutil.which("java"):
        raise Unable("no java: apt install default-jre-headless")
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rose-java-")))
        work.chmod(0o711)
        measure(options, work, stack)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unable as why:
        print(f"java.py: {why}", file=sys.stderr)
        sys.exit(3)
