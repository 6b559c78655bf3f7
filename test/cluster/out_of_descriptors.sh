#!/usr/bin/env bash
# A node runs out of descriptors, because its limit is lowered while it runs. Which call fails first is decided by
# chance. Therefore a fault in the call from the dump reproduces the failure only sometimes, and diagnose finds the
# limit.
. "$(dirname "$0")/common.bash"
. "$here/exhausted.bash"
for need in gcc python3 prlimit; do command -v $need > /dev/null || skip "$need is missing"; done
cd "$work"

# Each batch is acknowledged, put together in a scratch buffer, and written to the table, which is open. The buffer is a
# file, memory, a pipe or a socket, whichever was fastest when the node started; the others are measured again from time
# to time. The bug: if no buffer can be made for a batch, the batch is lost.
cat > store.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCHES 8

static unsigned chance(unsigned below) {
  unsigned number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) exit(1);
  return number % below;
}

// One descriptor that can be written to and read from.
static int buffer(unsigned kind, int number) {
  char path[32];
  int both[2];
  switch (kind) {
    case 0:
      sprintf(path, "scratch-%d", number);
      return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    case 1: return memfd_create("scratch", MFD_CLOEXEC);
    case 2:
      if (pipe2(both, O_CLOEXEC) != 0) return -1;
      break;
    default:
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0) return -1;
  }
  close(both[0]);
  return both[1];
}

int main(int argc, char **argv) {
  if (argc != 2 || chdir(argv[1]) != 0) return 2;
  int table = open("table", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const unsigned quickest = chance(4);
  for (int number = 1; number <= BATCHES; ++number) {
    dprintf(1, "acknowledged %d\n", number);
    const int scratch = buffer(quickest, number);
    if (scratch < 0) {
      perror("no batches any more");
      break;
    }
    close(scratch);
    dprintf(table, "%d\n", number);
    for (unsigned kind = 0; kind < 4; ++kind) {
      const int other = kind == quickest ? -1 : buffer(kind, number);
      if (other >= 0) close(other);
    }
    dprintf(1, "%d is there\n", number);
    usleep(30000 + chance(80000));
  }
  dprintf(1, "that is all\n");
  for (;;) pause();
}
C
gcc -g -O1 -o store store.c
cat > workload.sh <<'SH'
#!/bin/sh
for i in $(seq 200); do grep -q "that is all" n1/stdout.log && break; sleep 0.1; done
SH
cat > oracle.sh <<'SH'
#!/bin/sh
grep -q "that is all" n1/stdout.log || exit 2
status=1
for number in $(sed -n 's/^acknowledged //p' n1/stdout.log); do grep -qx $number n1/table || { echo "lost $number"; status=0; }; done
exit $status
SH
# Acts like an administrator who limits all processes without knowing how many descriptors each of them needs.
cat > incident.sh <<'SH'
#!/bin/sh
until grep -q "3 is there" n1/stdout.log; do sleep 0.01; done
prlimit --pid "$(cat "$ROSE_PIDFILE_n1")" --nofile=3:3
SH
chmod +x workload.sh oracle.sh incident.sh
one_store > rose.toml
expect 0 "$rose" trace -c rose.toml --incident ./incident.sh -o dump.bin
"$rose" dump show dump.bin --type scf > events
grep -q EMFILE events || { fail "the dump does not show that descriptors ran out:"; cat events >&2; }
finds_limit descriptors
