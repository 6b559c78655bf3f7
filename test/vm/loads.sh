#!/usr/bin/env bash
# Loads every BPF program on a kernel as Debian ships it, in a virtual machine, because older kernels may refuse
# programs that this machine's kernel accepts. Each day, a different one of the kernels 5.10, 6.1 and 6.12 is used,
# unless ROSE_TEST_KERNEL selects one.
#
#   loads.sh BUILD
set -euo pipefail
here=$(dirname "$(realpath "$0")")
build=$1

skip() { echo "SKIPPED: programs on another kernel: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "needs root"
[ "$(uname -m)" = x86_64 ] || skip "needs an x86-64 machine"
command -v qemu-system-x86_64 > /dev/null || skip "needs qemu-system-x86"

kernels=(5.10 6.1 6.12)
kernel=${ROSE_TEST_KERNEL:-${kernels[$(date +%s) / 86400 % ${#kernels[@]}]}}
"$here/debian-kernel.sh" "$kernel" || skip "Debian's Linux $kernel cannot be downloaded"
echo "Linux $kernel (again: ROSE_TEST_KERNEL=$kernel $0 $build)"
# The emulator needs the processor for a minute. It gets low priority, because tests that run meanwhile measure times.
status=0
nice -n 19 "$here/run.sh" --kernel "$kernel" --build "$build" --timeout 1500 "./kernel_kernel '[loads]'" || status=$?
# If an emulated machine gets hardly any processor time, it may not boot. This is no failure of the programs.
[ $status -ne 3 ] || skip "the virtual machine did not start or end in time"
exit $status
