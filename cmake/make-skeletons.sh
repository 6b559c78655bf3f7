#!/usr/bin/env bash
# Compiles every bpf/*.bpf.c and regenerates skel/. Run through `cmake --build ... --target skeletons`.
#
#   make-skeletons.sh [--arch arm64 --to FOLDER] [NAME...]
#
# With names (`cmake/make-skeletons.sh tracer`), only the named skeletons are refreshed, and the digest stays stale.
# skel/DIGEST has the checksums of the sources and of the skeletons, which check-skeletons.sh compares. Skeletons for
# arm64 are not committed: a build for arm64 makes them in its own folder (RoseBpf.cmake).
set -euo pipefail
arch=x86 to=
while [ $# -gt 0 ]; do
  case $1 in
    --arch) arch=$2; shift 2 ;;
    --to) to=$(realpath "$2"); shift 2 ;;
    -*) sed -n '2,8p' "$0" >&2; exit 2 ;;
    *) break ;;
  esac
done
cd "$(dirname "$0")/.."
skel=${to:-skel}
clang=${CLANG:-clang-19}
bpftool=${BPFTOOL:-bpftool}
PATH=$PATH:/usr/sbin
for tool in "$clang" "$bpftool"; do
  command -v "$tool" >/dev/null || {
    echo "make-skeletons: $tool is missing: apt-get install clang-19 bpftool" >&2; exit 3; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ $# -gt 0 ]; then sources=("${@/%/.bpf.c}"); sources=("${sources[@]/#/bpf/}"); else sources=(bpf/*.bpf.c); fi
for source in "${sources[@]}"; do
  name=$(basename "$source" .bpf.c)
  # The tracer has the largest programs and is compiled without 32-bit instructions (v2): the verifiers of kernels
  # before 6.3 lose the bounds of 32-bit subregisters.
  cpu=v3
  [ "$name" != tracer ] || cpu=v2
  "$clang" -g -O2 -target bpf -mcpu=$cpu "-D__TARGET_ARCH_$arch" -Ibpf -ffile-prefix-map="$PWD"=. -Wall -Wextra \
    -Wno-unused-parameter -Werror \
    -c "$source" -o "$work/$name.raw.o"
  "$bpftool" gen object "$work/$name.o" "$work/$name.raw.o"
  "$bpftool" gen skeleton "$work/$name.o" name "rose_$name" > "$work/$name.skel.h"
  mv "$work/$name.skel.h" "$skel/$name.skel.h"
  echo "$skel/$name.skel.h"
  # The same program for kernels before 5.17 (bpf/rose_old.h). Only its object is stored; the skeleton above opens it.
  case $name in
    tracer|inject|network) ;;
    *) continue ;;
  esac
  "$clang" -g -O2 -target bpf -mcpu=$cpu -DROSE_OLD "-D__TARGET_ARCH_$arch" -Ibpf -ffile-prefix-map="$PWD"=. -Wall \
    -Wextra -Wno-unused-parameter -Werror \
    -c "$source" -o "$work/$name.raw.o"
  "$bpftool" gen object "$work/$name.o" "$work/$name.raw.o"
  {
    printf '/* SPDX-License-Identifier: (LGPL-2.1 OR BSD-2-Clause) */\n/* %s.bpf.c for kernels before 5.17 */\n' "$name"
    printf '#pragma once\n\n#include <stddef.h>\n\n'
    "$bpftool" gen skeleton "$work/$name.o" name "rose_${name}_old" |
      sed -n "/^static inline const void \*rose_${name}_old__elf_bytes(size_t \*sz)$/,/^}/p"
  } > "$work/$name.old.skel.h"
  mv "$work/$name.old.skel.h" "$skel/$name.old.skel.h"
  echo "$skel/$name.old.skel.h"
done
if [ $# -gt 0 ] || [ -n "$to" ]; then exit 0; fi
cmake/skeleton-digest.sh > "$work/DIGEST"
mv "$work/DIGEST" skel/DIGEST
chmod 644 skel/*
