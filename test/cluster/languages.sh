#!/usr/bin/env bash
# Tests victims in several languages, linked in several ways. Each gets EIO on its 3rd read of a named file. Victims
# with native functions are also killed, or held, at the 3rd entry of a function.
. "$(dirname "$0")/common.bash"
sources=$here/../programs/languages
cd "$work"
export TMPDIR=$work  # kept runs are removed with it
printf 'twelve bytes' > story.txt
nodes=()      # pairs of name and command
functions=()  # for each victim: its name, one of its functions, and the file with the symbols
missing=()

# make NAME COMPILER...: builds ./NAME, or reports that the compiler is missing.
make() {
  local victim=$1 tool=$2
  if ! command -v "$tool" >/dev/null; then missing+=("$victim: no $tool"); return 1; fi
  shift
  "$@" >"$victim.log" 2>&1 || { fail "cannot make $victim"; tail -5 "$victim.log" >&2; return 1; }
}
native() { nodes+=("$1|\"./$1\""); functions+=("$1|$2|$3"); }

make c-pie gcc -g -O1 -fPIE -pie -o c-pie "$sources/victim.c" && native c-pie victim_step ./c-pie
make c-static gcc -g -O1 -static -o c-static "$sources/victim.c" && native c-static victim_step ./c-static
make libvictim.so gcc -g -O1 -shared -fPIC -DSHARED_LIBRARY -o libvictim.so "$sources/victim.c" &&
  make c-shared gcc -g -O1 -DSHARED_STEP -o c-shared "$sources/victim.c" -L. -lvictim "-Wl,-rpath,$work" &&
  native c-shared victim_step ./libvictim.so
make c-stripped gcc -g -O1 -o c-stripped "$sources/victim.c" &&
  objcopy --only-keep-debug c-stripped c-stripped.debug && strip c-stripped &&
  objcopy --add-gnu-debuglink=c-stripped.debug c-stripped && native c-stripped victim_step ./c-stripped
make cc-pie g++ -g -O1 -o cc-pie "$sources/victim.cc" && native cc-pie tale::Victim::step ./cc-pie
make cc-static g++ -g -O1 -static -o cc-static "$sources/victim.cc" && native cc-static tale::Victim::step ./cc-static
make go-static go env GOROOT && CGO_ENABLED=0 make go-static go build -o go-static "$sources/victim.go" &&
  native go-static main.step ./go-static
make go-stripped go env GOROOT && CGO_ENABLED=0 make go-stripped go build \
  -ldflags "-s -w" -o go-stripped "$sources/victim.go" &&
  native go-stripped main.step ./go-stripped
make rust rustc -g -O -o rust "$sources/victim.rs" && native rust victim::Victim::step ./rust
make java javac -d . "$sources/Victim.java" && nodes+=("java|\"java\", \"-cp\", \"$work\", \"Victim\"")
if command -v python3 >/dev/null; then
  nodes+=("python|\"python3\", \"$sources/victim.py\"")
else
  missing+=("python: no python3")
