#!/usr/bin/env bash
# Programs in several languages, and their children, see the changed clock. The times of files stay real.
. "$(dirname "$0")/common.bash"
cd "$work"
export TMPDIR=$work

# Each program repeatedly writes a file, reads its clock and writes another file. It prints how far the clock is ahead
# of the times of both files, in ms. The fault's amount is between these two numbers, however long the program is
# delayed between the two files.
cat > clock.go <<'GO'
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	for {
		os.WriteFile(os.Args[1], []byte("x"), 0644)
		now := time.Now()
		os.WriteFile(os.Args[1]+".after", []byte("x"), 0644)
		before, err := os.Stat(os.Args[1])
		after, err2 := os.Stat(os.Args[1] + ".after")
		if err == nil && err2 == nil {
			fmt.Printf("ahead %.3f %.3f\n", float64(now.Sub(before.ModTime()).Microseconds())/1000, float64(now.Sub(after.ModTime()).Microseconds())/1000)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
GO
cat > Clock.java <<'JAVA'
import java.nio.file.*;
import java.time.*;

class Clock {
  public static void main(String[] words) throws Exception {
    Path file = Path.of(words[0]), other = Path.of(words[0] + ".after");
    for (;;) {
      Files.writeString(file, "x");
      Instant now = Instant.now();
      Files.writeString(other, "x");
      System.out.printf("ahead %.3f %.3f%n", since(file, now), since(other, now));
      Thread.sleep(2);
    }
  }

  static double since(Path file, Instant now) throws Exception {
    return Duration.between(Files.getLastModifiedTime(file).toInstant(), now).toNanos() / 1e6;
  }
}
JAVA
cat > clock.py <<'PY'
import os, sys, time
names = sys.argv[1], sys.argv[1] + ".after"
def write(name):
    with open(name, "w") as file:
        file.write("x")
while True:
    write(names[0])
    now = time.time_ns()
    write(names[1])
    print("ahead %.3f %.3f" % tuple((now - os.stat(name).st_mtime_ns) / 1e6 for name in names), flush=True)
    time.sleep(0.002)
PY
cat > clock.sh <<'SH'
while :; do
  : > "$1"
  now=$(date +%s%N)
  : > "$1.after"
  echo "ahead $(((now - $(stat -c %.9Y "$1" | tr -d .)) / 1000000)) $(((now - $(stat -c %.9Y "$1.after" | tr -d .)) / 1000000))"
  sleep 0.01
done
SH
nodes=()
[ -z "$(command -v go)" ] || { CGO_ENABLED=0 go build -o clock-go clock.go && nodes+=('go|"./clock-go"'); }
[ -z "$(command -v javac)" ] || { javac -d . Clock.java && nodes+=("java|\"java\", \"-cp\", \"$work\", \"Clock\""); }
[ -z "$(command -v python3)" ] || nodes+=("python|\"python3\", \"$work/clock.py\"")
nodes+=("shell|\"sh\", \"$work/clock.sh\"")

{
  printf 'name = "clocks"\n[deployment]\nnetwork = "host"\n'
  for node in "${nodes[@]}"; do
    printf '[[node]]\nname = "%s"\ncommand = [%s, "file"]\nready = { log = "ahead", timeout = "60s" }\n' "${node%%|*}" \
      "${node#*|}"
  done
  printf '[workload]\ncommand = ["./workload.sh"]\ntimeout = "120s"\n[oracle]\ncommand = ["/bin/true"]\n'
} > rose.toml
{
  echo 'version = 1'
  for node in "${nodes[@]}"; do
    printf '[[fault]]\nid = "%s"\nkind = "clock"\nnode = "%s"\nshift = "+1h"\n' "${node%%|*}" "${node%%|*}"
  done
} > schedule.toml
cat > workload.sh <<'SH'
#!/bin/sh
# The workload waits until each program has printed enough.
for node in $ROSE_NODES; do
  while [ "$(grep -c ahead "$ROSE_RUN_DIR/$node/stdout.log")" -lt 100 ]; do sleep 0.1; done
  # leave out lines that were printed after the faults had ended, because they show the real time
  head -100 "$ROSE_RUN_DIR/$node/stdout.log" > "$ROSE_RUN_DIR/$node/seen"
done
SH
chmod +x workload.sh
expect 0 "$rose" replay schedule.toml -c rose.toml --runs 1 --report report --json
json_is '[f["fired"] for f in j["faults"]]' "[$(printf '1, %.0s' "${nodes[@]}" | sed 's/, $//')]"
for node in "${nodes[@]}"; do
  name=${node%%|*}
  # The kernel sets the time of a file to that of its last timer tick, which was at most 10 ms earlier.
  awk -v name="$name" '
    $1 == "ahead" { ++looks; if ($2 < 3600000 - 1 || $3 > 3600000 + 15) { ++wrong; print name ": " $0 } }
    END { printf "%s: %d of %d clock readings were wrong\n", name, wrong, looks; exit !(looks == 100 && !wrong) }' \
    report/runs/run-0001/"$name"/seen || fail "$name does not see the clock shifted by an hour"
done
