#!/usr/bin/python3
"""Gives jobs to workers, each job once. Three nodes elect a leader, which numbers the jobs and waits until another node
has confirmed each number before it answers. For maintenance, the leader can be asked to hand over its role. Requests
and answers are datagrams. Usage: dispatcher.py OWN-ADDRESS ADDRESSES FOLDER"""
import os
import random
import select
import socket
import sys
import time

PORT = 7000
BEAT = 0.04
PATIENCE = 0.35      # seconds that a follower waits for the leader; a random time of up to the same length is added
LEASE = 0.25         # a leader without a message from a follower for this long has lost its lease
HANDOVER = 0.4       # seconds that a hand-over may take
LEDGER_ENTRIES = 25000


class Node:
    def __init__(self, own, addresses, folder):
        self.own = own
        self.peers = [address for address in addresses if address != own]
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((own, PORT))
        self.role = "follower"
        self.term = self.voted = 0
        self.job = 0
        self.waiting = {}   # job -> worker
        self.heard = 0.0
        self.wait_anew()

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def wait_anew(self):
        self.deadline = time.monotonic() + PATIENCE * (1 + random.random())

    def send(self, to, *words):
        self.socket.sendto(" ".join(map(str, words)).encode(), to)

    def send_peers(self, *words):
        for peer in self.peers:
            self.send((peer, PORT), *words)

    def run(self):
        self.say("listening")
        while True:
            now = time.monotonic()
            if self.role == "leader" and now - self.heard > LEASE:
                self.say("heard of nobody for too long")
                self.follow(self.term)
            if now >= self.deadline:
                if self.role == "leader":
                    self.beat()
                else:
                    self.stand_for_election()
            message = self.receive(self.deadline - time.monotonic())
            # A leader whose lease has ended, as after a pause, must not give out jobs: another node may lead now.
            if message and not (self.role == "leader" and time.monotonic() - self.heard > LEASE
                                and message[0] == "claim"):
                self.handle(*message)

    def receive(self, seconds):
        """Returns the verb, the sender and the numbers of a message, or nothing if none arrived in time."""
        if not select.select([self.socket], [], [], max(0.0, seconds))[0]:
            return None
        data, sender = self.socket.recvfrom(200)
        verb, *numbers = data.decode().split()
        return (verb, sender, *map(int, numbers))

    # Elections.

    def follow(self, term):
        self.role = "follower"
        self.term = term
        self.waiting.clear()
        self.wait_anew()

    def stand_for_election(self):
        self.role = "candidate"
        self.term += 1
        self.voted = self.term
        self.wait_anew()
        self.send_peers("vote", self.term, self.job)

    def lead(self, term):
        self.role = "leader"
        self.term = term
        self.heard = time.monotonic()
        self.say(f"leader of term {self.term}, from job {self.job} on")
        self.beat()

    def beat(self):
        self.deadline = time.monotonic() + BEAT
        self.send_peers("beat", self.term, self.job)

    # The hand-over.

    def hand_over(self):
        deadline = time.monotonic() + HANDOVER
        successor = random.choice(self.peers)
        self.role = "retiring"
        with open(os.path.join(self.folder, "handover"), "w", encoding="ascii") as note:
            note.write(f"{successor} {self.term}\n")
        self.send((successor, PORT), "lead", self.term + 1, self.job)
        while time.monotonic() < deadline:
            message = self.receive(deadline - time.monotonic())
            if message and message[0] == "leads" and message[2] == self.term + 1:
                self.say(f"{successor} leads now")
                self.follow(self.term + 1)
                return
        # No node took over, so this node remains the leader. It leads in a new term, so that all nodes accept its
        # messages.
        self.say(f"{successor} did not take over")
        self.lead(self.term + 1)

    def check_ledger(self):
        """Reads which jobs have been dispatched and can be billed. A node does this before it takes over from the
        leader."""
        total = 0
        for entry in range(LEDGER_ENTRIES):
            total = (total * 31 + entry * self.job) % 1000003
        return total

    # Messages.

    def handle(self, verb, sender, *numbers):
        if verb == "claim":
            if self.role == "leader":
                self.waiting[self.job] = sender
                self.send_peers("assign", self.term, self.job)
                self.job += 1
            else:
                self.send(sender, "elsewhere", 0)
            return
        if verb == "retire":
            if self.role == "leader":
                self.hand_over()
            return
        term, job = numbers
        if term < self.term:
            return
        if verb == "lead":
            self.job = max(self.job, job)
            self.check_ledger()
            self.voted = term
            self.lead(term)
            self.send(sender, "leads", term, job)
        elif verb == "vote":
            if term > self.term:
                self.follow(term)
            if self.voted < term and job >= self.job:
                self.voted = term
                self.wait_anew()
                self.send(sender, "yes", term, 0)
        elif verb == "yes":
            if self.role == "candidate":
                self.lead(term)
        elif verb in ("beat", "assign"):
            # A term is assumed to have only one leader, so a leader ignores such messages of its own term.
            if self.role == "leader" and term == self.term:
                return
            self.follow(term)
            if verb == "assign":
                self.job = job + 1
                self.send(sender, "assigned", term, job)
            else:
                self.job = max(self.job, job)
                self.send(sender, "heard", term, job)
        elif verb in ("assigned", "heard"):
            self.heard = time.monotonic()
            if verb == "assigned" and job in self.waiting:
                self.send(self.waiting.pop(job), "job", job)


Node(sys.argv[1], sys.argv[2].split(","), sys.argv[3]).run()
