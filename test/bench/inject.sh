#!/usr/bin/env bash
# Measures the cost of an armed schedule for the system under test. Usage: inject.sh ROSE [SECONDS]
#
# One node reads a file repeatedly and sometimes opens a file, as a server does. It runs alternately without faults,
# with a schedule that selects only openat, and with one that selects the frequent read. No call ever matches, so only
# the selection is measured. Prints requests per second and their ratios, both by the clock and by the node's own
# processor time. The latter contains neither the delays of a busy machine nor the time in which the node waits for
# rose.
set -euo pipefail
rose=$(readlink -f "$1")
seconds=${2:-4}
rounds=${ROUNDS:-5}
[ "$(id -u)" -eq 0 ] || { echo "inject.sh: needs root"; exit 77; }
command -v gcc >/dev/null || { echo "inject.sh: needs gcc"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/rosebench-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
export TMPDIR=$work  # kept runs are removed together with this folder
cat > server.c <<'C'
/* Answers "requests": 20 reads of 4 KiB and a little work each; every 50th opens a file. Prints how many a second. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static double at(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static double now(void) { return at(CLOCK_MONOTONIC); }
int main(int argc, char** argv) {
  static char data[4096];
  unsigned long sum = 0, done = 0;
  double limit = atof(argv[2]), begin, cpu_begin;
  int fd = open(argv[1], O_RDONLY);
  while (argc > 3 && access(argv[3], F_OK) != 0) usleep(1000);
  cpu_begin = at(CLOCK_PROCESS_CPUTIME_ID);
  for (begin = now(); now() - begin < limit; done++) {
    for (int i = 0; i < 20; i++) {
      if (pread(fd, data, 1, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0 || read(fd, data, sizeof data) < 0) return 1;
      for (unsigned k = 0; k < sizeof data; k++) sum = sum * 31 + (unsigned char)data[k];
    }
    if (done % 50 == 0) close(open(argv[1], O_RDONLY));
  }
  double cpu = at(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
  printf("rate %.1f %.1f %lu\n", done / (now() - begin), done / cpu, sum);
  fflush(stdout);
  pause();
}
C
gcc -O2 -o server server.c
head -c 65536 /dev/urandom > data
cat > rose.toml <<TOML
name = "bench"
[deployment]
network = "host"
[[node]]
name = "n1"
command = ["./server", "$work/data", "$seconds", "\${run_dir}/go"]
[workload]
command = ["/bin/sh", "-c", "touch go; while ! grep -q rate n1/stdout.log; do sleep 0.1; done"]
timeout = "120s"
[oracle]
command = ["/bin/false"]
TOML
fault() {
  printf 'version = 1\n[[fault]]\nid = "f"\nkind = "syscall"\nnode = "n1"\nsyscall = "%s"\npath = "/no/such/*"\nerror = "EIO"\n' "$1"
}
fault openat > openat.toml
fault read > read.toml
touch go
rate() { awk '$1 == "rate" { print $2, $3 }' "$1"; }
# Start the server in its own session, as rose starts nodes, because the scheduler distributes processor time by
# sessions.
plain() { (setsid timeout $((seconds + 5)) ./server "$work/data" "$seconds" "$work/go" > plain.log) & local p=$!
  while ! grep -q rate plain.log 2>/dev/null; do
    sleep 0.1
  done; kill $p 2>/dev/null || true; rate plain.log; rm -f plain.log; }
armed() { rm -rf report; "$rose" replay "$1.toml" -c rose.toml --runs 1 --keep --quiet --json > out.json 2>err.log ||
  true
  rate "$(python3 -c 'import json; print(json.load(open("out.json"))["run_results"][0]["directory"])')/n1/stdout.log"; }
printf 'round       without rose    openat selected      read selected   (requests a second by the clock, by processor time)\n'
for ((i = 1; i <= rounds; i++)); do
  a=$(plain); b=$(armed openat); c=$(armed read)
  printf '%5d  %17s  %17s  %17s\n' "$i" "$a" "$b" "$c" | tee -a table
done
python3 - <<'PY'
rows = [list(map(float, line.split()[1:])) for line in open("table")]
median = lambda v: sorted(v)[len(v) // 2]
for what, at in (("clock", 0), ("processor time", 1)):
    openat, read = (median([r[2 * k + at] / r[at] for r in rows]) for k in (1, 2))
    print(f"by {what}: openat selected {openat:.3f} of the run without rose, hot read selected {read:.3f} (medians of the rounds' ratios)")
PY
