# victim.c in Python.
import os, sys, time

while not os.path.exists(sys.argv[2]):
    time.sleep(0.002)
file = open(sys.argv[1], "rb", buffering=0)
for n in range(1, 6):
    try:
        file.read(1)
        print(f"read {n} = ok", flush=True)
    except OSError as e:
        print(f"read {n} = {e.strerror}", flush=True)
print("done", flush=True)
while True:
    time.sleep(3600)
