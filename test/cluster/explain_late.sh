#!/usr/bin/env bash
# The symptom occurs only after the workload, while the oracle waits for it. Therefore the runs are compared until the
# oracle has answered. In runs in which the oracle finds nothing, a period of the same length is compared.
. "$(dirname "$0")/common.bash"
command -v g++ >/dev/null || skip "no g++"
cd "$work"
export TMPDIR=$work
mkdir case
cd case
cat > keeper.cc <<'CC'
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

bool doubtful = false;

__attribute__((noinline)) void keep(int journal) {
  if (::write(journal, "line\n", 5) >= 0) return;
  doubtful = true;
  std::fprintf(stderr, "doubtful\n");
}
__attribute__((noinline)) void discard_all() { ::truncate("journal", 0); }
__attribute__((noinline)) void look_around() { std::printf("all is well\n"); }

int main() {
  const int journal = ::open("journal", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  while (::access("end", F_OK) != 0) {
    keep(journal);
    ::usleep(5000);
  }
  // Long after the workload has ended.
  for (int round = 0;; ++round) {
    ::usleep(400000);
    if (round == 1 && doubtful) discard_all();
    if (round == 2) look_around();
    std::printf("%s %d\n", round == 0 ? "ended" : "round", round);
    std::fflush(stdout);
  }
}
CC
g++ -g -O1 -o keeper keeper.cc
cat > workload <<'END'
#!/bin/sh
sleep 0.4
touch n1/end
END
# If the oracle finds the word "doubtful", it waits for the loss. Otherwise it answers at once.
cat > oracle <<'END'
#!/bin/sh
until grep -q ended n1/stdout.log; do sleep 0.05; done
grep -q doubtful n1/stderr.log || exit 1
until grep -q 'round 3' n1/stdout.log; do sleep 0.05; done
[ -s n1/journal ] && exit 1
echo "the journal is empty"
END
chmod +x workload oracle
cat > rose.toml <<'TOML'
[deployment]
subnet = "10.91.11.0/24"
[[node]]
name    = "n1"
command = ["./keeper"]
[workload]
command = ["./workload"]
[oracle]
command = ["./oracle"]
TOML
cat > schedule.toml <<'TOML'
version = 1
[[fault]]
id = "full"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/journal"
error = "ENOSPC"
when = [ { elapsed = "100ms" } ]
TOML
expect 0 "$rose" explain schedule.toml -c rose.toml --runs 4 --no-deepen -o why.md --json
alone='[d["what"] for d in j["differences"] if d["failing"] == 1 and d["sound"] == 0]'
json_is "\"enters discard_all()\" in $alone, \"enters look_around()\" in $alone" "(True, False)"
json_is 'any(s["function"] == "discard_all()" for s in j["suspects"])' True
nothing_left "by explain"
