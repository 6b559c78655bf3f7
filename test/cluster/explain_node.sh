#!/usr/bin/env bash
# An explanation names functions of Node.js. The bug is a timer that is armed again only if nothing failed. The node's
# own options still apply, and functions of the agent and of node_modules are not mentioned.
. "$(dirname "$0")/common.bash"
command -v node > "$work/where" || skip "needs node (nodejs)"
mkdir "$work/case" "$work/case/node_modules"
cd "$work/case"
cat > node_modules/lines.js <<'JS'
exports.join = function joinLines(lines) { return lines.join('\n') + '\n'; };
JS
cat > own.js <<'JS'
require('fs').writeFileSync('loaded', 'own');
JS
cat > keeper.js <<'JS'
'use strict';
const fs = require('fs'), net = require('net');
const { join } = require('lines.js');
class Keeper {
  constructor() { this.lines = []; this.saved = 0; }
  add(line) { this.lines.push(line); return 'ok'; }
  arm() { setTimeout(() => this.save(), 50); }
  save() {
    const count = this.lines.length;
    try {
      this.write('kept.new', join(this.lines.slice(0, count)));
      fs.renameSync('kept.new', 'kept');
      this.saved = count;
      this.arm();
    } catch (error) {
      this.complain(error);
    }
  }
  write(path, text) { fs.writeFileSync(path, text); }
  complain(error) { console.error(`not kept: ${error.message}`); }
  static begin() { const keeper = new Keeper(); keeper.arm(); return keeper; }
}
const keeper = Keeper.begin();
net.createServer((socket) => {
  socket.on('error', () => {});
  socket.on('data', (data) => {
    for (const line of data.toString().trim().split('\n'))
      socket.write((line === 'saved' ? keeper.saved : keeper.add(line)) + '\n');
  });
}).listen(7000, process.argv[2], () => console.error('ready'));
JS
cat > ask.py <<'PY'
import os, socket, sys, time
stream = socket.create_connection((os.environ["ROSE_IP_keeper"], 7000), 5).makefile("rw")
def ask(line):
    stream.write(line + "\n"); stream.flush()
    return stream.readline().strip()
if sys.argv[1] == "add":
    for n in range(60):
        ask(f"line{n}")
        time.sleep(0.02)
else:
    time.sleep(0.3)
    saved = int(ask("saved"))
    print(f"{saved} of 60 lines are saved")
    sys.exit(0 if saved < 60 else 1)
PY
cat > rose.toml <<'TOML'
[deployment]
subnet = "10.91.7.0/24"
[[node]]
name    = "keeper"
command = ["node", "${config_dir}/keeper.js", "${ip}"]
env     = { NODE_PATH = "${config_dir}/node_modules", NODE_OPTIONS = "--require ${config_dir}/own.js" }
ready   = { log = "ready" }
[workload]
command = ["python3", "${config_dir}/ask.py", "add"]
[oracle]
command = ["python3", "${config_dir}/ask.py", "saved"]
TOML
cat > schedule.toml <<'TOML'
version = 1
[[fault]]
id = "full"
kind = "syscall"
node = "keeper"
syscall = "write"
path = "*/kept.new"
error = "ENOSPC"
when = [ { elapsed = "300ms" } ]
TOML
expect 0 "$rose" explain schedule.toml -c rose.toml --runs 4 --jobs 4 -o why.md --report report --keep --json
json_is 'j["suspects"][0]["function"]' keeper.Keeper.save
json_is '[s["function"] for s in j["suspects"] if s["function"].startswith(("agent", "lines"))]' '[]'
says err 'functions of JavaScript in keeper'
grep -qx own report/runs/run-*/keeper/loaded || fail "the node's own options were lost"

# The program is installed as a package, and the bug is in another package of the same system. Other packages are
# libraries.
mkdir -p node_modules/.bin node_modules/keeper node_modules/@keeper/core
mv keeper.js node_modules/@keeper/core/keeper.js
echo "require('@keeper/core/keeper.js');" > node_modules/keeper/main.js
ln -s ../keeper/main.js node_modules/.bin/keeper
sed -i 's|/keeper.js"|/node_modules/.bin/keeper"|' rose.toml
expect 0 "$rose" explain schedule.toml -c rose.toml --runs 4 --jobs 4 --no-deepen -o why.md --json
json_is 'j["suspects"][0]["function"]' keeper.Keeper.save
json_is '[s["function"] for s in j["suspects"] if s["function"].startswith(("agent", "lines"))]' '[]'

# Node.js whose options are replaced loads no agent.
cat > start <<'SH'
#!/bin/sh
unset NODE_OPTIONS
exec node "$(dirname "$0")/node_modules/.bin/keeper" "$@"
SH
chmod +x start
sed -i 's|^command = \["node", .*|command = ["${config_dir}/start", "${ip}"]|' rose.toml
expect 0 "$rose" explain schedule.toml -c rose.toml --runs 4 --jobs 4 --no-deepen -o why.md
says err 'keeper: Node.js did not load'
nothing_left "after an explanation of Node.js"
