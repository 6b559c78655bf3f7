#!/usr/bin/python3
"""A message queue on one host: PUT stores a message until a DONE removes it. Every request that was answered with "ok"
is in the log file, so a restarted server continues where it stopped. Usage: spool.py ADDRESS PORT FOLDER"""
import hashlib
import json
import os
import socket
import sys

COMPACT_AFTER = 900  # the log is compacted when it has more records; most of them concern removed messages


class Spool:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.messages = {}
        self.records = 0
        new = self.path("spool.new")
        if os.path.exists(new):
            print("throwing away an unfinished compaction", file=sys.stderr, flush=True)
            os.unlink(new)
        self.log = open(self.path("spool.log"), "a+", encoding="utf-8")
        self.log.seek(0)
        for line in self.log:
            self.apply(json.loads(line))
        print(f"{len(self.messages)} messages in the spool", file=sys.stderr, flush=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def apply(self, record):
        self.records += 1
        if record["op"] == "put":
            self.messages[record["id"]] = record["body"]
        else:
            self.messages.pop(record["id"], None)

    def note(self, record):
        self.log.write(json.dumps(record) + "\n")
        self.log.flush()
        self.apply(record)
        if self.records > COMPACT_AFTER:
            self.compact()

    def compact(self):
        """Replaces the log by one that contains only the messages that still exist."""
        with open(self.path("spool.new"), "w", encoding="utf-8") as new:
            for number, body in self.messages.items():
                new.write(json.dumps({"op": "put", "id": number, "body": body}) + "\n")
            new.flush()
            os.fsync(new.fileno())
        # The old log is removed first, because on some systems a rename fails if the target exists.
        self.log.close()
        os.unlink(self.path("spool.log"))
        self.adopt()

    def adopt(self):
        """Reads the new log as a restart would, compares it with the state, and makes it the log."""
        there = {}
        with open(self.path("spool.new"), encoding="utf-8") as new:
            for line in new:
                record = json.loads(line)
                there[record["id"]] = hashlib.pbkdf2_hmac("sha256", record["body"].encode(), b"spool", 60)
        for number, body in self.messages.items():
            if there.get(number) != hashlib.pbkdf2_hmac("sha256", body.encode(), b"spool", 60):
                sys.exit(f"message {number} was not written as it is")
        os.rename(self.path("spool.new"), self.path("spool.log"))
        self.log = open(self.path("spool.log"), "a", encoding="utf-8")
        self.records = len(self.messages)
        print(f"compacted to {self.records} records", file=sys.stderr, flush=True)

    def answer(self, request):
        if request["op"] == "list":
            return sorted(self.messages)
        self.note(request)
        return "ok"


def main():
    spool = Spool(sys.argv[3])
    listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
    while True:
        client, _ = listener.accept()
        with client, client.makefile("rw", encoding="utf-8") as stream:
            try:
                for line in stream:
                    stream.write(json.dumps(spool.answer(json.loads(line))) + "\n")
                    stream.flush()
            except ConnectionError:
                pass


main()
