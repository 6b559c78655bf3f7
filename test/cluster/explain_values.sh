#!/usr/bin/env bash
# rose explain --ask and --deepen on a planted failure find the decisive value, whether the user or rose itself queries
# it.
. "$(dirname "$0")/common.bash"
for need in ip gcc python3; do command -v $need > /dev/null || skip "$need is missing"; done
rose=$(realpath "$rose")
export TMPDIR=$work
cp -r "$here/../planted" "$work/planted"
cd "$work/planted/scf-by-path"
rm -rf -- build
./install || fail "scf-by-path cannot be built"

# The program that a launcher script starts is found.
printf '#!/bin/sh\nset -eu\nexec "$(dirname "$0")/build/store" "$@"\n' > launch
chmod +x launch
sed -i 's|"build/store"|"./launch"|' rose.toml

# `bad` contains the error of the failed write. Only failing runs give up because of it and call note().
line=$(grep -n 'errno = bad;' store.c | cut -d: -f1)
expect 0 "$rose" explain schedule.toml -c rose.toml --runs 4 --jobs 4 --ask "store.c:$line:bad" 'request(line)' \
  --deepen -o "$work/why.md" --report "$work/report" --json
cp "$work/out" "$work/all.json"
cp "$work/err" "$work/all.err"
json_is 'j["verdict"]' explained
says err "store: it runs .*/build/store"
bad='next(v for v in j["values"] if v["query"].endswith(":bad"))'
json_is "$bad[\"type\"], $bad[\"node\"]" "('int', 'store')"
# The queries of the user are repeated in each round, which makes 4 failing and 4 correct runs. The runs of all rounds
# are compared together. A round whose values distinguish the sides less well than the rounds before it is left out.
joined=8
if grep -q 'could not be compared' "$work/out"; then joined=4; fi
json_is "[(c[\"value\"], c[\"runs\"] >= $joined) for c in $bad[\"failing\"]]" "[('28', True)]"
json_is "[(c[\"value\"], c[\"runs\"] >= $joined) for c in $bad[\"sound\"]]" "[('0', True)]"
json_is "$bad[\"score\"] > 0.5, $bad[\"first\"][\"value\"], $bad[\"first\"][\"node\"], $bad[\"first\"][\"thread\"] > 0" "(True, '28', 'store', True)"
# All requests are recorded, but their values do not distinguish failing from correct runs.
json_is 'next(v["score"] for v in j["values"] if v["query"] == "request(line)")' 0.0
# On a busy machine, all runs of a round may be inconclusive. Then rose reports this, and the earlier rounds count.
if grep -q 'could not be compared' "$work/out"; then echo "the last round could not be compared" >&2; else
  # begin_epoch() is inlined into store(), so its call is seen there, but it is a call of begin_epoch().
  json_is 'any(v["query"] == "store:calls" and v["score"] > 0 for v in j["values"])' True
  json_is 'any(d["what"].startswith("begin_epoch calls note (store.c:") and d["failing"] == 1 and d["sound"] == 0 for d in j["differences"])' True
fi
json_is 'any(v["query"] == "note(format)" and v["score"] > 0 for v in j["values"])' True
# The callers of note() were queried, too.
json_is 'any(d["what"].startswith("note is called by begin_epoch (store.c:") and d["failing"] == 1 and d["sound"] == 0 for d in j["differences"])' True
json_is '1 <= len(j["rounds"]) <= 4 and any(r["differing"] > 0 for r in j["rounds"])' True
json_is 'all(r["runs"] > 0 and r["seconds"] > 0 and 0 <= r["share"] < 1 for r in j["rounds"])' True
json_is 'any(l["first_wrong"] for l in j["story"])' True
[ "$failures" -eq 0 ] || python3 - "$work/all.json" >&2 <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
for what in ("rounds", "values", "differences", "not_told"): print(what, *j[what], sep="\n  ")
PY
[ "$failures" -eq 0 ] || cat "$work/all.err" >&2
grep -q '^## In short' "$work/why.md" || fail "explanation.md lacks the section 'In short'"
for what in 'Root fault' 'The code that received it' 'The first difference to correct runs' \
  'The first suspects' 'Symptom'; do
  grep -q "$what" "$work/why.md" || fail "explanation.md reports nothing about it: $what"
done
grep -q '^## Rounds of queries' "$work/why.md" || fail "explanation.md lacks the rounds of queries"
grep -q 'Requested values' "$work/report/report.html" || fail "the page does not show the values"
nothing_left "by explain"

# For a value that cannot be read, a reason is given. A name that does not exist is an error before any run.
expect 2 "$rose" explain schedule.toml -c rose.toml --ask 'request(lines)'
says err "line"
expect 2 "$rose" explain schedule.toml -c rose.toml --ask "store.c:$line:good"
says err "in scope"
expect 2 "$rose" explain schedule.toml -c rose.toml --ask 'store[1]'
says err "f:return"

# For a program without symbols, rose reports what needs no symbols, and what to keep or install to get more. A launcher
# script may be slow even if there is no `ready`.
printf '#!/bin/sh\nsleep 1.5\nexec "$(dirname "$0")/launch" "$@"\n' > slowly
chmod +x slowly
sed '/^ready/d; s|"./launch"|"./slowly"|' rose.toml > slowly.toml
strip --strip-all build/store
"$rose" explain schedule.toml -c slowly.toml --runs 4 --jobs 4 -o "$work/bare.md" --json > "$work/out" 2> "$work/err" ||
  [ $? -eq 4 ] || fail "a program without symbols is not explained"
says err "store: it runs .*/build/store"
json_is 'any("build/store has no symbols" in one and "cc -g" in one and "/usr/lib/debug" in one for one in j["not_told"])' True
json_is 'any("frames have no name: install their debug symbols" in one for one in j["not_told"])' True
json_is 'any("EPOCH.new" in line["text"] for line in j["story"])' True
expect 2 "$rose" explain schedule.toml -c rose.toml --ask 'request(line)'
says err "stripped?"
