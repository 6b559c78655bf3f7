#!/usr/bin/env bash
# rose trace finds units, containers and pods by their cgroups, follows them through restarts, and waits for those that
# do not run yet.
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/tracing.bash"
cd "$work"
[ -n "$cgroup2" ] || skip "cgroup v2 is not mounted"
id() { head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
mkdir tools
export PATH=$work/tools:/usr/sbin:/usr/bin:/sbin:/bin

docker=$(id) dockerfs=$(id) podman=$(id) cri=$(id) crio=$(id) nerd=$(id)
uid=6f1d0c1e-8f5e-4a58-9d0c-$(id | cut -c1-12)
slice=kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${uid//-/_}.slice
folders=(
  "system.slice/docker-$docker.scope" "docker/$dockerfs" "machine.slice/libpod-$podman.scope" "k8s.io/rose-test-$$"
  "$slice/cri-containerd-$cri.scope" "$slice/cri-containerd-$(id).scope" "kubepods/pod$uid-b/$crio" "default/$nerd"
)
for folder in "${folders[@]}"; do make_cgroup "$folder"; done
start_trace --node "docker=container:$docker" --node "dockerfs=container:${dockerfs:0:12}" \
  --node "podman=container:${podman:0:20}" --node "ctr=container:rose-test-$$" \
  --node "pod=container:pod:$uid" --node "crio=container:$crio" --node "podb=container:pod:$uid-b" \
  --node "nerd=container:$nerd"
fail_in "${folders[0]}" /rose-docker
fail_in "${folders[1]}" /rose-dockerfs
fail_in "${folders[2]}" /rose-podman
fail_in "${folders[3]}" /rose-ctr
fail_in "${folders[4]}" /rose-pod-1
fail_in "${folders[5]}" /rose-pod-2
fail_in "${folders[6]}" /rose-crio
fail_in "${folders[7]}" /rose-nerd
# This container of the pod starts later.
late=$slice/cri-containerd-$(id).scope
make_cgroup "$late"
fail_in "$late" /rose-pod-3
stop_trace
has docker /rose-docker
has dockerfs /rose-dockerfs
has podman /rose-podman
has ctr /rose-ctr
has crio /rose-crio
has nerd /rose-nerd
for n in 1 2 3; do has pod /rose-pod-$n; done

# One target cannot be two nodes.
expect 2 "$rose" trace --node "a=container:$docker" --node "b=container:$docker" -o d.bin
says err "belongs to two nodes"
expect 2 "$rose" trace --node a=pid:$$ --node b=pid:$$ -o d.bin
says err "belongs to two nodes"

# If several containers match a prefix, they are listed. If none matches, a hint is printed.
twin=${docker:0:63}$([ "${docker:63}" = 0 ] && echo 1 || echo 0)
make_cgroup "system.slice/docker-$twin.scope"
expect 2 "$rose" trace --container "${docker:0:60}" -o d.bin
says err "is the beginning of 2 container ids"
says err "$docker"
says err "$twin"
mkdir no-tools
PATH=$work/no-tools expect 2 "$rose" trace --container rose-no-such-one -o d.bin
says err "neither docker, podman, nerdctl nor crictl"
expect 2 "$rose" trace --container pod:rose-no-such-pod -o d.bin
says err "$uid"

# A tool resolves the name. It is executed without a shell.
cat > tools/docker <<TOOL
#!/bin/sh
[ "\$1 \$2 \$3" = "inspect --type container" ] || exit 1
[ "\$7" = 'my database; touch x' ] && echo "$dockerfs 0"
TOOL
chmod +x tools/docker
start_trace --node "db=container:my database; touch x"
fail_in "${folders[1]}" /rose-by-name
stop_trace
has db /rose-by-name
[ ! -e x ] || fail "a container's name was executed"
PATH=$work/tools expect 2 "$rose" trace --container rose-no-such-one -o d.bin
says err "docker does not know the name"

# Other names of the nodes are recorded: those that the tools print, and those that --label gives.
cat > tools/docker <<TOOL
#!/bin/sh
[ "\$1 \$2 \$3 \$4 \$5" = "inspect --type container -- $docker" ] || exit 1
cat <<'JSON'
[{"Id": "$docker", "Name": "/shop-db-1", "Config": {"Labels": {"com.docker.compose.project": "shop", "com.docker.compose.service": "db", "else": "left out"}}}]
JSON
TOOL
cat > tools/crictl <<TOOL
#!/bin/sh
case "\$*" in
  "inspect --output json $cri") echo '{"status": {"metadata": {"name": "etcd"}, "labels": {"io.kubernetes.pod.name": "etcd-0", "io.kubernetes.pod.namespace": "prod"}}}' ;;
  "pods --output json --label io.kubernetes.pod.uid=$uid") echo '{"items": [{"metadata": {"name": "etcd-0", "namespace": "prod"}}]}' ;;
  *) exit 1 ;;
