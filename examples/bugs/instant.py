"""For incidents that must hit a moment of some milliseconds: waits for this moment, then kills a process at once."""
import os
import signal
import sys
import time


def until(what, seconds, every=0.0002):
    """Calls `what` every `every` seconds until its result is true, and returns it; exits after `seconds` seconds."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    end = time.monotonic() + seconds
    while not (found := what()):
        if time.monotonic() >= end:
            sys.exit("incident: it did not come to that")
        time.sleep(every)
    return found


def kill(node):
    with open(os.environ["ROSE_PIDFILE_" + node]) as file:
        os.kill(int(file.read()), signal.SIGKILL)
    print("incident: killed", node)
