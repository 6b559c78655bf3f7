#!/usr/bin/env bash
# Runs examples/README.md literally: writes its files, and runs its commands in order, except those for production.
# Usage: tutorial.sh ROSE BUILD
here=$(dirname "$(realpath "$0")")
. "$here/common.bash"
rose=$(realpath "$rose")
for tool in ip redis-server redis-cli prlimit; do
  command -v $tool > /dev/null || skip "$tool is missing"
done

mkdir "$work/bin" "$work/tutorial"
ln -s "$rose" "$work/bin/rose"
export PATH=$work/bin:$PATH
cd "$work/tutorial"
python3 - "$here/../../examples/README.md" << 'EOF'
import pathlib, re, sys
text = pathlib.Path(sys.argv[1]).read_text()
commands = []
for language, block in re.findall(r"^```(\w*)\n(.*?)^```\s*$", text, flags=re.M | re.S):
    name = re.match(r"# (\S+\.(?:toml|sh))\n", block)
    if name:
        file = pathlib.Path(name[1])
        file.write_text(block[name.end():])
        if file.suffix == ".sh":
            file.chmod(0o755)
    elif language in ("", "sh") and "--control" not in block:
        commands += block.replace("\\\n", " ").splitlines()
pathlib.Path("commands").write_text("\n".join(commands) + "\n")
EOF
[ "$(grep -c '^rose ' commands)" -ge 6 ] || fail "examples/README.md shows only: $(cat commands)"
# A test has less time than a user, so fewer runs confirm the schedule. Minimisation is kept, because on a busy machine
# several calls that fail for one cause are found together, and not every run makes all of them.
sed -i 's/^jobs = 2$/jobs = 4\nconfirm_runs = 4/' rose.toml
grep -q confirm_runs rose.toml || fail "rose.toml has no line 'jobs = 2'"

while read -r command; do
  expect 0 sh -c "$command" < /dev/null
  case $command in
    'rose trace'*) says out 'reproduced: the oracle found the bug' ;;
    *--summary*) says out 'new .*openat EMFILE .*temp-.*rdb' ;;
    'rose diagnose'*) says out 'fail the 1st openat of \*/temp-\*\.rdb on primary with EMFILE' ;;
  esac
done < commands
[ -s report/report.html ] || fail "there is no report"
[ -s replay.xml ] || fail "there is no replay.xml"
