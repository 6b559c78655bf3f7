# Sourced by the cluster tests. It provides functions for checks, a scratch folder, and functions that list what rose
# has left on this machine.
set -euo pipefail
rose=$1
build=$2
here=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
name=$(basename "${BASH_SOURCE[1]}" .sh)
work=$(mktemp -d "${TMPDIR:-/tmp}/rosetest-XXXXXX")
chmod 711 "$work"
failures=0
# Go compiles its library once for all tests and keeps it in its cache; without a home, the cache is in $work.
[ -n "${HOME:-}${GOCACHE:-}" ] || export GOCACHE=$work/gocache

skip() { echo "SKIPPED: cluster_$name: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "needs root (namespaces, cgroups, BPF)"

finish() {
  local status=$?
  if [ $status -eq 0 ] && [ $failures -gt 0 ]; then status=1; fi
  if [ $status -eq 0 ] || [ $status -eq 77 ]; then rm -rf "$work"; else echo "kept: $work"; fi
  trap - EXIT
  exit $status
}
trap finish EXIT

fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }

# expect STATUS COMMAND...: runs the command with its output in $work/out and $work/err, and checks its exit status.
expect() {
  local wanted=$1 status=0
  shift
  "$@" >"$work/out" 2>"$work/err" || status=$?
  if [ $status -ne "$wanted" ]; then
    fail "exit $status instead of $wanted: $*"
    sed 's/^/  out: /' "$work/out" | tail -20 >&2
    sed 's/^/  err: /' "$work/err" | tail -20 >&2
  fi
}

# says FILE PATTERN: checks that the last command's out or err contains the pattern.
says() { grep -qE -- "$2" "$work/$1" || { fail "no '$2' in its $1:"; tail -20 "$work/$1" | sed 's/^/  /' >&2; }; }

# unavailable FOLDER: prints why `install` could not get what the folder needs. Returns false if it could get
# everything.
unavailable() { sed -n "s|^$1: ||p" "$build/unavailable" 2> /dev/null | grep .; }

# json EXPRESSION: prints the value of a Python expression, in which `j` is the object that the last command printed.
json() { python3 -c 'import json,sys; j=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$work/out" "$1"; }
json_is() { local got; got=$(json "$1") || got="(no JSON)"; [ "$got" = "$2" ] || fail "$1 is $got, not $2"; }

cgroup2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)

cgroups=${ROSE_CGROUP_PARENT:-$cgroup2}  # where rose creates its cgroups

# leftovers: prints everything that rose has in this test's part of the system, one per line. BPF programs and maps
# belong to no part, so leftovers.sh checks them.
leftovers() {
  ls -d "$cgroups"/rose-* 2>/dev/null || true
  ls -d /run/netns/rose-* 2>/dev/null || true
  ls -d /run/rose/rose-*.lock 2>/dev/null || true
  ip -o link 2>/dev/null | grep -o ' rose[^:@]*' || true
  return 0
}

# nothing_left WHEN: checks that nothing is left. It waits, because the kernel frees programs and namespaces only after
# a grace period.
nothing_left() {
  local deadline=$((SECONDS + 10))
  while [ -n "$(leftovers)" ]; do
    [ $SECONDS -lt $deadline ] || { fail "left behind $1: $(leftovers)"; return; }
    sleep 0.1
  done
}

# signalled SIGNAL FILE PATTERN COMMAND...: runs the command, sends it the signal when the file contains the pattern,
# and waits for its end.
signalled() {
  local signal=$1 file=$2 pattern=$3 pid
  shift 3
  "$@" >"$work/signalled.out" 2>"$work/signalled.err" &
  pid=$!
  until_true 60 grep -qE -- "$pattern" "$file" || { cat "$work/signalled.err" >&2; exit 1; }
  kill -"$signal" $pid
  wait $pid 2>/dev/null || true
}

# replays RUNS SCHEDULE CONFIG [OPTION...]: checks that at least one run of the schedule reproduces the bug, and that
# its faults fire. A fault with a fixed time may miss on a busy machine, so no rate is required of so few runs.
replays() {
  local runs=$1 schedule=$2 config=$3
  shift 3
  "$rose" replay "$schedule" -c "$config" --runs "$runs" --json "$@" > "$work/out" 2> "$work/err" || true
  json_is 'j["reproduced"] >= 1, any(f["fired"] for f in j["faults"])' "(True, True)"
}

# mkdir_fails [N]: prints a schedule whose fault `eio` fails n1's Nth mkdir (17th by default).
mkdir_fails() {
  cat <<TOML
[[fault]]
id = "eio"
kind = "syscall"
node = "n1"
syscall = "mkdir"
path = "*/made.*"
count = ${1:-17}
error = "EIO"
TOML
}

# until_true SECONDS COMMAND...: waits until the command succeeds, but at most this many seconds.
until_true() {
  local deadline=$((SECONDS + $1))
  shift
  while ! "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $deadline ] || { fail "this condition was not met in time: $*"; return 1; }
    sleep 0.05
  done
}

# kill_guardian PID: ends the guardian of the rose with this process id, so that only `rose heal` and the kernel undo
# what that rose has changed.
kill_guardian() {
  local one
  for one in $(find "$cgroups" -name cgroup.procs -exec cat {} + 2>/dev/null); do
    case $(tr '\0' ' ' < "/proc/$one/cmdline" 2>/dev/null) in "rose-guardian guardian-of $1 "*) kill -KILL "$one" &&
      return ;; esac
  done
  fail "rose $1 has no guardian"
}
