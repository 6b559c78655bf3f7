#!/usr/bin/env bash
# An explanation names functions of Python: the function that was executing when a kill arrived, and its callers. The
# node's own sitecustomize and PYTHONPATH still apply, and functions of the interpreter are not mentioned.
. "$(dirname "$0")/common.bash"
cp -r "$here/../planted/python-crash-between-syscalls" "$work/case"
cp -r "$here/../planted/common" "$work/common"
cd "$work/case"
mkdir own
echo 'import pathlib; pathlib.Path("loaded").write_text("own")' > own/sitecustomize.py
sed -i "s|^restart = .*|&\nenv     = { PYTHONPATH = \"$work/case/own\" }|" rose.toml
cat > schedule.toml <<'TOML'
version = 1
[[fault]]
id = "kill"
kind = "crash"
node = "spool"
when = [ { node = "spool", syscall = "unlink", path = "*/data/spool.log", result = "ok" } ]
TOML
expect 0 "$rose" explain schedule.toml -c rose.toml --runs 4 --jobs 4 --no-deepen -o why.md --report report --keep \
  --json
json_is 'j["suspects"][0]["function"]' spool.Spool.compact
json_is '[f["function"] for f in j["stacks"][0]["frames"]][1:4]' \
  "['spool.Spool.compact', 'spool.Spool.note', 'spool.Spool.answer']"
json_is '[s["function"] for s in j["suspects"] if "Py" in s["function"]]' '[]'
says err 'functions of Python in spool'
grep -qx own report/runs/run-*/spool/loaded || fail "the node's own sitecustomize was not loaded"

# An exception that is dropped: the function that drops it ranks before the one in which it is raised.
mkdir "$work/dropped"
cd "$work/dropped"
cat > shelf.py <<'PY'
import os
import socketserver
import sys


class Shelf:
    def write_record(self, text):
        out = os.open(os.path.join(sys.argv[2], "records"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            os.write(out, text.encode() + b"\n")
        finally:
            os.close(out)

    def save(self, text):
        try:
            self.write_record(text)
        except OSError:
            pass

    def put(self, text):
        self.save(text)
        return "kept"


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(shelf.put(line.decode().strip()).encode() + b"\n")


socketserver.ThreadingTCPServer.allow_reuse_address = True
shelf = Shelf()
socketserver.ThreadingTCPServer((sys.argv[1], 7000), Handler).serve_forever()
PY
cat > workload <<'PY'
#!/usr/bin/env python3
import os, socket
peer = socket.create_connection((os.environ["ROSE_IP_shelf"], 7000))
answers = peer.makefile()
for number in range(8):
    peer.sendall(f"r{number}\n".encode())
    answers.readline()
PY
cat > oracle <<'SH'
#!/bin/sh
[ "$(wc -l < shelf/records)" -lt 8 ]
SH
chmod +x workload oracle
cat > rose.toml <<'TOML'
[deployment]
subnet = "10.85.3.0/24"
[[node]]
name    = "shelf"
command = ["/usr/bin/python3", "${config_dir}/shelf.py", "${ip}", "${dir}"]
ready   = { tcp = 7000, timeout = "30s" }
[workload]
command = ["./workload"]
[oracle]
command = ["./oracle"]
TOML
cat > schedule.toml <<'TOML'
version = 1
[[fault]]
id      = "full"
kind    = "syscall"
node    = "shelf"
syscall = "write"
path    = "*/records"
error   = "ENOSPC"
count   = 4
TOML
expect 0 "$rose" explain schedule.toml -c rose.toml --runs 4 --jobs 4 --no-deepen -o why.md --json
json_is 'j["suspects"][0]["function"]' shelf.Shelf.save
says out 'it caught the exception that the fault caused'
json_is 'any("catches exception in shelf.Shelf.save" in line["text"] for line in j["story"])' True
# Every function has a file and a line, and the body of a class is no function.
json_is 'all(s["file"].endswith("shelf.py") and s["line"] > 0 for s in j["suspects"])' True
json_is '[s["function"] for s in j["suspects"] if s["function"] in ("shelf.Shelf", "shelf.Handler")]' '[]'

# The program is installed as a package, and started by a short script or by its name.
mkdir -p site-packages/shelving
mv shelf.py site-packages/shelving/shelf.py
echo 'from shelving import shelf' > start
for command in '"${config_dir}/start"' '"-m", "shelving.shelf"'; do
  sed -i "s|^command = .\"/usr/bin/python3\".*|command = [\"/usr/bin/python3\", $command, \"\${ip}\", \"\${dir}\"]|
    /^env/d; s|^ready .*|&\nenv = { PYTHONPATH = \"\${config_dir}/site-packages\" }|" rose.toml
  expect 0 "$rose" explain schedule.toml -c rose.toml --runs 4 --jobs 4 --no-deepen -o why.md --json
  json_is 'j["suspects"][0]["function"]' shelf.Shelf.save
done

# Python that ignores its environment loads no agent.
cp site-packages/shelving/shelf.py .
sed -i 's|"-m", "shelving.shelf"|"-E", "${config_dir}/shelf.py"|' rose.toml
expect 4 "$rose" explain schedule.toml -c rose.toml --runs 4 --jobs 4 --no-deepen -o why.md
says err 'shelf: Python did not load'
nothing_left "after an explanation of Python"
