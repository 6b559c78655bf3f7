#!/usr/bin/env bash
# A service that 'rose init' drafts runs as another user. When it is restarted, it attacks what the drafted command does
# as root: it puts links where that command creates and mounts folders, at any moment while the command does that.
. "$(dirname "$0")/common.bash"
cd "$work"
python=/usr/bin/python3
setpriv --reuid nobody --clear-groups $python -c '' || skip "no Python for the user nobody"
hostile=$build/test/programs/hostile
[ -x "$hostile" ] || hostile=${ROSE_PROGRAMS:?}/hostile
mkdir -p bin theirs/srv/run theirs/log state victim/folder
echo roots > victim/tool
chmod 755 victim/tool
chown -R nobody state theirs
victim() { find victim -printf '%P %u %m\n' | sort; cat victim/tool; }
before=$(victim)
cat > bin/service.py <<PY
import os, socket, time
work = "$work"
log = open(work + "/state/log", "a")
pid = open(work + "/theirs/srv/run/pid", "a")
files = [open(work + "/theirs/" + name, "a") for name in ["srv/data", "log/log", "file"]]
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
        attack(lambda: os.symlink(work + "/victim", own + ".over/layers/1/changes/run"))
        # Exchange a folder for a link through the overlay, and not in the layer.
        attack(lambda: os.rename("data", "data.aside"))
        attack(lambda: os.symlink(work + "/victim/tool", "data"))
    else:
        attack(lambda: os.rename(own + ".over", own + ".aside"))
        for over in [own + "/over", own + ".over/over", own + ".over/empty"]:
            attack(lambda: os.rename(over, over + ".aside"))
            attack(lambda: os.makedirs(over + work))
            attack(lambda: os.symlink(work + "/victim/folder", over + work + "/state"))
    print("attacked", flush=True)
time.sleep(1000)
PY
cat > start.sh <<START
cd $work/theirs/srv
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
# Do not start the service as a child of this shell, because then the shell would be drafted instead of the service.
setsid -f bash start.sh < /dev/null > /dev/null 2>&1
until_true 20 test -e theirs/srv/run/pid
service=$(pgrep -f "^$python $work/bin/service.py")
expect 0 "$rose" init --pid "$service" -o rose.toml
kill -KILL "$service"
grep -q "^lay_over 1 $work/theirs/srv" rose.toml || fail "the service's working folder is not drafted"
grep -q "\"$work/state\"" rose.toml || fail "the folder that the service writes to is not drafted"
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

# A run is refused if the service's user can replace the run's folder. That the command, which starts as root, changes
# to this user by itself makes no difference.
grep -q '^user *= "nobody"' rose.toml || fail "the user is not drafted"
grep -q '^begins_as_root *= true' rose.toml || fail "the draft does not say that the command begins as root"
# The owner of rose.toml is trusted, but the service must not run as that user either.
chown nobody rose.toml
expect 2 "$rose" replay schedule.toml -c rose.toml --runs 1 --report theirs/report
chown root rose.toml
says err "its user nobody may replace entries of .*theirs"
rm -rf theirs/report

# Folders and files are exchanged at any moment while the command mounts over them. The mounts of the command are
# listed, whether or not it ends. If it has mounted over a file of root, it must not have executed anything after that.
cat > begin.py <<'PY'
import os, subprocess, sys, tomllib
work, rounds = sys.argv[1], int(sys.argv[2])
node = tomllib.load(open("rose.toml", "rb"))["node"][0]
words = [word.replace("$${", "${") for word in node["command"]]
words = words[words.index("--mount") + 1 : words.index(work + "/bin/service.py") - 1] + ["true"]
listed = '"$@"; echo "ended with $?"; while read -r line; do echo "$line"; done < /proc/self/mountinfo'
os.makedirs("run/service", exist_ok=True)
begun = refused = 0
for _ in range(rounds):
    done = subprocess.run(["unshare", "--mount", "sh", "-c", listed, "sh"] + words, cwd="run/service",
                          capture_output=True, text=True,
                          env={"ROSE_RUN_DIR": work + "/run", "ROSE_NODE": "service", "PATH": os.environ["PATH"]})
    ended, *mounts = done.stdout.splitlines()
    places = [line.split()[4] for line in mounts]
    wrong = [place for place in places if place.startswith(work + "/victim")]
    if work + "/victim/folder" in wrong or wrong and (places[-1:] != wrong or "leads to" not in done.stderr):
        sys.exit(f"{ended}, mounted over root's {wrong}: {done.stderr}")
    begun += ended == "ended with 0"
    refused += ended != "ended with 0"
print(f"begun {begun} refused {refused}")
PY
race() {
  local target=$1 named=$2
  "$hostile" flip "$target" "$named" &
  local attacker=$!
  python3 begin.py "$work" 100 > out 2> err || { fail "$named is exchanged by a link to $target:"; cat err >&2; }
  kill $attacker
  wait $attacker 2> /dev/null || true
  grep -qs 'refused [1-9]' out || [ -s err ] || fail "$named: no link was met, so the test proves nothing: $(cat out)"
  [ ! -e "$named.aside" ] || { rm -f "$named"; mv "$named.aside" "$named"; }
  [ "$(victim)" = "$before" ] || { fail "$named: files of root have changed"; diff <(echo "$before") <(victim) >&2; }
}
python3 begin.py "$work" 1 > out
says out 'begun 1 refused 0'
race "$work/victim/folder" "$work/theirs/srv"
race "$work/victim/folder" "$work/theirs/log"
race "$work/victim/tool" "$work/theirs/file"
nothing_left "after all"
