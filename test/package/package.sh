#!/usr/bin/env bash
# Tests the Debian package: its content, its dependencies, that its program runs; its units and the DaemonSet. Usage:
# package.sh BUILD_FOLDER
set -euo pipefail
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
for tool in cpack dpkg-deb dpkg-shlibdeps; do
  command -v $tool >/dev/null || { echo "SKIPPED: package: $tool is missing"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }

(cd "$build" && cpack -G DEB -B "$work/out" >"$work/cpack.log" 2>&1) ||
  { tail -20 "$work/cpack.log" >&2; fail "cpack"; exit 1; }
deb=$(ls "$work"/out/rose_*.deb)
dpkg-deb -x "$deb" "$work/tree"
dpkg-deb --info "$deb" > "$work/info"
for wanted in 'Package: rose' 'Architecture: amd64' 'Section: admin'; do
  grep -q "^ $wanted\$" "$work/info" || fail "its control file lacks '$wanted'"
done
# The dependencies are derived from the libraries that the program is linked with.
for library in libbpf libc6 libelf1 libdw1 libfmt libstdc zlib1g; do
  grep -qE "^ Depends:.* $library" "$work/info" || fail "it does not depend on $library"
done
[ "$(stat -c %a "$work/tree/usr/bin/rose")" = 755 ] || fail "/usr/bin/rose is not executable for all"
for file in lib/systemd/system/rose-trace.service lib/systemd/system/rose-trace@.service share/doc/rose/copyright \
    share/doc/rose/examples/rose.toml share/doc/rose/examples/schedule.toml \
    share/doc/rose/examples/rose-trace.daemonset.yaml; do
  [ "$(stat -c %a "$work/tree/usr/$file" 2>/dev/null)" = 644 ] || fail "/usr/$file is not there, or not 0644"
done
# The man pages are generated from this program's table of options.
"$work/tree/usr/bin/rose" help --quiet --man "$work/man1"
for page in "$work"/man1/*.1; do
  zcat "$work/tree/usr/share/man/man1/${page##*/}.gz" 2>/dev/null | cmp -s - "$page" ||
    fail "man1/${page##*/}.gz is not the page of this rose"
done
for file in bash:bash-completion/completions/rose zsh:zsh/vendor-completions/_rose \
  fish:fish/vendor_completions.d/rose.fish; do
  "$work/tree/usr/bin/rose" help --completion "${file%%:*}" | cmp -s - "$work/tree/usr/share/${file#*:}" ||
    fail "/usr/share/${file#*:} is not the completion of this rose"
done
grep -q "^## $("$work/tree/usr/bin/rose" --version | cut -d' ' -f2) (" "$work/tree/usr/share/doc/rose/CHANGELOG.md" ||
  fail "CHANGELOG.md has no section for this version"
# Checks the files for programs that record themselves: a program is compiled and linked with the flags of pkg-config.
if command -v pkg-config >/dev/null && command -v cc >/dev/null; then
  printf '#include <rose_rr.h>\nint main(void) { int n = 7; rose_rr_record("n", &n, sizeof n); return rose_rr_replaying() ? n - 7 : n == 7 ? 0 : 1; }\n' > "$work/rr.c"
  flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$work/tree" -name rose-rr.pc)") pkg-config --cflags --libs rose-rr) ||
    fail "pkg-config does not know rose-rr"
  library=$(dirname "$(find "$work/tree" -name librose-rr.so.0)")
  # shellcheck disable=SC2086
  cc -Wall -Wextra -Werror -pedantic -std=c11 "$work/rr.c" $flags -o "$work/rr-shared" ||
    fail "a program cannot be linked with librose-rr.so"
  cc "$work/rr.c" -I"$work/tree/usr/include" "$library/librose-rr.a" -o "$work/rr-static" ||
    fail "a program cannot be linked with librose-rr.a"
  for program in rr-shared rr-static; do
    LD_LIBRARY_PATH=$library "$work/$program" || fail "$program does not run"
    LD_LIBRARY_PATH=$library ROSE_RR=record:$work/$program.rr "$work/$program" || fail "$program does not record"
    LD_LIBRARY_PATH=$library "$work/tree/usr/bin/rose" replay --quiet --recording "$work/$program.rr" \
      -- "$work/$program" >/dev/null || fail "$program is not replayed"
  done
  ! readelf -d "$library/librose-rr.so.0" | grep -q 'NEEDED.*stdc++' || fail "librose-rr.so needs the C++ runtime"
else
  echo "package: pkg-config or cc is missing, librose-rr was not linked"
fi
documents=$(find "$work/tree" -type f ! -path '*/man1/*' | wc -l)
[ "$documents" -le 45 ] ||
  fail "the package contains too many files: $(find "$work/tree" -type f ! -path '*/man1/*' | head -30)"
"$work/tree/usr/bin/rose" --version | grep -qE '^rose [0-9]+\.[0-9]+\.[0-9]+$' || fail "its program does not run"

if command -v systemd-analyze >/dev/null; then
  for unit in rose-trace.service rose-trace@.service; do
    # The program is not installed here: a copy of the unit names the one in the unpacked package.
    sed "s|/usr/bin/rose|$work/tree/usr/bin/rose|" "$source/configs/$unit" > "$work/$unit"
    said=$(systemd-analyze verify "$work/$unit" 2>&1) || fail "systemd-analyze verify $unit: $said"
    ! grep -q "$work/$unit\|${unit%.service}" <<<"$said" || fail "systemd-analyze verify $unit: $said"
    # 10 means a service that may do anything, 0 one that may do nothing.
    said=$(systemd-analyze security --offline=true --threshold=25 "$work/$unit" 2>&1) ||
      fail "systemd-analyze security $unit: $(tail -1 <<<"$said")"
  done
else
  echo "package: systemd-analyze is missing, the units were not verified"
fi

if python3 -c 'import yaml' 2>/dev/null; then
  python3 - "$source/configs/rose-trace.daemonset.yaml" <<'PY' || fail "the DaemonSet"
import sys, yaml
documents = {d["kind"]: d for d in yaml.safe_load_all(open(sys.argv[1]))}
daemons = documents["DaemonSet"]
assert daemons["apiVersion"] == "apps/v1" and daemons["metadata"]["namespace"] == documents["Namespace"]["metadata"]["name"]
labels = daemons["spec"]["template"]["metadata"]["labels"]
assert daemons["spec"]["selector"]["matchLabels"].items() <= labels.items()
pod = daemons["spec"]["template"]["spec"]
assert pod["hostPID"] is True
volumes = {v["name"] for v in pod["volumes"]}
for container in pod["containers"]:
    security = container["securityContext"]
    assert security["privileged"] is False and security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["BPF", "PERFMON", "NET_ADMIN"]}
    assert security["readOnlyRootFilesystem"] is True
    assert {m["name"] for m in container["volumeMounts"]} == volumes
    assert container["resources"]["limits"]["memory"]
    assert all(isinstance(a, str) for a in container["command"] + container["args"])
PY
else
  echo "package: python3-yaml is missing, the DaemonSet was not read"
fi
[ $failures -eq 0 ] && echo "package: ok"
exit $((failures > 0))
