#!/usr/bin/env bash
# Workers of a real Slurm, with the test's own slurmctld and slurmd. If a worker is killed, a job is cancelled or
# slurmstepd is killed, no run is lost. The search is the same as without workers. Also measures how much faster four
# workers are than one. Runs only with ROSE_MEASURE=1, because the test takes minutes: Slurm may take long until it
# notices a loss.
. "$(dirname "$0")/common.bash"
[ "${ROSE_MEASURE:-0}" = 1 ] || skip "takes minutes: ROSE_MEASURE=1 asks for it"
for program in srun scancel squeue slurmctld slurmd; do
  command -v $program >/dev/null || [ -x /usr/sbin/$program ] || skip "needs $program (slurm-wlm)"
done
PATH=$PATH:/usr/sbin
. "$here/workers.bash"

mkdir "$work/slurm" "$work/slurm/state" "$work/slurm/spool"
host=$(hostname -s)
port=$((30000 + $$ % 10000))
export SLURM_CONF=$work/slurm/slurm.conf
cat > "$SLURM_CONF" <<CONF
ClusterName=rosetest
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 10000))
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation=$work/slurm/state
SlurmdSpoolDir=$work/slurm/spool
SlurmctldPidFile=$work/slurm/slurmctld.pid
SlurmdPidFile=$work/slurm/slurmd.pid
SlurmctldLogFile=$work/slurm/slurmctld.log
SlurmdLogFile=$work/slurm/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1
MailProg=/bin/true
SwitchType=switch/none
ReturnToService=2
MpiDefault=none
NodeName=lab NodeHostname=$host NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
CONF
# If only the loopback interface has an address, Slurm resolves no name.
if [ -z "$(ip -o addr show scope global)" ]; then
  ip link add slurm0 type veth peer name slurm1
  ip addr add 10.251.77.1/24 dev slurm0
  ip link set slurm0 up
  ip link set slurm1 up
fi
slurmctld -D -i >"$work/slurm/ctld.out" 2>&1 &
ctld=$!
slurmd -D -N lab >"$work/slurm/d.out" 2>&1 &
slurmd=$!
stop_slurm() {
  scancel --user=root 2>/dev/null || true
  until_true 60 eval '[ -z "$(steps)" ]' || true
  kill $slurmd $ctld 2>/dev/null || true
  wait $slurmd $ctld 2>/dev/null || true
}
# The children of this test's slurmd. They start in their own sessions and get another parent, so they are found by
# their folder.
steps() {
  local one
  for one in $(pgrep -x slurmstepd || true); do
    tr '\0' '\n' < "/proc/$one/environ" 2>/dev/null | grep -qxF "SLURM_CONF=$SLURM_CONF" && echo "$one"
  done
  return 0
}
worker_of() { pgrep -P "$1" || true; }
trap 'status=$?; stop_slurm; (exit $status); finish' EXIT
until_true 120 eval 'sinfo -h -o %t | grep -qx idle' || { tail -n 5 "$work"/slurm/*.log >&2; exit 1; }
sed -i "s|^exclude = .*|&\nworker = \"$rose\"|" rose.toml

diagnose far --engine slurm --workers 2
hurt() {  # hurt AFTER_RUNS COMMAND...: after this many runs, runs a command that ends both workers
  local at=$1
  shift
  until_true 240 eval "ended || [ \$(runs far) -ge $at ]"
  if ended; then fail "the diagnosis ended after $(runs far) runs"; return; fi
  "$@"
}
kill_workers() {
  for step in $(steps); do for one in $(worker_of "$step"); do kill -KILL "$one" 2>/dev/null || true; done; done
}
kill_steps() { for step in $(steps); do kill -KILL "$step" 2>/dev/null || true; done; }
hurt 2 kill_workers
hurt 4 scancel --user=root
hurt 6 kill_steps
ends_with 0 far
[ "$(result far)" = "$(result here)" ] || { fail "Slurm: the search differs"; diff <(result here) <(result far) >&2 ||
  true; }
[ "$(grep -c '(slurm) has ended\|(slurm) sent nothing' "$work/far.err")" -ge 3 ] ||
  { fail "the loss of workers is not reported"; tail -20 "$work/far.err" >&2; }
scancel --user=root  # because Slurm notices late that a slurmstepd was killed
until_true 120 no_folders
expect 0 "$rose" heal  # this removes what killed workers left, unless another worker has done that
nothing_left "by workers of Slurm"

# In the measurement, runs mostly sleep, so that parallel runs do not slow each other down.
sed -i 's/confirm_runs = 1/confirm_runs = 40/' rose.toml
sed -i 's/^sleep 0.4$/sleep 4/' rounds.sh
grep -qx 'sleep 4' rounds.sh || fail "runs do not wait"
for count in 1 4; do
  began=$(date +%s%N)
  diagnose measure$count --engine slurm --workers $count
  ends_with 0 measure$count
  eval "took$count=$((($(date +%s%N) - began) / 1000000))"
done
echo "$(runs measure1) runs: ${took1} ms with one worker, ${took4} ms with four: $((100 * took1 / took4)) %"
