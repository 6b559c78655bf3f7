#!/bin/sh
# Runs test programs in a virtual machine, on the kernel that build-kernel.sh builds or on one of Debian's. The guest's
# root is that of the host, shared read-only; files that the guest writes are kept in its memory. Uses KVM if the host
# has it; otherwise the guest is emulated, which is about ten times slower.
#
#   run.sh [--kernel VERSION] [--arch arm64] [--build DIR] [--timeout SECONDS] [--memory MB] [--processors N] [--kvm]
#          [TEST...]
#
# --arch arm64 emulates an arm64 machine. Its root is the folder of cmake/arm64-root.sh, and the build is that of the
# preset arm64, at its usual path. The kernel is 6.12 unless --kernel names another one.
#
# --kernel selects a kernel as Debian ships it (debian-kernel.sh): 5.10, 6.1 (also called --packaged) or 6.12. Then no
# kernel is built. These kernels cannot override returns. A TEST is a command for sh, which runs in the build's test
# folder. The default is the `kernel` tests of injection with each backend. The guest's output is printed on stdout. The
# exit status is 0 if all tests ended with 0 or 77 (skipped), and 3 if the machine did not start or did not end in time.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rose/vm
build=$here/../../build/release
timeout=1800
memory=3072
processors=2
kvm=no
packaged=
arch=
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$2 named=yes; shift 2 ;;
    --arch) arch=$2; shift 2 ;;
    --timeout) timeout=$2; shift 2 ;;
    --memory) memory=$2; shift 2 ;;
    --processors) processors=$2; shift 2 ;;
    --kvm) kvm=yes; shift ;;
    --kernel) packaged=$2; shift 2 ;;
    --packaged) packaged=6.1; shift ;;
    -*) sed -n '2,15p' "$0" >&2; exit 2 ;;
    *) break ;;
  esac
done
case $arch in
  ''|x86-64|amd64) arch=amd64 root=/ busybox=/bin/busybox ;;
  arm64|aarch64)
    arch=arm64
    root=$("$here/../../cmake/arm64-root.sh")
    busybox=$root/bin/busybox
    [ -n "${named:-}" ] || build=$here/../../build/arm64
    packaged=${packaged:-6.12} ;;
  *) echo "run.sh: --arch '$arch': arm64 or x86-64" >&2; exit 2 ;;