fi
[ ${#nodes[@]} -gt 0 ] || skip "no compiler of any kind: ${missing[*]}"

{
  echo 'name = "languages"'
  echo '[deployment]'
  echo 'network = "host"'
  for node in "${nodes[@]}"; do
    echo "[[node]]"
    echo "name = \"${node%%|*}\""
    echo "command = [${node#*|}, \"$work/story.txt\", \"\${run_dir}/go\"]"
    for one in "${functions[@]}"; do
      [ "${one%%|*}" = "${node%%|*}" ] && echo "binary = \"${one##*|}\""
    done
  done
  cat <<'TOML'
[workload]
command = ["./workload.sh"]
timeout = "60s"
[oracle]
command = ["/bin/true"]
TOML
} > rose.toml
# The workload waits until each victim has printed its lines, or has ended.
cat > workload.sh <<'SH'
#!/bin/sh
touch go
for n in $ROSE_NODES; do
  while ! grep -q done "$n/stdout.log"; do
    "$ROSE_EXE" node status "$n" | grep -q down && break
    sleep 0.1
  done
done
SH
chmod +x workload.sh
for node in "${nodes[@]}"; do
  printf '[[fault]]\nid = "%s"\nkind = "syscall"\nnode = "%s"\nsyscall = "read"\npath = "*/story.txt"\ncount = 3\nerror = "EIO"\n' \
    "${node%%|*}" "${node%%|*}"
done | { echo 'version = 1'; cat; } > read.toml

expect 0 "$rose" replay read.toml -c rose.toml --runs 1 --keep --json
run=$(json 'j["run_results"][0]["directory"]')
printf 'read 1 = ok\nread 2 = ok\nread 3 = Input/output error\nread 4 = ok\nread 5 = ok\ndone\n' > wanted
for node in "${nodes[@]}"; do
  cmp -s wanted "$run/${node%%|*}/stdout.log" ||
    { fail "${node%%|*} saw other results:"; cat "$run/${node%%|*}/stdout.log" >&2; }
done
json_is 'all(f["fired"] == 1 for f in j["faults"])' True
# The stack where the call failed contains the function, called by main, with file and line if there is debug
# information.
for one in "${functions[@]}"; do
  IFS='|' read -r node function _ <<<"$one"
  ours="[f for s in j['stacks'] if s['fault'] == '$node' for f in s['frames'] if (f['function'] or '').split('(')[0].endswith(('$function', 'main'))][:2]"
  json_is "[f['function'].split('(')[0].endswith('$function') for f in $ours]" "[True, False]"
  [ "$node" = go-stripped ] || json_is "[f['line'] is not None and 'victim.' in f['file'] for f in $ours][0]" True
done

for one in "${functions[@]}"; do
  IFS='|' read -r node function _ <<<"$one"
  printf '[[fault]]\nid = "%s"\nkind = "crash"\nnode = "%s"\nwhen = [ { function = "%s", count = 3 } ]\n' "$node" \
    "$node" "$function"
done | { echo 'version = 1'; cat; } > functions.toml
expect 0 "$rose" replay functions.toml -c rose.toml --runs 1 --keep --json
run=$(json 'j["run_results"][0]["directory"]')
printf 'read 1 = ok\nread 2 = ok\n' > wanted
for one in "${functions[@]}"; do
  cmp -s wanted "$run/${one%%|*}/stdout.log" ||
    { fail "${one%%|*} was not killed at the third entry:"; cat "$run/${one%%|*}/stdout.log" >&2; }
done
json_is 'all(f["fired"] == 1 for f in j["faults"])' True
for one in "${functions[@]}"; do
  IFS='|' read -r node function _ <<<"$one"
  json_is "[s['frames'][0]['function'].split('(')[0].endswith('$function') for s in j['stacks'] if s['fault'] == '$node']" "[True]"
done
# A thread is held at the function and then continues. This harms no language's runtime.
for one in "${functions[@]}"; do
  IFS='|' read -r node function _ <<<"$one"
  printf '[[fault]]\nid = "%s"\nkind = "block"\nnode = "%s"\nat = { function = "%s" }\ncount = 3\nduration = "1s"\n' \
    "$node" "$node" "$function"
done | { echo 'version = 1'; cat; } > waits.toml
expect 0 "$rose" replay waits.toml -c rose.toml --runs 1 --keep --json
run=$(json 'j["run_results"][0]["directory"]')
printf 'read 1 = ok\nread 2 = ok\nread 3 = ok\nread 4 = ok\nread 5 = ok\ndone\n' > wanted
for one in "${functions[@]}"; do
  cmp -s wanted "$run/${one%%|*}/stdout.log" ||
    { fail "${one%%|*} did not go on:"; cat "$run/${one%%|*}/stdout.log" >&2; }
done
json_is '[f["id"] for f in j["run_results"][0]["faults"] if not f["fired"] or f["ended_ns"] - f["fired_ns"] < 1e9]' '[]'
echo "checked: $(printf '%s ' "${nodes[@]%%|*}")"
[ ${#missing[@]} -eq 0 ] || echo "not checked: ${missing[*]}"
