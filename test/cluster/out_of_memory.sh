#!/usr/bin/env bash
# The kernel kills a helper process because of its memory limit, which was set manually. The failure occurs only if the
# helper is killed while it requests its next page, and diagnose finds the limit.
. "$(dirname "$0")/common.bash"
. "$here/exhausted.bash"
for need in gcc python3; do command -v $need > /dev/null || skip "$need is missing"; done
[ -e /sys/fs/cgroup/memory/cgroup.procs ] ||
  skip "needs the memory controller in a hierarchy of its own, for a limit by hand"
"$rose" doctor --json | python3 -c "
import json, sys
sys.exit(0 if [c['ok'] for c in json.load(sys.stdin)['capabilities'] if c['name'] == 'memory_controller'] == [True] else 1)" || skip "rose has no memory controller here"
cd "$work"

# Batches are acknowledged once they are in files. A helper merges each file into a table. The bug: it removes the file
# before it has merged it. A kill matters only during a few milliseconds of every tenth of a second.
cat > store.c <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <signal.h>
#include <unistd.h>

#define BATCHES 24
#define GROWTH (4u << 20)

static void name_of(char *path, int number) { sprintf(path, "batch-%d", number); }

static void put(const char *path, int flags, int number) {
  char line[16];
  int fd = open(path, O_WRONLY | O_CREAT | flags, 0644), size = sprintf(line, "%d\n", number);
  if (fd < 0 || write(fd, line, size) != size) perror(path);
  close(fd);
}

static void help(int peer) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int number;
  while (read(peer, &number, sizeof number) == sizeof number) {
    char path[32];
    name_of(path, number);
    unlink(path);
    char *larger = mmap(NULL, GROWTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(larger, number, GROWTH);
    put("table", O_APPEND, number);
    munmap(larger, GROWTH);
    if (write(peer, &number, sizeof number) != sizeof number) break;
  }
  _exit(0);
}

static int start(void) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) exit(1);
  if (fork() == 0) {
    close(ends[0]);
    help(ends[1]);
  }
  close(ends[1]);
  return ends[0];
}

int main(int argc, char **argv) {
  if (argc != 2 || chdir(argv[1]) != 0) return 2;
  signal(SIGCHLD, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  int helper = start();
  for (int number = 1; number <= BATCHES; ++number) {
    char path[32];
    unsigned char chance;
    name_of(path, number);
    put(path, 0, number);
    dprintf(1, "acknowledged %d\n", number);
    while (access(path, F_OK) == 0) {
      int answer;
      if (write(helper, &number, sizeof number) == sizeof number && read(helper, &answer, sizeof answer) == sizeof answer) continue;
      dprintf(2, "the helper is gone, here is another one\n");
      close(helper);
      helper = start();
    }
    if (getrandom(&chance, 1, 0) == 1) usleep(30000 + 300 * chance);
  }
  dprintf(1, "all are there\n");
  for (;;) pause();
}
C
gcc -g -O1 -o store store.c
cat > workload.sh <<'SH'
#!/bin/sh
for i in $(seq 40); do grep -q "all are there" n1/stdout.log && break; sleep 0.1; done
SH
cat > oracle.sh <<'SH'
#!/bin/sh
status=1
for number in $(sed -n 's/^acknowledged //p' n1/stdout.log); do
  [ -e n1/batch-$number ] || grep -qx $number n1/table || { echo "lost $number"; status=0; }
done
exit $status
SH
# The kernel's limit for the helper alone, as set by an administrator who finds that the helper uses too much memory.
cat > incident.sh <<'SH'
#!/bin/sh
until grep -q "acknowledged 3" n1/stdout.log; do sleep 0.02; done
main=$(cat "$ROSE_PIDFILE_n1")
group=$1
mkdir "$group"
echo 1M > "$group/memory.limit_in_bytes"
for task in /proc/$main/task/*/children; do for helper in $(cat $task); do echo $helper > "$group/cgroup.procs"; done; done
for i in $(seq 50); do [ -n "$(cat "$group/cgroup.procs")" ] || break; sleep 0.05; done
for i in $(seq 50); do rmdir "$group" 2>/dev/null && break; sleep 0.05; done
SH
chmod +x workload.sh oracle.sh incident.sh
one_store > rose.toml
by_hand=/sys/fs/cgroup/memory/$(basename "$work")
expect 0 "$rose" trace -c rose.toml --incident "./incident.sh $by_hand" -o dump.bin
rmdir "$by_hand" 2>/dev/null || true  # it still exists if no process was killed
"$rose" dump show dump.bin --type ps > events
grep -q 'memory' events || { fail "the dump does not show that memory ran out:"; cat events >&2; }
finds_limit memory
