#!/usr/bin/env bash
# Published Kubernetes manifests are drafted and run. They contain a Redis cluster whose pods find each other by the
# names of a service, with its ConfigMap, its volumes, its probe, and the job that forms the cluster. The test uses a
# real engine, and an image that it builds here.
. "$(dirname "$0")/common.bash"
. "$here/engine.bash"
for program in redis-server redis-cli awk; do command -v $program >/dev/null || skip "no $program"; done
cd "$work"
export TMPDIR=$work
mkdir -p root/bin root/etc root/tmp root/usr
ln -s ../bin root/usr/bin
for tool in sh sed awk grep getent sleep hostname redis-server redis-cli; do
  path=$(command -v $tool)
  cp -L "$path" root/bin/$tool
  ldd "$path" | grep -o '/[^ ]*' | while read -r library; do install -D "$library" "root$library"; done
done
for library in /lib/*/libnss_files.so.2; do [ ! -e "$library" ] || install -D "$library" "root$library"; done
echo 'hosts: files dns' > root/etc/nsswitch.conf
echo 'multi on' > root/etc/host.conf  # as Debian's images have it
echo 'root:x:0:0::/:/bin/sh' > root/etc/passwd
import_image root docker.io/library/redis:7.0-alpine
mkdir deployment
cp "$here/../manifests/redis.yaml" deployment/
expect 0 "$rose" init --manifest deployment/redis.yaml -o deployment/rose.toml --json
json_is 'j["nodes"]' "['redis-cluster-0', 'redis-cluster-1', 'redis-cluster-2']"
# In the draft, only the open questions are answered.
cat > deployment/workload.sh <<'SH'
#!/bin/sh
set -e
# A new master answers only some time after the others do, and each pod measures this time itself, so ask each of them.
for pod in 0 1 2; do
  name=redis-cluster-$pod.redis-cluster.default.svc.cluster.local
  until redis-cli -h $name cluster info | grep -q cluster_state:ok; do sleep 0.1; done
done
for i in $(seq 20); do redis-cli -c -h redis-cluster set "key:$i" "$i"; done
redis-cli -h redis-cluster-2 cluster nodes
SH
chmod +x deployment/workload.sh
python3 - <<'PY'
path = "deployment/rose.toml"
text = open(path).read().replace('command = "?"', 'command = ["./workload.sh"]')
text = text.replace("[deployment]\n", '[deployment]\nengine   = "podman"\n') + '\n[oracle]\ncommand = ["false"]\n'
open(path, "w").write(text)
PY
cat > calm.toml <<'TOML'
version = 1
[[fault]]
id = "calm"
kind = "pause"
node = "redis-cluster-1"
duration = "10ms"
optional = true
TOML
expect 1 "$rose" replay calm.toml -c deployment/rose.toml --runs 1 --keep --json
run=$(json 'j["run_results"][0]["directory"]')
[ "$(grep -c '^OK$' "$run/workload.log")" = 20 ] ||
  fail "the cluster does not serve: $(cat "$run/workload.log" "$run/form.log")"
[ "$(grep -c 'master' "$run/workload.log")" = 3 ] ||
  fail "no cluster of three: $(tail -5 "$run/workload.log")"
# The volume claim of the pod is a folder of the node, and its configuration comes from the ConfigMap.
[ -e "$run/redis-cluster-1/data/nodes.conf" ] ||
  fail "the node's volume is empty: $(ls "$run/redis-cluster-1")"
grep -q 'cluster-node-timeout 15000' deployment/rose.files/redis-cluster/redis.conf ||
  fail "the ConfigMap is not beside the draft"
nothing_left "after a run of a manifest"
no_containers "after a run of a manifest"
