# Sourced after common.bash by the tests of examples/. It has functions for profile, trace with the incident, diagnose
# and replay, which check the exit code and the --json result of each. With ROSE_TEST_LONG=1, diagnoses are complete, as
# for users. Otherwise nothing is minimised, so that each test takes only minutes.

# begin EXAMPLE: goes to a copy of the example that uses the programs of this build.
begin() {
  rose=$(realpath "$rose")
  build=$(realpath "$build")
  command -v ip > /dev/null || skip "ip (iproute2) is missing"
  cp -r "$here/../../examples/$1" "$work/example"
  cd "$work/example"
  # shellcheck disable=SC2016
  sed -i -e 's#${config_dir}/../../../build/release#'"$build#" -e "s#\.\./\.\./\.\./build/release#$build#" rose.toml
  if [ -z "${ROSE_TEST_LONG:-}" ]; then
    printf '\n[diagnose]\nsimplify = false\n' >> rose.toml
  fi
}

# step STATUS COMMAND...: like expect, but a failure ends the test, because the following commands need the result.
step() {
  local began=$SECONDS
  expect "$@"
  shift
  echo "$((SECONDS - began)) s: $* -> $(head -c 300 "$work/out" | tr '\n' ' ')"
  if [ $failures -gt 0 ]; then exit 1; fi
}

# whole_path EVENT KIND STAGE [LEVEL]: EVENT is a regex for a line of the dump as JSON Lines. KIND is the kind of fault
# to find. STAGE is the stage at which the diagnosis ends: `confirmed` measures the replay rate, `found` leaves that to
# the replay. LEVEL is the last level at which the fault may be found. It is needed if timers of the system decide
# whether a fault does harm: on a busy machine, one run of the right schedule may then miss, and the search finds the
# fault only at the next level.
whole_path() {
  local stage=$3
  [ -z "${ROSE_TEST_LONG:-}" ] || stage=minimised
  step 0 "$rose" profile -c rose.toml -o "$work/profile.json" --runs 1 --json
  [ "$(stat -c %a "$work/profile.json")" = 600 ] || fail "profile.json is not 0600"

  local incident=$PWD/incident
  if [ ! -e "$incident" ]; then incident=$incident.sh; fi
  step 0 "$rose" trace -c rose.toml --profile "$work/profile.json" --incident "$incident" -o "$work/dump.bin" --json
  json_is 'j["verdict"]' reproduced
  json_is 'j["lost"]' 0
  [ "$(stat -c %a "$work/dump.bin")" = 600 ] || fail "dump.bin is not 0600"

  step 0 "$rose" dump show "$work/dump.bin" --format jsonl
  says out "$1"

  step 0 "$rose" diagnose --plan --trace "$work/dump.bin" --profile "$work/profile.json" -c rose.toml --json
  json_is '[c["kind"] for c in j["candidates"] if c["rank"] == 1]' "['$2']"

  step 0 "$rose" diagnose --trace "$work/dump.bin" --profile "$work/profile.json" -c rose.toml \
    -o "$work/schedule.toml" --report "$work/diagnosis" --jobs 3 --stop-after "$stage" --json
  json_is 'j["verdict"]' reproduced
  json_is "1 <= j['level'] <= ${4:-1}" True
  [ "${4:-1}" -gt 1 ] || json_is '1 <= j["schedules"] <= 3' True
  [ "$stage" = found ] || json_is 'j["rate"] >= 0.8' True
  cp "$work/schedule.toml" "$work/out"
  says out "^kind *= *\"$2\""
  replays 3 "$work/schedule.toml" rose.toml --jobs 3
}
