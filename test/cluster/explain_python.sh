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
nothing_left "after an explanation of Python"
