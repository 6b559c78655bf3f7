#!/usr/bin/env bash
# The outer functions on the stack of the first call that only failing runs make are suspects, too, if frame pointers
# lead to them, as in Go.
. "$(dirname "$0")/common.bash"
command -v go >/dev/null || skip "no go"
cd "$work"
export TMPDIR=$work
mkdir case
cd case
printf 'module example.org/shop\n\ngo 1.19\n' > go.mod
cat > shop.go <<'GO'
package main

import (
	"fmt"
	"os"
	"time"
)

var forgotten int

var noted int

// Called all the time where it was inlined, and by its own code only when something is forgotten.
func note() { noted++ }

var indirect = note

//go:noinline
func idle() { note() }

// The compiler inlines it.
func count(number int) { forgotten += number }

//go:noinline
func forget(number int) {
	count(number)
	indirect()
}

//go:noinline
func settle(number int, kept bool) {
	if !kept {
		forget(1)
	}
}

//go:noinline
func write(journal *os.File, number int, _ bool) bool {
	_, err := fmt.Fprintf(journal, "order %d\n", number)
	return err == nil
}

func keep(journal *os.File, numbers chan int, kept chan bool) {
	for number := range numbers {
		kept <- write(journal, number, true)
	}
}

//go:noinline
func order(numbers chan int, kept chan bool, number int) {
	numbers <- number
	settle(number, <-kept)
}

func main() {
	journal, err := os.Create("journal")
	if err != nil {
		panic(err)
	}
	numbers, kept := make(chan int), make(chan bool)
	go keep(journal, numbers, kept)
	for number := 0; ; number++ {
		if _, err := os.Stat("end"); err == nil {
			break
		}
		idle()
		order(numbers, kept, number)
		time.Sleep(20 * time.Millisecond)
	}
	fmt.Printf("forgotten %d\n", forgotten)
	time.Sleep(time.Hour)
}
GO
CGO_ENABLED=0 go build -buildvcs=false -o shop . || skip "go cannot build"
cat > workload <<'END'
#!/bin/sh
sleep 0.5
touch n1/end
until grep -q forgotten n1/stdout.log; do sleep 0.05; done
END
cat > oracle <<'END'
#!/bin/sh
grep -q 'forgotten [1-9]' n1/stdout.log || exit 1
echo "it is incomplete"
END
chmod +x workload oracle
cat > rose.toml <<'TOML'
[deployment]
subnet = "10.91.12.0/24"
[[node]]
name    = "n1"
command = ["./shop"]
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
expect 0 "$rose" explain schedule.toml -c rose.toml --runs 4 -o why.md --report report --json
decided='[(s["function"], round(s["features"].get("decided-first", 0), 2)) for s in j["suspects"]]'
json_is "sorted(s for s in $decided if s[1] > 0)" "[('main.main', 0.67), ('main.order', 0.82), ('main.settle', 1.0)]"
json_is 'any(s["function"] == "main.count" and s["features"].get("differs", 0) > 0 for s in j["suspects"])' True
outer='next(s["why"] for s in j["suspects"] if s["function"] == "main.order")'
json_is "\"on the stack of that call: it calls main.settle (shop.go:\" in $outer" True
# A parameter without a name cannot be queried, but the other parameters of the function are queried.
json_is 'len(j["rounds"]) == 1 and "main.write" in j["rounds"][0]["functions"]' True
json_is 'any("invalid query" in limit for limit in j["not_told"])' False
cp "$work/out" "$work/first.json"
expect 0 "$rose" explain --from report --json
json_is 'j["suspects"] == json.load(open("'"$work"'/first.json"))["suspects"]' True
nothing_left "by explain"
