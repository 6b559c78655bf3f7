#!/usr/bin/env bash
# rose explain on planted failures: the function with the bug must be among the first three. The test also checks the
# JSON form, exit codes, and what is left behind.
. "$(dirname "$0")/common.bash"
for need in ip gcc g++ python3; do command -v $need > /dev/null || skip "$need is missing"; done
rose=$(realpath "$rose")
export TMPDIR=$work
cp -r "$here/../planted" "$work/planted"
cd "$work/planted"
rm -rf -- */build
./crash-between-writes/install || fail "crash-between-writes cannot be built"

# The node crashes between two writes of `checkpoint`, which does not happen in correct runs.
cd "$work/planted/crash-between-writes"
expect 0 "$rose" explain schedule.toml -c rose.toml --runs 4 --jobs 4 -o "$work/why.md" --report "$work/report" \
  --no-deepen --json --ask 'put:return' 'answer(arg1)'
json_is 'j["verdict"]' explained
json_is 'j["fault"]' kill
json_is '"checkpoint" in [s["function"] for s in j["suspects"][:3]]' True
json_is '[s["rank"] for s in j["suspects"]] == list(range(1, len(j["suspects"]) + 1))' True
json_is 'all(0 <= s["score"] <= 1 and s["why"] for s in j["suspects"])' True
json_is 'all(set(l) >= {"ts", "node", "text"} for l in j["story"]) and [l["ts"] for l in j["story"]] == sorted(l["ts"] for l in j["story"])' True
json_is '"kill" in j["story"][0]["text"] and "oracle" in j["story"][-1]["text"]' True
json_is 'all(set(s) >= {"fault", "node", "thread", "frames"} for s in j["stacks"])' True
json_is 'any(f["function"] == "checkpoint" and f["line"] > 0 for f in j["stacks"][0]["frames"])' True
json_is 'j["suspects"][0]["function"], j["suspects"][0]["line"] > 0' "('checkpoint', True)"
json_is 'j["runs"]["failing"], j["runs"]["sound"], j["seconds"] > 0' "(4, 4, True)"
json_is '[(v["query"], v["node"]) for v in j["values"]]' "[('put:return', 'shelf'), ('answer(arg1)', 'shelf')]"
json_is 'all({"query", "node", "failing", "sound", "score"} <= set(v) for v in j["values"])' True
json_is 'all(c["times"] >= c["runs"] > 0 or c["before"] > 0 for v in j["values"] for c in v["failing"] + v["sound"])' \
  True
json_is 'all(v["failing"] and v["sound"] for v in j["values"])' True
grep -q '^## Requested values' "$work/why.md" || fail "explanation.md lacks the requested values"
[ "$(stat -c %a "$work/why.md")" = 600 ] || fail "explanation.md is readable by others"
grep -q '^## Suspects' "$work/why.md" && grep -q 'checkpoint' "$work/why.md" ||
  fail "explanation.md lacks the suspects"
cmp -s "$work/why.md" "$work/report/explanation.md" || fail "the report's explanation.md differs"
cp "$work/report/explanation.json" "$work/out"
json_is 'j["verdict"]' explained
[ "$(wc -l < "$work/report/record.jsonl")" -ge 8 ] || fail "the record lacks runs"
nothing_left "by explain"

# Another user gets the same explanation from the kept runs, and these contain no path of this machine.
cp "$work/report/explanation.json" "$work/first.json"
expect 0 "$rose" explain --from "$work/report" --json -o "$work/again.md"
cmp -s "$work/why.md" "$work/again.md" ||
  fail "the explanation of the kept runs differs: $(diff "$work/why.md" "$work/again.md" | head -5)"
json_is '{k: v for k, v in j.items() if k != "explanation"} == {k: v for k, v in json.load(open("'"$work"'/first.json")).items() if k != "explanation"}' True
tail -n +2 "$work/report/explained.runs" | zstd -qdc | grep -qaF "$work" &&
  fail "the kept runs contain paths of this machine"
head -c 3000 "$work/report/explained.runs" > "$work/damaged"; mkdir "$work/other"; mv "$work/damaged" \
  "$work/other/explained.runs"
