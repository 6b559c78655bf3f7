#!/usr/bin/env bash
# Installs the Debian packages that the given list files name, and prints them. Installed packages are left alone.
# Usage: cmake/install-packages.sh cmake/deps.txt [more lists...]
set -euo pipefail
missing=()
while read -r package; do
  [[ -z $package || $package == \#* ]] && continue
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done < <(cat "$@")
if [ ${#missing[@]} -eq 0 ]; then
  echo "packages: all of them are installed already"
  exit 0
fi
command -v apt-get >/dev/null || { echo "this set-up needs apt-get (Debian 12); install by hand: ${missing[*]}" >&2;
  exit 3; }
echo "packages: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# Some packages are servers, which tests start themselves. Therefore the system services of these packages must not
# start.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  printf '#!/bin/sh\nexit 101\n' > $policy
  chmod 755 $policy
fi
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
