#!/usr/bin/env bash
# A full disk has no effect until a thread writes. The explanation shows the stack of the thread that got no space, and
# the functions on it become suspects.
. "$(dirname "$0")/common.bash"
command -v g++ >/dev/null || skip "no g++"
cd "$work"
export TMPDIR=$work
cat > shop.cc <<'CC'
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

struct Journal {
  int fd = -1;
  __attribute__((noinline)) bool append(const std::string& line) {
    std::string page(4096, ' ');
    page.replace(0, line.size(), line);
    return ::write(fd, page.data(), page.size()) == static_cast<ssize_t>(page.size());
  }
};

struct Shop {
  Journal journal;
  long accepted = 0;
  // The bug: the result is not checked.
  __attribute__((noinline)) void keep(int number) {
    journal.append("order " + std::to_string(number));
    ++accepted;
  }
  __attribute__((noinline)) void place_order(int number) {
    keep(number);
    ::usleep(5000);
  }
};

int main() {
  ::mkdir("data", 0755);
  Shop shop;
  shop.journal.fd = ::open("data/journal", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  while (::access("end", F_OK) != 0) shop.place_order(static_cast<int>(shop.accepted));
  std::printf("accepted %ld\n", shop.accepted);
  std::fflush(stdout);
  ::pause();
}
CC
g++ -g -O1 -o shop shop.cc
cat > workload <<'END'
#!/bin/sh
sleep 0.5
touch shop/end
until grep -q accepted shop/stdout.log; do sleep 0.05; done
END
cat > oracle <<'END'
#!/bin/sh
accepted=$(sed -n 's/accepted //p' shop/stdout.log)
[ "$accepted" -gt $(($(stat -c %s shop/data/journal) / 4096)) ] || exit 1
echo "of $accepted orders some are lost"
END
chmod +x workload oracle
cat > rose.toml <<'TOML'
[[node]]
name = "shop"
command = ["./shop"]
sources = ["shop.cc"]
[workload]
command = ["./workload"]
timeout = "60s"
[oracle]
command = ["./oracle"]
TOML
cat > full.toml <<'TOML'
version = 1
[[fault]]
id = "full"
kind = "disk-full"
node = "shop"
path = "data"
when = [ { elapsed = "200ms" } ]
TOML
expect 0 "$rose" explain full.toml -c rose.toml --json
names='[f["function"].split("(")[0] for f in j["stacks"][0]["frames"]]'
json_is "[name for name in $names if '::' in name]" "['Journal::append', 'Shop::keep', 'Shop::place_order']"
json_is 'j["stacks"][0]["why"]' "needs disk space and gets none"
# By default, a round of queries follows the first answer.
json_is 'len(j["rounds"]) >= 1, 0 < j["first_answer_seconds"] < j["seconds"]' "(True, True)"
json_is '"append" in [v["query"] for v in j["values"] if "return" in v["query"] and v["score"] == 1][0]' True
json_is '[s["rank"] <= 3 for s in j["suspects"] if s["function"].startswith("Shop::keep")]' "[True]"
grep -q 'thread shop needs disk space and gets none: in Journal::append' explanation.md ||
  fail "the story does not say where the fault took effect"
nothing_left "after an explanation"
