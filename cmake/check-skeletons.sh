#!/usr/bin/env bash
# Fails when bpf/ was changed but its skeletons were not refreshed, or when a skeleton was edited by hand.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! diff <(cmake/skeleton-digest.sh) skel/DIGEST; then
  echo "skel/ is stale: run 'cmake --build --preset release --target skeletons' and commit skel/" >&2
  exit 1
fi
echo "skel/ matches bpf/"
