#!/usr/bin/env bash
# examples/systems: each system must survive the fault of its schedule.toml, and its oracle checks the acknowledgements
# that its workload received. By default, only the fastest system is tested. To test others, on a machine with a
# network, name them after the build folder: `systems.sh build/release/rose build/release kafka hdfs`. In the suite,
# `install` has downloaded what it could.
. "$(dirname "$0")/common.bash"
command -v ip > /dev/null || skip "ip (iproute2) is missing"
rose=$(realpath "$rose")
examples=$(realpath "$here/../../examples/systems")
shift 2
[ $# -gt 0 ] || set -- postgresql

ran=0
reasons=
for system in "$@"; do
  folder=$examples/$system
  [ -d "$folder" ] || { fail "there is no examples/systems/$system"; continue; }
  if why=$(unavailable "examples/systems/$system"); then
    reasons="$reasons $system: $why;"
    continue
  fi
  status=0
  "$folder/install" > "$work/install.out" 2> "$work/install.err" || status=$?
  if [ $status -eq 77 ]; then
    reasons="$reasons $system: $(tail -n 1 "$work/install.out");"
    continue
  fi
  [ $status -eq 0 ] || { fail "$system: install exits $status: $(tail -n 3 "$work/install.err")"; continue; }

  ran=$((ran + 1))
  expect 0 "$rose" replay "$folder" --expect fixed --runs 1 --no-stacks --json
  if [ $failures -gt 0 ]; then break; fi
  echo "$system: survived its fault"
done
if [ -n "$reasons" ]; then echo "not run:$reasons"; fi
[ $ran -gt 0 ] || [ $failures -gt 0 ] || skip "none can be installed here:$reasons"
