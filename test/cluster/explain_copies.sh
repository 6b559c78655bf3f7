#!/usr/bin/env bash
# The setup copies programs into each run's folder. An explanation then names functions that only failing runs enter,
# and reads values, whether the node's command is a copy, or a script in the folder of the copies that starts one.
. "$(dirname "$0")/common.bash"
command -v g++ >/dev/null || skip "no g++"
cd "$work"
export TMPDIR=$work
mkdir case
cd case
cat > shop.cc <<'CC'
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

int broken = 0;

__attribute__((noinline)) int forget_order(int number) {
  std::fprintf(stderr, "order %d is not kept\n", number);
  return ++broken;
}

__attribute__((noinline)) int keep_order(int journal, int number) {
  const std::string line = "order " + std::to_string(number) + "\n";
  if (::write(journal, line.data(), line.size()) < 0) return forget_order(number);
  return 0;
}

int main() {
  const int journal = ::open("journal", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  for (int number = 0; ::access("end", F_OK) != 0; ++number) {
    keep_order(journal, number);
    ::usleep(5000);
  }
  std::printf("broken %d\n", broken);
  std::fflush(stdout);
  ::pause();
}
CC
g++ -g -O1 -o shop shop.cc
cat > setup <<'END'
#!/bin/sh
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir bin
cp "$here/shop" bin/shop
printf '#!/bin/sh\nexec "$(dirname "$0")/shop"\n' > bin/start
chmod +x bin/start
cp "$here/shop" direct/copy
END
cat > workload <<'END'
#!/bin/sh
sleep 0.5
touch launched/end direct/end
until grep -q broken launched/stdout.log && grep -q broken direct/stdout.log; do sleep 0.05; done
END
cat > oracle <<'END'
#!/bin/sh
grep -q 'broken [1-9]' "$ROSE_RUN_DIR"/*/stdout.log || exit 1
echo "an order is lost"
END
chmod +x setup workload oracle
cat > rose.toml <<'TOML'
[deployment]
subnet = "10.91.9.0/24"
setup  = ["./setup"]
[[node]]
name    = "launched"
command = ["/bin/sh", "${run_dir}/bin/start"]
[[node]]
name    = "direct"
command = ["${dir}/copy"]
[workload]
command = ["./workload"]
[oracle]
command = ["./oracle"]
TOML
for node in launched direct; do
  cat > $node.toml <<TOML
version = 1
[[fault]]
id = "full"
kind = "syscall"
node = "$node"
syscall = "write"
path = "*/journal"
error = "ENOSPC"
when = [ { elapsed = "100ms" } ]
TOML
  expect 0 "$rose" explain $node.toml -c rose.toml --runs 4 --no-deepen --ask 'keep_order:return' -o $node.md --json
  forgets='next(s for s in j["suspects"] if s["function"] == "forget_order(int)")'
  json_is "\"differs\" in $forgets[\"features\"], $forgets[\"node\"]" "(True, '$node')"
  json_is 'j["suspects"][0]["function"]' 'keep_order(int, int)'
  json_is 'any(v["node"] == "'$node'" and v["score"] > 0 for v in j["values"])' True
done
says err 'launched: it runs bin/shop of the run.s folder'
nothing_left "after explanations of copies"
[ -z "$(find "$work" -maxdepth 1 -name 'rose-programs*')" ] || fail "copies of programs are left"
