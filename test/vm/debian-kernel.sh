#!/bin/sh
# Gets the kernel that Debian 12 itself runs (6.1, as it is packaged: nothing is built) for run.sh --packaged. Nothing
# is downloaded when the newest one is there already.
#
#   debian-kernel.sh
#
# The kernel and its modules come to ${XDG_CACHE_HOME:-~/.cache}/rose/vm/debian; needs root once, to install the
# packages.
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/rose/vm
missing=
for package in busybox-static cpio dpkg kmod qemu-system-x86; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  echo "vm: installing$missing" >&2
  # shellcheck disable=SC2086
  apt-get install -y -qq --no-install-recommends $missing >&2
fi

package=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: \(linux-image-6\.1\.[^ ]*\)$/\1/p' | head -n 1)
[ -n "$package" ] || { echo "vm: no packaged Linux 6.1 is to be had: linux-image-amd64 of Debian 12 is" >&2; exit 1; }
release=${package#linux-image-}
mkdir -p "$cache"
exec 9>"$cache/debian.lock"
flock 9
if [ "$(cat "$cache/debian/release" 2>/dev/null)" = "$release" ]; then exit 0; fi
rm -rf "$cache/debian" "$cache/debian.new"
mkdir -p "$cache/debian.new"
(
  cd "$cache/debian.new"
  apt-get download -qq "$package" >&2
  dpkg-deb -x ./*.deb tree
  mv "tree/boot/vmlinuz-$release" vmlinuz
  mkdir -p modules/lib/modules
  mv "tree/lib/modules/$release" modules/lib/modules/
  rm -rf tree ./*.deb
  /sbin/depmod -b modules "$release"
  echo "$release" >release
)
mv "$cache/debian.new" "$cache/debian"
echo "vm: Debian's Linux $release is in $cache/debian" >&2
