#!/usr/bin/env bash
# Prints the digest of everything a skeleton is made from, and of the skeletons themselves.
set -euo pipefail
cd "$(dirname "$0")/.."
sha256sum bpf/*.bpf.c bpf/*.h bpf/*/*.h skel/*.skel.h | LC_ALL=C sort -k2