esac
build=$(CDPATH= cd -- "$build" && pwd)
if [ -n "$packaged" ]; then
  [ $# -gt 0 ] || set -- "./kernel_inject" "./kernel_kernel"
  "$here/debian-kernel.sh" "$packaged" "$arch"
  [ "$arch" = amd64 ] || packaged=$packaged-$arch
  kernel=$cache/$packaged/vmlinuz
else
  [ $# -gt 0 ] || set -- "ROSE_TEST_BACKEND=override ./kernel_inject" \
    "ROSE_TEST_BACKEND=override ./kernel_replay '[conditions]'" "./kernel_inject" "./kernel_kernel"
  [ -f "$cache/bzImage" ] || "$here/build-kernel.sh"
  kernel=$cache/bzImage
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/rose-vm-XXXXXX")
qemu=
finish() {
  [ -z "$qemu" ] || kill "$qemu" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# The commands for the guest, one line for each test.
mkdir -p "$work/out" "$work/root/bin"
{
  echo "cd '$build/test'"
  echo 'export ROSE_TEST_NEEDS_ROOT=1 HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
  echo 'worst=0'
  for test in "$@"; do
    quoted=$(printf '%s' "$test" | sed "s/'/'\\\\''/g")
    printf "echo '== %s'\n" "$quoted"
    printf "sh -c '%s' </dev/null; status=\$?\n" "$quoted"
    echo 'echo "== ended with $status"; [ $status -eq 0 ] || [ $status -eq 77 ] || worst=$status'
  done
  echo 'echo $worst >/tmp/rose-vm/status'
} >"$work/out/tests.sh"

cp "$busybox" "$work/root/bin/busybox"
# A packaged kernel needs modules to reach the host's root. Each is loaded after the modules on which it depends.
shared=
if [ -n "$packaged" ]; then
  release=$(cat "$cache/$packaged/release")
  shared=$cache/$packaged/modules/lib/modules
  mkdir -p "$work/root/modules"
  for module in virtio_pci 9pnet_virtio 9p overlay; do
    /sbin/modprobe -d "$cache/$packaged/modules" -S "$release" --show-depends "$module" |
      sed -n 's/^insmod \([^ ]*\).*/\1/p'
  done | awk '!seen[$0]++' | while read -r file; do
    cp "$file" "$work/root/modules/"
    basename "$file" >>"$work/root/modules/order"
  done
fi
cat >"$work/root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /host /writable /root
/bin/busybox mount -t proc proc /proc
[ ! -f /modules/order ] || while read -r module; do /bin/busybox insmod "/modules/$module" || exec /bin/busybox poweroff -f; done </modules/order
/bin/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=512000 host /host || exec /bin/busybox poweroff -f
/bin/busybox mount -t tmpfs -o mode=755 tmpfs /writable
/bin/busybox mkdir /writable/upper /writable/work
/bin/busybox mount -t overlay -o lowerdir=/host,upperdir=/writable/upper,workdir=/writable/work overlay /root ||
  exec /bin/busybox poweroff -f
cd /root
/bin/busybox mount -t proc proc proc
/bin/busybox mount -t sysfs sysfs sys
/bin/busybox mount -t devtmpfs devtmpfs dev
/bin/busybox mkdir -p dev/pts dev/shm
/bin/busybox mount -t devpts devpts dev/pts
/bin/busybox mount -t tmpfs tmpfs dev/shm
/bin/busybox mount -t tmpfs tmpfs run
/bin/busybox mount -t cgroup2 cgroup2 sys/fs/cgroup
/bin/busybox mount -t bpf bpf sys/fs/bpf
/bin/busybox mount -t tracefs tracefs sys/kernel/tracing
/bin/busybox mount -t debugfs debugfs sys/kernel/debug
/bin/busybox mkdir -p run/netns tmp/rose-vm
# The folders of the project and of the build, if the root is not the host's.
while read -r tag folder; do
  /bin/busybox mkdir -p "/$tag" "/writable/$tag" "/writable/$tag-work" ".$folder"
  /bin/busybox mount -t 9p -o "ro,trans=virtio,version=9p2000.L,cache=loose,msize=512000" "$tag" "/$tag" &&
    /bin/busybox mount -t overlay overlay ".$folder" \
      -o "lowerdir=/$tag,upperdir=/writable/$tag,workdir=/writable/$tag-work" ||
    exec /bin/busybox poweroff -f
done </folders
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L out tmp/rose-vm
if [ -f /modules/order ]; then
  /bin/busybox mkdir -p lib/modules
  /bin/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose modules lib/modules
  # A machine creates these device nodes when it boots. Opening such a node loads its module.
  /bin/busybox sed -n 's/^[^#]* \([^ ]*\) \([bc]\)\([0-9]*\):\([0-9]*\)$/\1 \2 \3 \4/p' lib/modules/*/modules.devname | while read -r node kind major minor; do
    /bin/busybox mkdir -p "$(/bin/busybox dirname "dev/$node")"
    [ -e "dev/$node" ] || /bin/busybox mknod "dev/$node" "$kind" "$major" "$minor"
  done
fi
# The guest's root is the overlay, and not a folder of the initramfs, so that paths are the same as on the host.
exec /bin/busybox switch_root /root /bin/busybox sh -c '
  /bin/busybox ip link set lo up
  /bin/busybox hostname rose-vm
  /bin/busybox sh /tmp/rose-vm/tests.sh 2>&1
  /bin/busybox sync
  exec /bin/busybox poweroff -f'
INIT
chmod +x "$work/root/init"
: >"$work/root/folders"
if [ "$arch" != amd64 ]; then
  source=$(CDPATH= cd -- "$here/../.." && pwd)
  echo "source $source" >"$work/root/folders"
  case $build/ in
    "$source"/*) ;;
    *) echo "build $build" >>"$work/root/folders" ;;
  esac
fi
(cd "$work/root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initramfs"

# In another virtual machine, /dev/kvm may exist without working: the guest then hangs in its first instructions. --kvm
# forces the use of KVM.
# One thread emulates all processors. With one thread for each, Linux 6.12 now and then panics with "Oops: int3": it
# changes its own code while the other processor executes it, and the emulator then executes the old instructions.
accel=tcg,thread=single
if [ "$kvm" = yes ] || { [ -w /dev/kvm ] && ! grep -qw hypervisor /proc/cpuinfo; }; then accel=kvm; fi
# no_timer_check: on a busy machine, a guest that is not scheduled would consider its timer broken, and panic.
set -- -virtfs local,path="$root",mount_tag=host,security_model=none,readonly=on,multidevs=remap \
  -virtfs local,path="$work/out",mount_tag=out,security_model=none
[ -z "$shared" ] || set -- "$@" -virtfs local,path="$shared",mount_tag=modules,security_model=none,readonly=on
while read -r tag folder; do
  set -- "$@" -virtfs local,path="$folder",mount_tag="$tag",security_model=none,readonly=on,multidevs=remap
done <"$work/root/folders"
case $arch in
  amd64) emulator=qemu-system-x86_64 processor=max console=ttyS0 machine= ;;
  arm64)
    emulator=qemu-system-aarch64 processor=cortex-a76 console=ttyAMA0 machine=virt,gic-version=3
    accel=tcg,thread=single ;;
esac
[ -z "$machine" ] || set -- -machine "$machine" "$@"
"$emulator" -accel "$accel" -cpu "$processor" -smp "$processors" -m "$memory" -nographic -no-reboot -nodefaults \
  -serial file:"$work/console" -kernel "$kernel" -initrd "$work/initramfs" \
  -append "console=$console quiet panic=-1 mitigations=off nokaslr no_timer_check" "$@" >"$work/qemu" 2>&1 &
qemu=$!
touch "$work/console"
tail -n +1 -f --pid=$qemu "$work/console" &
tail=$!
waited=0
while kill -0 $qemu 2>/dev/null; do
  if [ $waited -ge "$timeout" ]; then
    echo "vm: not done after $timeout s" >&2
    break
  fi
  sleep 1
  waited=$((waited + 1))
done
kill $qemu 2>/dev/null || true
wait $tail 2>/dev/null || true
if [ ! -s "$work/out/status" ]; then
  cat "$work/qemu" >&2
  echo "vm: the tests did not come to their end" >&2
  exit 3
fi
exit "$(cat "$work/out/status")"
