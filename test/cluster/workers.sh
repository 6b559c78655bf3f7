#!/usr/bin/env bash
# Workers, which a command starts, make the runs of a diagnosis. The search is the same with any number of workers. If
# workers are killed or hang, no run is lost. Neither they nor an interrupted or killed diagnosis leave anything behind.
. "$(dirname "$0")/common.bash"
. "$here/workers.bash"

with_workers three 3
ends_with 0 three
[ "$(result three)" = "$(result here)" ] ||
  { fail "three workers: the search differs"; diff <(result here) <(result three) >&2 || true; }
[ "$(ls "$work/three/traces" | wc -l)" -eq "$total" ] || fail "three workers: traces are missing"
"$rose" dump show "$work/three/traces/run-0001.dump" --quiet >/dev/null || fail "three workers: a trace can't be read"
until_true 60 no_folders
nothing_left "by three workers"

# All workers are killed at once, twice. Then all are stopped.
with_workers killed 2
for at in 2 4; do
  until_true 120 eval "ended || [ \$(runs killed) -ge $at ]"
  if ended; then fail "the diagnosis ended after $(runs killed) runs"; fi
  for one in $(workers); do kill -KILL "$one" 2>/dev/null || true; done
done
until_true 120 eval "ended || [ \$(runs killed) -ge 6 ]"
for one in $(workers); do kill -STOP "$one" 2>/dev/null || true; done
ends_with 0 killed
[ "$(result killed)" = "$(result here)" ] ||
  { fail "killed workers: the search differs"; diff <(result here) <(result killed) >&2 || true; }
grep -q 'has ended.*was killed by signal 9' "$work/killed.err" || fail "killed workers are not reported"
grep -q 'sent nothing for 5s' "$work/killed.err" || fail "hanging workers are not reported"
until_true 60 no_folders
nothing_left "by killed workers"

# Workers are killed when no run is left to make, so that no other worker replaces them. Their folders are removed
# nevertheless.
mkdir "$work/starts"
cat > "$work/dies.sh" <<SH
#!/bin/bash
mktemp "$work/starts/XXXXXX" > /dev/null
[ "\$(ls "$work/starts" | wc -l)" -le 2 ] || exec "$rose" worker
exec 3<&0
exec "$rose" worker < <(cat <&3; kill -KILL \$\$) 3<&-
SH
chmod +x "$work/dies.sh"
diagnose last --engine "$work/dies.sh" --workers 2
ends_with 0 last
[ "$(ls "$work/starts" | wc -l)" -ge 3 ] || fail "no worker was killed at the end"
no_folders || fail "a killed worker's folder stays: $(ls -d "$work"/tmp/rose-worker-*)"
nothing_left "by workers killed at the end"

# After Ctrl-C, and after the diagnosis was killed, workers end by themselves.
for signal in INT KILL; do
  with_workers cut$signal 2
  until_true 120 eval "ended || [ \$(runs cut$signal) -ge 3 ]"
  all=$(workers)
  [ -n "$all" ] || fail "$signal: there are no workers"
  kill -$signal $pid
  if [ $signal = INT ]; then ends_with 4 cutINT; else wait $pid 2>/dev/null || true; fi
  # shellcheck disable=SC2086
  until_true 60 all_gone $all
  until_true 60 no_folders
  nothing_left "after $signal"
done
# The runs that were made before the interruption count.
with_workers cutINT 2 --resume
ends_with 0 cutINT
[ "$(result cutINT)" = "$(result here)" ] || fail "resumed with workers: the search differs"

# These are refused: a command that starts no worker, an engine or host that is missing, and files that cannot be
# copied.
expect 3 "$rose" diagnose --trace dump.jsonl -c rose.toml -o "$work/x.toml" --engine "echo welcome to lab-7"
says err "does not speak the protocol of a rose worker, its output is 'welcome to lab-7"
expect 3 "$rose" diagnose --trace dump.jsonl -c rose.toml -o "$work/x.toml" --engine "/no/such/rose worker"
says err "cannot run '/no/such/rose'"
expect 2 "$rose" diagnose --trace dump.jsonl -c rose.toml -o "$work/x.toml" --workers 2
says err '--workers needs an engine'
expect 2 "$rose" diagnose --trace dump.jsonl -c rose.toml -o "$work/x.toml" --engine ssh
says err 'hosts is empty'
ln -s node.sh link.sh
expect 2 "$rose" diagnose --trace dump.jsonl -c rose.toml -o "$work/x.toml" --engine "'$rose' worker"
says err 'link.sh is a symbolic link'
nothing_left "in the end"
