#!/bin/sh
# Gets a kernel as Debian packages it, for run.sh --kernel: 5.10 of Debian 11, 6.1 of Debian 12, 6.12 of Debian 13.
# Nothing is built. If the kernel exists already, nothing is downloaded; to get the newest one, remove its folder.
#
#   debian-kernel.sh 5.10|6.1|6.12 [arm64]
#
# The kernel and its modules are stored in ${XDG_CACHE_HOME:-~/.cache}/rose/vm/VERSION (for arm64, in VERSION-arm64).
# The lists of packages are stored in apt/ beside that folder, so that the machine's own apt sources are not changed.
# Needs root once, to install the packages that run.sh needs.
set -eu

version=${1:-}
arch=${2:-amd64}
case $version in
  5.10) suite=bullseye ;;
  6.1) suite=bookworm ;;
  6.12) suite=trixie ;;
  *) sed -n '2,8p' "$0" >&2; exit 2 ;;
esac
name=$version
qemu=qemu-system-x86
case $arch in
  amd64) ;;
  arm64) name=$version-arm64 qemu=qemu-system-arm ;;
  *) sed -n '2,8p' "$0" >&2; exit 2 ;;
esac
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rose/vm
missing=
for package in busybox-static cpio debian-archive-keyring dpkg kmod "$qemu" xz-utils; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  echo "vm: installing$missing" >&2
  # shellcheck disable=SC2086
  apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends $missing >&2
fi

mkdir -p "$cache"
exec 9>"$cache/debian.lock"
flock 9
if [ -s "$cache/$name/release" ]; then exit 0; fi

# The mirror that apt uses on this machine.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
  sed -n '\,/debian/*$,{p;q;}')
lists=$cache/apt/$suite-$arch
mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial"
: >"$lists/status"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keyring] ${mirror:-http://deb.debian.org/debian/} $suite main" >"$lists/sources.list"
of_suite() {
  command=$1
  shift
  "$command" -o Dir::Etc::sourcelist="$lists/sources.list" -o Dir::Etc::sourceparts=- -o Acquire::Languages=none \
    -o APT::Sandbox::User=root -o APT::Architecture="$arch" -o APT::Architectures="$arch" \
    -o Dir::State::status="$lists/status" \
    -o Dir::State::Lists="$lists/lists" -o Dir::Cache="$lists/cache" "$@"
}
of_suite apt-get -qq update >&2
package=$(of_suite apt-cache depends "linux-image-$arch" |
  sed -n 's/^ *Depends: \(linux-image-'"$version"'\.[^ ]*\)$/\1/p' | head -n 1)
[ -n "$package" ] || { echo "vm: no packaged Linux $version is to be had: $suite at $mirror has none" >&2; exit 1; }
release=${package#linux-image-}
new=$cache/$name.new
rm -rf "${cache:?}/$name" "$new"
mkdir -p "$new"
(
  cd "$new"
  of_suite apt-get download -qq "$package" >&2
  dpkg-deb -x ./*.deb tree
  mv "tree/boot/vmlinuz-$release" vmlinuz
  mkdir -p modules/lib/modules
  modules=tree/lib/modules
  [ -d "$modules/$release" ] || modules=tree/usr/lib/modules
  mv "$modules/$release" modules/lib/modules/
  rm -rf tree ./*.deb
  # busybox inserts the first modules, and cannot read compressed ones.
  find modules -name '*.ko.xz' -exec xz -d {} +
  /sbin/depmod -b modules "$release"
  echo "$release" >release
)
mv "$new" "$cache/$name"
echo "vm: Debian's Linux $release is in $cache/$name" >&2