expect 2 "$rose" explain --from "$work/other"
rm "$work/other/explained.runs"; mkfifo "$work/other/explained.runs"
expect 2 timeout 60 "$rose" explain --from "$work/other"
expect 2 "$rose" explain --from "$work/planted"
expect 2 "$rose" explain --from "$work/report" schedule.toml
expect 2 "$rose" explain schedule.toml --redact
expect 2 "$rose" explain schedule.toml --deepen --no-deepen
expect 2 "$rose" explain --from "$work/report" --without no-such-feature
expect 0 "$rose" explain --from "$work/report" --without arrived,interrupted --json
json_is 'any({"arrived", "interrupted"} & set(s["features"]) for s in j["suspects"])' True
json_is 'j["suspects"][0]["score"] < json.load(open("'"$work"'/first.json"))["suspects"][0]["score"]' True
expect 0 "$rose" explain --show-weights --json
json_is '{w["name"] for w in j["weights"]} == {p["name"] for p in j["parts"]}, len(j["weights"]) > 9' "(True, True)"

# The checks below need no load, so their workload takes only a quarter of a second.
sed 's/range(200)/range(20)/; s/randrange(30, 180)/randrange(3, 18)/' workload > quick
chmod +x quick
sed -i 's|^command = \["./workload"\]|command = ["./quick"]|' rose.toml
grep -q quick rose.toml && ! cmp -s quick workload || fail "rose.toml or the workload is not the expected one"

# With a harmless fault, the bug does not occur, and nothing is explained.
cat > "$work/harmless.toml" << 'END'
version = 1
[[fault]]
id = "slow"
kind = "syscall"
node = "shelf"
syscall = "pwrite64"
path = "*/index"
delay = "10ms"
END
expect 1 "$rose" explain "$work/harmless.toml" -c rose.toml --runs 4 --jobs 2 -o "$work/none.md" --json
json_is 'j["verdict"], j["suspects"], j["story"], j["runs"]["reproduced"]' "('not-reproduced', [], [], 0)"

# If the fault never fires, the result is inconclusive.
sed -e 's/^path.*/path = "*\/no-such-file"/' "$work/harmless.toml" > "$work/never.toml"
expect 4 "$rose" explain "$work/never.toml" -c rose.toml --runs 4 --jobs 2 -o "$work/none.md" --json
json_is 'j["verdict"], j["runs"]["inconclusive"]' "('inconclusive', 4)"

# If the bug also occurs without faults, there are no correct runs to compare with.
sed -e '/^\[oracle\]/,$d' rose.toml > "$work/planted/crash-between-writes/always.toml"
printf '[oracle]\ncommand = ["/bin/true"]\n' >> always.toml
expect 4 "$rose" explain schedule.toml -c always.toml --runs 4 --jobs 2 -o "$work/none.md" --json
json_is 'j["verdict"], "without faults" in j["reason"]' "('inconclusive', True)"

# Invalid input is refused.
expect 2 "$rose" explain no-such-file.toml -c rose.toml
says err "no-such-file.toml"
printf 'version = 1\nname = "empty"\n' > "$work/empty.toml"
expect 2 "$rose" explain "$work/empty.toml" -c rose.toml
expect 2 "$rose" explain schedule.toml -c rose.toml --runs 0
expect 2 "$rose" explain schedule.toml -c rose.toml --runs 3
says err 'give --runs 4 or more'
expect 2 "$rose" explain schedule.toml -c rose.toml --ask 'chekpoint(arg1)'
says err "checkpoint"
expect 2 "$rose" explain schedule.toml -c rose.toml --ask 'checkpoint'
says err "f:return"

# If `rose explain` is interrupted during a run, nothing is left behind.
"$rose" explain schedule.toml -c rose.toml -o "$work/none.md" > "$work/out" 2> "$work/err" &
pid=$!
until_true 60 sh -c 'ls -d /run/netns/rose-*'
kill -INT $pid
status=0
wait $pid || status=$?
[ $status -ne 0 ] || fail "interrupted, explain exits with 0"
nothing_left "by the interrupted explain"
