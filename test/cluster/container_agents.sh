#!/usr/bin/env bash
# Tests the agents for Python and Java in containers that run as another user. Functions and methods are found, and the
# variables of the image are kept. The container sees only the agents' folders of the run's folder, and cannot change
# them.
. "$(dirname "$0")/common.bash"
. "$here/engine.bash"
export TMPDIR=$work
# This image has no files of its own. It uses the interpreters of this machine.
mkdir -p "$work"/root/{usr,etc,tmp,opt,case}
for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$work/root/$folder"; done
echo 'keeper:x:4321:4321::/:/bin/sh' > "$work/root/etc/passwd"
volumes='"/usr:/usr:ro"'

cp -r "$here/../planted/python-crash-between-syscalls" "$work/case"
cp -r "$here/../planted/common" "$work/common"
chmod -R a+rX "$work/case" "$work/common"
cd "$work/case"
mkdir own
cat > own/sitecustomize.py <<PY
import os

print("own", os.environ["PYTHONPATH"], flush=True)
for folder in ("$work/report", os.environ["ROSE_PYTHON_STATE"] + "/../.."):
    print("run folder:", sorted(os.listdir(folder)) if os.path.isdir(folder) else "absent", flush=True)
try:
    open(os.environ["ROSE_PYTHON_AGENT"] + ".other", "w")
except OSError as error:
    print("agent's folder:", error.strerror, flush=True)
PY
chmod -R a+rX own
import_image "$work/root" localhost/rosepython:1 --change 'USER keeper' --change 'ENV PYTHONPATH=/case/own' \
  --change 'ENTRYPOINT ["/usr/bin/python3"]'
python3 - <<PY
import re
text = open("rose.toml").read()
text = re.sub(r'command = \[.*spool.py.*\n', 'image   = "localhost/rosepython:1"\n'
              'command = ["/case/spool.py", "\${ip}", "7000", "/data"]\n'
              'volumes = [$volumes, "$work/case:/case:ro", "$work/common:/common:ro", "\${dir}/data:/data"]\n', text)
open("rose.toml", "w").write(text.replace("[deployment]", '[deployment]\nengine  = $engine_toml'))
PY
cat > schedule.toml <<'TOML'
version = 1
[[fault]]
id = "kill"
kind = "crash"
node = "spool"
when = [ { node = "spool", syscall = "unlink", path = "*/spool.log", result = "ok" } ]
TOML
expect 0 "$rose" explain schedule.toml -c rose.toml --runs 4 --jobs 2 --no-deepen -o why.md --report report --keep \
  --json
says err 'functions of Python in container spool'
json_is 'j["suspects"][0]["function"]' spool.Spool.compact
json_is '[f["function"] for f in j["stacks"][0]["frames"]][1:3]' "['spool.Spool.compact', 'spool.Spool.note']"
log=$(ls report/runs/run-*/spool/stdout.log | head -1)
grep -q "^own .*/rose.python/site:/case/own$" "$log" || fail "PYTHONPATH of the image was lost: $(head -3 "$log")"
grep -q "^run folder: \['rose.python'\]$" "$log" || fail "the container sees more of the run: $(head -3 "$log")"
grep -q "^agent's folder: Read-only file system$" "$log" || fail "the container can write the agent's folder"
nothing_left "after an explanation of Python in a container"
no_containers "after an explanation of Python in a container"

# Java. The launcher is also in the image, where rose looks for it. The configuration of the JVM is outside /usr.
classes=$build/test/programs/java
[ -e "$classes/compiled" ] && java=$(command -v java) || exit 0
cd "$work"
cp -r "$classes" classes
chmod -R a+rX classes
for link in "$(dirname "$(dirname "$(readlink -f "$java")")")"/conf/*; do
  folder=/$(readlink -f "$link" | cut -d/ -f2,3)
  case $folder in /etc/*) volumes="\"$folder:$folder:ro\", \"/usr:/usr:ro\"" ;; esac
done
mkdir -p "$work/root$(dirname "$(readlink -f "$java")")"
cp "$(readlink -f "$java")" "$work/root$(readlink -f "$java")"
import_image "$work/root" localhost/rosejava:1 --change 'USER keeper' --change 'ENV JAVA_TOOL_OPTIONS=-Dof=theirs'
cat > jvm.toml <<TOML
name = "jvm"
[deployment]
engine = $engine_toml
[[node]]
name = "n1"
image = "localhost/rosejava:1"
command = ["$(readlink -f "$java")", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", "/case",
           "org.rose.test.Victim", "step", "40", "1"]
volumes = [$volumes, "$work/classes:/case:ro"]
functions = ["org.rose.test.*"]
[workload]
command = ["sh", "-c", "until grep -q 'step 22' n1/stdout.log; do sleep 0.05; done; sleep 0.2"]
timeout = "60s"
[oracle]
command = ["sh", "-c", '[ "\$(tail -n 1 n1/stdout.log)" = "step 22" ] && grep -q Dof=theirs n1/stderr.log']
TOML
cat > kill.toml <<'TOML'
version = 1
[[fault]]
id = "die"
kind = "crash"
node = "n1"
when = [ { function = "org.rose.test.Victim.step", count = 23 } ]
TOML
expect 0 "$rose" replay kill.toml -c jvm.toml --runs 2 --json
json_is 'j["faults"][0]["fired"]' 2
nothing_left "after a kill at a method in a container"
no_containers "after a kill at a method in a container"