esac
TOOL
chmod +x tools/crictl
# label LINE: checks that the dump's header has this label.
label() {
  head -n 1 "$work/events" | python3 -c 'import json, sys; sys.exit(sys.argv[1] not in json.load(sys.stdin)["meta"]["labels"])' "$1"
}
start_trace --node "a=container:$docker" --node "b=container:$cri" --label cluster=east --label 'team=storage people'
stop_trace
for line in "a=container:$docker" a=name:shop-db-1 a=project:shop a=service:db a=cluster:east "b=container:$cri" \
  b=name:etcd b=pod:etcd-0 b=namespace:prod \
  b=cluster:east 'b=team:storage people'; do
  label "$line" || fail "the dump lacks '$line': $(head -n 1 "$work/events")"
done
label "a=else:left out" && fail "a label with an unknown key is in the dump"
expect 0 "$rose" dump show "$work/dump.bin"
says out "# a: container $docker, name shop-db-1, project shop, service db, cluster east, team storage people"
start_trace --node "p=container:pod:$uid"
stop_trace
for line in "p=pod-uid:$uid" p=pod:etcd-0 p=namespace:prod; do label "$line" || fail "the dump lacks '$line'"; done
for bad in cluster =east cluster= 'cl uster=east'; do
  expect 2 "$rose" trace --container "$docker" --label "$bad" -o d.bin
  says err "write KEY=VALUE"
done
rm tools/docker tools/crictl

# A unit that does not run yet is started, and then restarted.
cat > tools/systemctl <<TOOL
#!/bin/sh
for unit; do :; done
case \$unit in
  rose-test-*) printf 'Id=%s.service\nLoadState=loaded\nControlGroup=\nSlice=system-rose.slice\nMainPID=0\n' "\$unit" ;;
  *) printf 'Id=%s\nLoadState=not-found\nControlGroup=\nSlice=\nMainPID=0\n' "\$unit" ;;
esac
TOOL
chmod +x tools/systemctl
unit=system.slice/system-rose.slice/rose-test-$$.service
start_trace --unit rose-test-$$ --node "other=unit:rose-test-other-$$"
says trace.err "rose-test-$$.service is not running: it is traced from its start"
for n in 1 2 3; do
  make_cgroup "$unit"
  fail_in "$unit" /rose-unit-$n
  remove_cgroup "$unit"
done
make_cgroup "system.slice/system-rose.slice/rose-test-other-$$.service"
fail_in "system.slice/system-rose.slice/rose-test-other-$$.service" /rose-other
stop_trace
for n in 1 2 3; do has "$(hostname)" /rose-unit-$n; done
has other /rose-other
label "other=unit:rose-test-other-$$" || fail "the dump does not name the unit"
expect 2 "$rose" trace --unit rose-unknown.service -o d.bin
says err "there is no unit rose-unknown.service"

# If systemd does not answer, the name of the cgroup's folder decides.
printf '#!/bin/sh\nexit 1\n' > tools/systemctl
start_trace --unit "rose-test-other-$$"
fail_in "system.slice/system-rose.slice/rose-test-other-$$.service" /rose-by-folder
stop_trace
has "$(hostname)" /rose-by-folder
expect 2 "$rose" trace --unit "rose-test-none-$$" -o d.bin
says err "no cgroup below"

# Several targets without a name are one node, and a note explains how to separate them.
start_trace --container "$docker" --container "$podman"
says trace.err "2 units and containers form one node, '$(hostname)'; --node NAME=container:ID"
stop_trace

# Functions of a profile. If the name of a host is not that of a node, the host may run any node. A node with a known
# name has its own functions.
victim=$build/test/programs/trace_victim
[ -x "$victim" ] || { [ $failures -eq 0 ]; exit; }
python3 - "$victim" > profile.json <<'PY'
import json, sys
rare = {"node": "n1", "function": "rose_victim_rare", "binary": sys.argv[1], "count": 1, "per_second": 0.1, "infrequent": True}
print(json.dumps({"version": 1, "name": "victims", "runs": 1, "seconds": 10, "infrequent_below": 2.0, "failures": [], "state_changes": [],
                  "syscalls": {"n1": {"read": 1}, "n2": {"read": 1}}, "functions": [rare], "processes": [], "silences": []}))
PY
# entered NODE OPTION...: prints how often the function is recorded for a victim that enters it once.
entered() {
  local node=$1
  shift
  mkfifo go
  "$victim" functions 1 < go & victim_pid=$!
  exec 8> go
  start_trace --profile profile.json "${@//PID/$victim_pid}"
  echo go >&8
  exec 8>&-
  wait $victim_pid
  stop_trace
  rm go
  count=$(python3 -c '
import json, sys
print(sum(e["type"] == "af" and e["node"] == sys.argv[2] and e["function"] == "rose_victim_rare" for e in map(json.loads, open(sys.argv[1])) if "type" in e))
' "$work/events" "$node")
}
entered "$(hostname)" --pid PID
[ "$count" = 1 ] || fail "the host's node has $count entries of the profile's function, not 1"
entered n1 --node n1=pid:PID
[ "$count" = 1 ] || fail "n1 has $count entries of its own function, not 1"
entered n2 --node n2=pid:PID
[ "$count" = 0 ] || fail "n2 has $count entries of a function that only n1 has"
