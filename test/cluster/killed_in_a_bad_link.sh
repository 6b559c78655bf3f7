#!/usr/bin/env bash
# Rose is killed (-9) while it delays packets. Packets then pass again at once, and heal restores the settings of the
# machine's loopback interface.
. "$(dirname "$0")/common.bash"
cd "$work"
. "$here/killed.bash"
cat > schedule.toml <<'TOML'
version = 1
[[fault]]
id = "slow"
kind = "network"
node = "a"
peers = ["b"]
delay = "700ms"
TOML

settings() {
  for name in route_localnet accept_local rp_filter; do cat /proc/sys/net/ipv4/conf/lo/$name; done | tr '\n' ' '
}
# Other tests that delay packets may run in parallel. Wait until none of them uses the loopback interface.
at_rest() { [ ! -s /run/rose/loopback ]; }

until_true 120 at_rest || fail "the loopback interface is in use"
before=$(settings)
for network in netns host; do
  deployment $network
  killed $network
  until_true 120 at_rest || fail "$network: the loopback interface is still in use"
  [ "$(settings)" = "$before" ] || fail "$network: the loopback interface has '$(settings)' instead of '$before'"
  ip -o link 2>/dev/null | grep -q ' rosehold' && fail "$network: an interface was left" || true
done
