#!/bin/sh
# Builds the kernel of the test machine (run.sh) from Debian's source package. It can replace a system call from a
# kprobe (bpf_override_return), which no kernel that Debian packages can do. If the kernel of this configuration exists
# already, nothing is built.
#
#   build-kernel.sh [--jobs N]
#
# The kernel is stored in ${XDG_CACHE_HOME:-~/.cache}/rose/vm/bzImage. Needs root once, to install the packages.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rose/vm
version=6.1
jobs=$(nproc)
while [ $# -gt 0 ]; do
  case $1 in
    --jobs) jobs=$2; shift 2 ;;
    *) sed -n '2,8p' "$0" >&2; exit 2 ;;
  esac
done

packages="linux-source-$version bc bison busybox-static cpio dwarves flex gcc kmod libelf-dev libssl-dev make qemu-system-x86
          xz-utils"
missing=
for package in $packages; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  echo "vm: installing$missing" >&2
  # shellcheck disable=SC2086
  apt-get install -y -qq --no-install-recommends $missing >&2
fi

source=/usr/src/linux-source-$version.tar.xz
stamp=$(cat "$here/kernel.config" "$here/build-kernel.sh" | sha256sum | cut -c1-16)-$(stat -c %s "$source")
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ -f "$cache/bzImage" ] && [ "$(cat "$cache/stamp" 2>/dev/null)" = "$stamp" ]; then
  echo "vm: $cache/bzImage is up to date" >&2
  exit 0
fi

tree=$cache/linux-source-$version
if [ ! -f "$tree/Makefile" ] || [ "$source" -nt "$tree/Makefile.rose" ]; then
  echo "vm: unpacking $source" >&2
  rm -rf "$tree"
  tar -C "$cache" -xf "$source"
  touch "$tree/Makefile.rose"
fi
echo "vm: building, about 15 minutes on two processors; the log is $cache/build.log" >&2
{
  make -C "$tree" defconfig kvm_guest.config
  (cd "$tree" && KCONFIG_CONFIG=.config scripts/kconfig/merge_config.sh -m .config "$here/kernel.config")
  make -C "$tree" olddefconfig
  make -C "$tree" -j"$jobs" LOCALVERSION=-rose bzImage
} >"$cache/build.log" 2>&1 || {
  tail -n 30 "$cache/build.log" >&2
  echo "vm: the build failed" >&2
  exit 1
}
# If the configuration rejected an option, the guest would fail later, so report this now.
grep '^CONFIG_' "$here/kernel.config" | while read -r line; do
  grep -qx "$line" "$tree/.config" || echo "vm: warning: the kernel has no $line" >&2
done
cp "$tree/arch/x86/boot/bzImage" "$cache/bzImage"
echo "$stamp" >"$cache/stamp"
echo "vm: built $cache/bzImage" >&2
