#!/usr/bin/env bash
# A service that 'rose init' drafts runs as another user and attacks what the drafted command does as root when it is
# started again: it puts links where that command makes and mounts folders.
. "$(dirname "$0")/common.bash"
cd "$work"
python=/usr/bin/python3
setpriv --reuid nobody --clear-groups $python -c '' || skip "no Python for the user nobody"
mkdir -p bin srv/run state victim/folder
echo roots > victim/tool
chmod 755 victim/tool
chown -R nobody srv state
victim() { find victim -printf '%P %u %m\n' | sort; cat victim/tool; }
before=$(victim)
cat > bin/service.py <<PY
import os, socket, time
work = "$work"
log = open(work + "/state/log", "a")
pid = open(work + "/srv/run/pid", "a")
door = socket.socket()
door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
door.bind(("0.0.0.0", 7345))
door.listen()
print("up", flush=True)
def attack(step):
    try: step()
    except OSError as error: print(error, flush=True)
if "ROSE_RUN_DIR" in os.environ:
    own = os.environ["ROSE_RUN_DIR"] + "/" + os.environ["ROSE_NODE"]
    if not os.path.exists(work + "/victim/tool"): print("taken", flush=True)
    if open(work + "/kind").read() == "layers":
        for changes in [own + "/over" + work + "/srv.layers/changes", own + ".over/layers" + work + "/srv/changes"]:
            attack(lambda: os.symlink(work + "/victim", changes + "/run"))
    else:
        attack(lambda: os.rename(own + ".over", own + ".aside"))
        for over in [own + "/over", own + ".over/over"]:
            attack(lambda: os.rename(over, over + ".aside"))
            attack(lambda: os.makedirs(over + work))
            attack(lambda: os.symlink(work + "/victim/folder", over + work + "/state"))
    print("attacked", flush=True)
time.sleep(1000)
PY
cat > start.sh <<START
cd $work/srv
exec env -i PATH=/usr/bin:/bin setpriv --reuid nobody --regid nogroup --clear-groups $python $work/bin/service.py
START
cat > workload.sh <<'WORKLOAD'
#!/bin/sh
for i in $(seq 200); do
  [ "$(grep -c '^up' service/stdout.log)" -lt 2 ] || exit 0
  ! grep -q 'leads to' service/stderr.log || exit 0
  sleep 0.1
done
WORKLOAD
chmod +x workload.sh
# Not as a child of this shell, which would be drafted in its place.
setsid -f bash start.sh < /dev/null > /dev/null 2>&1
until_true 20 test -e srv/run/pid
service=$(pgrep -f "^$python $work/bin/service.py")
expect 0 "$rose" init --pid "$service" -o rose.toml
kill -KILL "$service"
grep -q "^lay_over $work/srv" rose.toml || fail "its working folder is not drafted"
grep -q "\"$work/state\"" rose.toml || fail "the folder that it writes to is not drafted"
sed -i -e "s|^command = \"?\"|command = [\"$work/workload.sh\"]|" -e 's/^# restart =/restart =/' \
  -e 's/^# \[oracle\]/[oracle]/' -e 's/^# command = \["grep"/command = ["grep"/' rose.toml
printf 'version = 1\n[[fault]]\nid = "f"\nnode = "service"\nkind = "crash"\nwhen = [ { log = "^attacked" } ]\n' \
  > schedule.toml
for kind in over layers; do
  printf %s $kind > kind
  rm -rf report
  timeout 120 "$rose" replay schedule.toml -c rose.toml --runs 1 --keep --report report > out 2> err || true
  logs=report/runs/run-0001/service
  grep -q '^attacked' $logs/stdout.log || { fail "$kind: no attack"; tail -5 err $logs/*.log >&2; }
  grep -q 'leads to' $logs/stderr.log || [ "$(grep -c '^up' $logs/stdout.log)" -ge 2 ] ||
    { fail "$kind: the service was not started again"; tail -5 err $logs/*.log >&2; }
  [ "$(victim)" = "$before" ] ||
    { fail "$kind: files of root have changed:"; diff <(echo "$before") <(victim) >&2 || true; }
  ! grep -q '^taken' $logs/stdout.log || fail "$kind: a folder of the service was mounted over one of root"
done
nothing_left "after all"
