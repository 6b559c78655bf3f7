#!/usr/bin/env bash
# Formats the C++ of src, test and examples with clang-format 19 (a Debian package). Usage: cmake/format.sh [FILE...]
# Without FILE, it formats every tracked file. bpf/ has a style of its own and is not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-format-19 >/dev/null ||
  { echo "format.sh: clang-format-19 is missing: apt-get install clang-format-19" >&2; exit 3; }
if [ $# -gt 0 ]; then
  clang-format-19 -i "$@"
else
  git ls-files '*.cc' '*.h' ':!skel' ':!bpf' | xargs -P"$(nproc)" -n40 clang-format-19 -i
fi
