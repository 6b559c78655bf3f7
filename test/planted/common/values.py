"""Code that the workloads and oracles of the replicated lists share: sends values to the leader, and checks whether
they are still there."""
import time

from client import NODES, Client, cannot_tell, verdict


def members(timeout):
    return [Client(node, timeout=timeout) for node in NODES]


def put_values(group, seconds):
    """Sends values to all members in turn, because clients do not know the leader; acked.txt lists the stored ones."""
    with open("acked.txt", "w") as acked:
        end = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end:
            for member in group:
                number += 1
                if member.ask(f"put v{number}") == "ok":
                    print(f"v{number}", file=acked, flush=True)
            time.sleep(0.02)


def are_values_gone():
    """The oracle: reports whether values are missing that were acknowledged."""
    group = members(2)
    states = [member.insist("state") for member in group]
    acked = open("acked.txt").read().split()
    if not acked or len(set(states)) != 1 or None in states:
        cannot_tell(f"{len(acked)} values stored, the group is not at rest: {states}")
    answers = [group[0].insist(f"has {value}") for value in acked]
    if None in answers:
        cannot_tell("the first member does not answer")
    verdict("no" in answers, f"{len(acked)} values stored, {answers.count('no')} of them gone")
