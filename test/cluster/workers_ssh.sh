#!/usr/bin/env bash
# Workers on another host, over ssh, with the test's own sshd on the loopback interface. The search is the same as
# without workers. A lost connection costs only time, and nothing is left behind.
. "$(dirname "$0")/common.bash"
sshd=/usr/sbin/sshd
[ -x $sshd ] && command -v ssh >/dev/null || skip "needs openssh-server and openssh-client"
! grep -q '^root:!' /etc/shadow || skip "root is locked, so sshd lets nobody in as root"
. "$here/workers.bash"

mkdir "$work/ssh"
ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/key"
cp "$work/ssh/key.pub" "$work/ssh/authorized"
port=$((20000 + $$ % 10000))
cat > "$work/ssh/config" <<CONF
ListenAddress 127.0.0.1
Port $port
HostKey $work/ssh/host
AuthorizedKeysFile $work/ssh/authorized
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
SetEnv TMPDIR=$TMPDIR ROSE_CGROUP_PARENT=$cgroups PATH=$PATH
CONF
echo "[127.0.0.1]:$port $(cat "$work/ssh/host.pub")" > "$work/ssh/known"
# Before it authenticates, sshd changes its root to this folder. The folder stays, because another test may use it.
mkdir -p -m 755 /run/sshd
$sshd -D -e -f "$work/ssh/config" 2>"$work/ssh/log" &
sshd_pid=$!
stop_sshd() {
  kill $sshd_pid 2>/dev/null || true
  wait $sshd_pid 2>/dev/null || true
}
trap 'status=$?; stop_sshd; (exit $status); finish' EXIT
until_true 60 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port" || { cat "$work/ssh/log" >&2; exit 1; }

# The configuration above, with workers on a host.
options="\"-F\", \"none\", \"-p\", \"$port\", \"-i\", \"$work/ssh/key\", \"-o\", \"UserKnownHostsFile=$work/ssh/known\", \"-o\", \"StrictHostKeyChecking=yes\""
sed -i "s|^exclude = .*|&\nhosts = [\"127.0.0.1\"]\nworker = \"$rose\"\nengine_options = [$options]|" rose.toml

diagnose far --engine ssh --workers 2
# Cut the connection on the server's side during a run, so that the worker sees the end of its input.
until_true 120 eval "ended || [ \$(runs far) -ge 3 ]"
if ended; then fail "the diagnosis ended after $(runs far) runs"; fi
sessions=$(pgrep -P $sshd_pid || true)
[ -n "$sessions" ] || fail "there is no session"
for one in $sessions; do kill -KILL "$one" 2>/dev/null || true; done
ends_with 0 far
[ "$(result far)" = "$(result here)" ] || { fail "by ssh: the search differs"; diff <(result here) <(result far) >&2 ||
  true; unclear far >&2; }
grep -q '(127.0.0.1) has ended' "$work/far.err" || fail "the lost connection is not reported"
until_true 60 no_folders
nothing_left "by workers over ssh"

# If no server answers, this is reported soon, with ssh's own message.
sed -i 's|"-p", "[0-9]*"|"-p", "1"|' rose.toml
expect 3 "$rose" diagnose --trace dump.jsonl -c rose.toml -o "$work/x.toml" --engine ssh
says err 'no worker is left to make runs: worker .* \(127.0.0.1\) has ended: ssh: connect to host 127.0.0.1 port 1: Connection refused'
nothing_left "in the end"
