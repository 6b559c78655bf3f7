#!/usr/bin/env bash
# Tests the recording of a node that contains no code for it. In a run, the results of C library calls are recorded.
# When the node is replayed alone, the calls return the same results. A statically linked program is refused with a
# message.
. "$(dirname "$0")/common.bash"
command -v gcc >/dev/null || skip "no gcc"
cd "$work"
export TMPDIR=$work
gcc -O1 -pthread -o unforeseen "$here/../programs/unforeseen.c"
cat > rose.toml <<TOML
[[node]]
name = "n1"
command = ["$work/unforeseen"]
record_libc = ["time", "random", "pid", "hostname", "ready"]
[workload]
command = ["sh", "-c", "until grep -q ^end n1/stdout.log; do sleep 0.05; done; cp n1/stdout.log $work/said"]
timeout = "60s"
[oracle]
command = ["grep", "-q", "^end", "n1/stdout.log"]
TOML
expect 0 "$rose" trace -c rose.toml -o dump.bin
[ -s said ] || fail "the node printed nothing"
# The open descriptors of the caller do not change the program's descriptor numbers.
exec 3< /dev/null 9< /dev/null
expect 0 "$rose" replay --recording dump.bin.recordings --node n1 -- "$work/unforeseen"
exec 3<&- 9<&-
says err "the C library's hostname, pid, random, ready, time are replayed too"
says out 'replayed to its end'
# The order in which threads print depends on a lock, which is not recorded.
sed '/^replayed/d' out | sort > again
sort said | diff - again >&2 || fail "the replay's output differs"
expect 1 "$rose" replay --recording dump.bin.recordings --node n1 --patience 2s -- "$work/unforeseen" more
says out "diverged at record 4 .* got only calls of 'libc/time/time/0'"

# The recordings of failing and correct runs first differ at values that only failing runs received.
cat > reader.c <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void give_up(void) {
  struct utsname host;
  uname(&host);
  printf("cannot read on %s\n", host.nodename);
}
int main(void) {
  setvbuf(stdout, 0, _IONBF, 0);
  for (int n = 1; n <= 10; n++) {
    char byte;
    time(NULL);
    int file = open("file", O_RDWR | O_CREAT, 0600);
    if (write(file, "x", 1) != 1 || pread(file, &byte, 1, 0) != 1) give_up();
    close(file);
    usleep(10000);
  }
  printf("end\n");
  for (;;) pause();
}
C
gcc -g -O1 -o reader reader.c
cat > explain.toml <<TOML
[[node]]
name = "n1"
command = ["$work/reader"]
functions = ["give_up"]
record_libc = ["time", "hostname"]
[workload]
command = ["sh", "-c", "until grep -q ^end n1/stdout.log; do sleep 0.05; done"]
timeout = "60s"
[oracle]
command = ["grep", "-q", "cannot read", "n1/stdout.log"]
TOML
cat > schedule.toml <<'TOML'
version = 1
[[fault]]
id = "eio"
kind = "syscall"
node = "n1"
syscall = "pread64"
path = "*/file"
count = 5
error = "EIO"
TOML
expect 0 "$rose" explain schedule.toml -c explain.toml --no-deepen --json
json_is '[(d["node"], d["key"], d["instead"], d["alike"], d["failing"], d["sound"]) for d in j["recorded"]]' \
  "[('n1', 'libc/hostname/uname/0', None, 0, 5, 5)]"
says explanation.md "from the fault on, n1 takes .* from 'libc/hostname/uname/0', where correct runs take nothing more"

gcc -static -O1 -pthread -o unforeseen-static "$here/../programs/unforeseen.c"
sed 's|/unforeseen"|/unforeseen-static"|' rose.toml > static.toml
expect 2 "$rose" trace -c static.toml -o dump2.bin
says err 'node n1: record_libc: .*/unforeseen-static is statically linked'
nothing_left "after recordings of the C library"
