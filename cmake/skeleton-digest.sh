#!/usr/bin/env bash
# Prints the checksums of all files from which skeletons are made, and of the skeletons themselves.
set -euo pipefail
cd "$(dirname "$0")/.."
sha256sum bpf/*.bpf.c bpf/*.h bpf/*/*.h skel/*.skel.h | LC_ALL=C sort -k2
