# Sourced by `node` of the etcd examples.

# etcd_member PROGRAM NAME OWN-IP IP,IP,IP OPTION...: this process becomes a member; the members are n1, n2, ... in the
# order of their addresses.
etcd_member() {
  program=$1 name=$2 ip=$3 members= number=0
  for peer in $(echo "$4" | tr , ' '); do
    number=$((number + 1))
    members=$members${members:+,}n$number=http://$peer:2380
  done
  shift 4
  exec "$program" --name "$name" --initial-cluster "$members" \
    --listen-peer-urls "http://$ip:2380" --initial-advertise-peer-urls "http://$ip:2380" \
    --listen-client-urls "http://$ip:2379" --advertise-client-urls "http://$ip:2379" "$@"
}
