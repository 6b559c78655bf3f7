# Sourced by the install scripts of these examples: installs packages of Debian 12 at the version that has the bug.
# If that is impossible here, the script exits with status 77 and prints the reason as one line on stdout.

unavailable() { echo "$*"; exit 77; }

# This file prevents services from starting while their packages are installed, because each node runs its own server.
policy=/usr/sbin/policy-rc.d
made_policy=
end_policy() { if [ -n "$made_policy" ]; then rm -f "$policy"; fi; }

# debian PACKAGE[=VERSION]...: installs the packages that are missing. A version may end in '*'.
debian() {
  missing=
  for want in "$@"; do
    package=${want%%=*}
    version='*'
    if [ "$want" != "$package" ]; then version=${want#*=}; fi
    have=$(dpkg-query -W -f '${db:Status-Status} ${Version}' "$package" 2> /dev/null) || have=
    # shellcheck disable=SC2254
    case $have in
      "installed "$version) ;;
      "installed "*) unavailable "$package ${have#installed } is installed here, and the bug is in $version" ;;
      *) missing="$missing $want" ;;
    esac
  done
  if [ -z "$missing" ]; then return 0; fi
  if [ "$(id -u)" -ne 0 ]; then unavailable "only root can install$missing"; fi
  command -v apt-get > /dev/null || unavailable "$missing: packages of Debian 12, and apt-get is missing"

  echo "installing$missing" >&2
  trap end_policy EXIT
  if [ ! -e "$policy" ]; then
    made_policy=yes
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
  fi
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086
  if ! apt-get -o DPkg::Lock::Timeout=300 install -q -y --no-install-recommends $missing >&2; then
    # The first attempt failed: the lists of packages may be old or missing.
    apt-get -o DPkg::Lock::Timeout=300 update -q >&2 || unavailable "the package registry can't be reached"
    apt-get -o DPkg::Lock::Timeout=300 install -q -y --no-install-recommends $missing >&2 ||
      unavailable "apt-get can't install$missing"
  fi
  # Services that were installed here must not start at the next boot either.
  if [ -d /run/systemd/system ]; then
    for want in $missing; do
      for unit in $(dpkg -L "${want%%=*}" | sed -n 's,.*/systemd/system/\([^/]*[^@]\.service\)$,\1,p'); do
        systemctl disable -q "$unit" || true
      done
    done
  fi
}
