#!/usr/bin/env bash
# A wrong clock is read as such by programs in several languages, and by what they start; the real time of what they do stands in the
# times of files.
. "$(dirname "$0")/common.bash"
cd "$work"
export TMPDIR=$work

# Each writes a file again and again, and says how far its clock is ahead of the time that the file has got, in ms.
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
		info, err := os.Stat(os.Args[1])
		if err == nil {
			fmt.Printf("ahead %.3f\n", float64(now.Sub(info.ModTime()).Microseconds())/1000)
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
    Path file = Path.of(words[0]);
    for (;;) {
      Files.writeString(file, "x");
      Instant now = Instant.now();
      System.out.printf("ahead %.3f%n", Duration.between(Files.getLastModifiedTime(file).toInstant(), now).toNanos() / 1e6);
      Thread.sleep(2);
    }
  }
}
JAVA
cat > clock.py <<'PY'
import os, sys, time
while True:
    with open(sys.argv[1], "w") as file:
        file.write("x")
    now = time.time_ns()
    print("ahead %.3f" % ((now - os.stat(sys.argv[1]).st_mtime_ns) / 1e6), flush=True)
    time.sleep(0.002)
PY
cat > clock.sh <<'SH'
while :; do
  : > "$1"
  now=$(date +%s%N)
  echo "ahead $(((now - $(stat -c %.9Y "$1" | tr -d .)) / 1000000))"
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
    printf '[[node]]\nname = "%s"\ncommand = [%s, "file"]\nready = { log = "ahead", timeout = "60s" }\n' "${node%%|*}" "${node#*|}"
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
# Until each has said enough.
for node in $ROSE_NODES; do
  while [ "$(grep -c ahead "$ROSE_RUN_DIR/$node/stdout.log")" -lt 100 ]; do sleep 0.1; done
  head -100 "$ROSE_RUN_DIR/$node/stdout.log" > "$ROSE_RUN_DIR/$node/seen"  # what comes when the faults are over has the real time
done
SH
chmod +x workload.sh
expect 0 "$rose" replay schedule.toml -c rose.toml --runs 1 --report report --json
json_is '[f["fired"] for f in j["faults"]]' "[$(printf '1, %.0s' "${nodes[@]}" | sed 's/, $//')]"
for node in "${nodes[@]}"; do
  name=${node%%|*}
  # The times of files are those of the last tick, 4 ms ago perhaps, and a program may have been kept waiting: the nearest counts.
  sort -n -k2 report/runs/run-0001/"$name"/seen | awk -v name="$name" '
    $1 == "ahead" { off = $2 - 3600000; if (off < 0) off = -off; if (least == "" || off < least) least = off; if (worst == "" || off > worst) worst = off }
    END { printf "%s: off by %.3f ms at best, %.3f at worst\n", name, least, worst; exit !(least != "" && least < 5 && worst < 60000) }' ||
    fail "$name does not see the hour"
done
