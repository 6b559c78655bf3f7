#!/usr/bin/env python3
"""Checks the language of the documents with vale: glossary terms, plain words, short sentences (test/docs/vale).

Usage: prose.py [FILE.md...]     all documents of the project when none is named

vale is taken from ROSE_VALE, from PATH, or from ~/.cache/rose/vale, where it is installed once from the Go module proxy
(Go verifies the module's checksum). Without it, and without a way to get it, the test is skipped (77).
"""
import os
import pathlib
import shutil
import subprocess
import sys

root = pathlib.Path(__file__).parent.parent.parent
MODULE = "github.com/errata-ai/vale/v3/cmd/vale@v3.15.2"
HOME = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "rose" / "vale"


def skip(why):
    print(f"SKIPPED: prose: {why}")
    sys.exit(77)


def vale():
    """Returns the path of the linter, which is installed if it is missing."""
    for known in (os.environ.get("ROSE_VALE"), shutil.which("vale"), HOME / MODULE.rpartition("@")[2] / "vale"):
        if known and os.access(known, os.X_OK):
            return str(known)
    go = next((one for one in ("/usr/local/go/bin/go", shutil.which("go")) if one and os.access(one, os.X_OK)), None)
    if go is None:
        skip("vale is not installed, and there is no Go to install it with")
    place = HOME / MODULE.rpartition("@")[2]
    place.mkdir(parents=True, exist_ok=True)
    # Built without optimisation, because it is built on each fresh machine and processes little text.
    environment = os.environ | {"GOBIN": str(place), "GOPATH": str(HOME / "go"), "GOFLAGS": "-modcacherw",
                                "CGO_CFLAGS": "-O0"}
    try:
        made = subprocess.run([go, "install", "-gcflags=all=-N -l", MODULE], env=environment, capture_output=True,
                              text=True, timeout=1200)
    except subprocess.TimeoutExpired:
        skip("installing vale takes too long")
    if made.returncode or not os.access(place / "vale", os.X_OK):
        skip(f"vale cannot be installed: {(made.stderr.strip().splitlines() or ['no reason was given'])[-1]}")
    shutil.rmtree(HOME / "go", ignore_errors=True)
    return str(place / "vale")


def documents():
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--", "*.md"], capture_output=True, text=True)
    names = listed.stdout.split("\0")
    if listed.returncode:  # not a git repository
        names = [p.relative_to(root) for p in root.rglob("*.md") if "build" not in p.parts]
    # The changelog is not checked, because its oldest entries stay as they were released.
    return [str(name) for name in names if name and str(name) != "CHANGELOG.md" and (root / name).is_file()]


files = sys.argv[1:] or documents()
if len(sys.argv) == 1 and len(files) < 50:
    print(f"FAILED: prose: only {len(files)} documents were found: are they looked for in the right way?")
    sys.exit(1)
program = vale()
config = root / "test/docs/vale/vale.ini"
# The linter itself is tested first: it must reject a sentence that breaks two rules. If it accepts the sentence, it
# does not apply the rules.
wrong = "The flight recorder was told by whoever."
probe = subprocess.run([program, "--config", config, "--ext", ".md", "--output", "line", wrong], capture_output=True,
                       text=True)
if probe.returncode != 1 or "rose.Terms" not in probe.stdout or "rose.Words" not in probe.stdout:
    print(f"FAILED: prose: vale does not apply the rules: exit {probe.returncode}: {probe.stdout}{probe.stderr}")
    sys.exit(1)
run = subprocess.run([program, "--config", config, "--output", "line", "--no-wrap", *files],
                     cwd=root, capture_output=True, text=True)
print(run.stdout, end="")
if run.returncode not in (0, 1):
    print(f"FAILED: prose: vale: exit {run.returncode}: {run.stderr}")
print("prose: ok" if run.returncode == 0 else "prose: see above")
sys.exit(1 if run.returncode else 0)
