#!/bin/sh
# Makes a folder with the arm64 packages of Debian 12 against which the preset arm64 compiles (cmake/deps.txt), and with
# the packages that test/vm/run.sh --arch arm64 needs to run the result. None of them is installed on this machine. If
# the folder exists already, nothing is downloaded; remove it to get the newest packages.
#
#   arm64-root.sh          prints the folder: ${XDG_CACHE_HOME:-~/.cache}/rose/arm64/root
#
# Packages are unpacked but not configured, so none of their programs runs on this machine. This script needs root once,
# to install the cross-compiler.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rose/arm64
root=$cache/root
missing=
for package in bpftool clang-19 debian-archive-keyring g++-aarch64-linux-gnu qemu-user-static; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  echo "arm64: installing$missing" >&2
  # shellcheck disable=SC2086
  apt-get install -y -qq --no-install-recommends $missing >&2
fi

# The packages to compile against, and the packages that the tests run. The compiler and the build tools are left out,
# because those of this machine are used.
compiled=$(sed -n '/^[^#]/p' "$here/deps.txt" |
  grep -vx 'ca-certificates\|cmake\|g++\|mold\|ninja-build\|pkg-config')
wanted="$compiled
  libc6-dev libstdc++-12-dev base-files base-passwd bash busybox-static coreutils dash diffutils e2fsprogs findutils
  gawk grep hostname iproute2 kmod libc-bin login mount nftables passwd procps python3 redis-server redis-sentinel
  runc conmon sed tar util-linux xz-utils zstd"
# shellcheck disable=SC2086
digest=$(printf '%s\n' $wanted | sha256sum | cut -c1-16)

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ "$(cat "$cache/packages" 2>/dev/null)" = "$digest" ]; then
  echo "$root"
  exit 0
fi

# The mirror that apt on this machine uses.
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
  sed -n '\,/debian/*$,{p;q;}')
apt=$cache/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
: >"$apt/status"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keyring] ${mirror:-http://deb.debian.org/debian/} bookworm main" >"$apt/sources.list"
of_arm64() {
  apt-get -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::Etc::sourcelist="$apt/sources.list" \
    -o Dir::Etc::sourceparts=- -o Acquire::Languages=none -o APT::Sandbox::User=root \
    -o Dir::State::status="$apt/status" -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -qq "$@"
}
of_arm64 update >&2
rm -f "$apt"/cache/archives/*.deb
echo "arm64: downloading the packages of Debian 12 for arm64" >&2
# shellcheck disable=SC2086
of_arm64 install --download-only -y --no-install-recommends $wanted >&2
rm -rf "$root" "$root.new"
# As on every Debian 12, /lib is a link to /usr/lib. tar keeps links to folders.
mkdir -p "$root.new/usr/bin" "$root.new/usr/sbin" "$root.new/usr/lib"
for folder in bin sbin lib; do ln -s "usr/$folder" "$root.new/$folder"; done
for package in "$apt"/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" |
    tar -C "$root.new" --keep-directory-symlink --exclude='./usr/share/doc' --exclude='./usr/share/man' \
      --exclude='./usr/share/locale' -xf -
done
# Folders and links that an installation would have created.
mkdir -p "$root.new/proc" "$root.new/sys" "$root.new/dev" "$root.new/run" "$root.new/tmp" "$root.new/root"
cp "$root.new/usr/share/base-passwd/passwd.master" "$root.new/etc/passwd"
cp "$root.new/usr/share/base-passwd/group.master" "$root.new/etc/group"
printf '127.0.0.1 localhost\n' >"$root.new/etc/hosts"
ln -sf gawk "$root.new/usr/bin/awk"
ln -sf dash "$root.new/usr/bin/sh"
[ -e "$root.new/usr/bin/python3" ] || ln -s python3.11 "$root.new/usr/bin/python3"
mv "$root.new" "$root"
rm -f "$apt"/cache/archives/*.deb
echo "$digest" >"$cache/packages"
echo "$root"
