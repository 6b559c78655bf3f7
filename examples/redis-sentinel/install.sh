#!/bin/sh
# Installs what this example needs from Debian 12: Redis, Sentinel, Python. Works twice in a row.
# The packages' own services are not started: each node of the example runs its own.
set -eu

missing=
for need in redis-server:redis-server redis-sentinel:redis-sentinel redis-cli:redis-tools python3:python3 ip:iproute2; do
  command -v "${need%%:*}" > /dev/null 2>&1 || missing="$missing ${need##*:}"
done
if [ -z "$missing" ]; then exit 0; fi
if [ "$(id -u)" -ne 0 ]; then
  echo "install.sh: these packages are missing and only root can install them:$missing" >&2
  exit 1
fi
echo "install.sh: installing$missing"

# Debian starts services when it installs them, unless this file says no.
policy=/usr/sbin/policy-rc.d
made_policy=
if [ ! -e "$policy" ]; then
  trap 'if [ -n "$made_policy" ]; then rm -f "$policy"; fi' EXIT
  made_policy=yes
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086
apt-get install -q -y --no-install-recommends $missing

# Nor shall those that came with this installation start at the next boot.
if [ -d /run/systemd/system ]; then
  for package in $missing; do
    case $package in
      redis-server | redis-sentinel) systemctl disable -q "$package" ;;
    esac
  done
fi
