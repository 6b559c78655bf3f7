#!/usr/bin/env python3
"""Counts the first words of function names in standard libraries, and writes src/knowledge/verbs.toml.

  test/eval/library_verbs.py

A function of an application whose name resembles those of library functions (getName, writeAll, close) mostly does
something general for any caller. For each word, this script computes the share of a library's units (packages of Go,
public classes of java.base, modules of Python) that have a function whose name is this word, or begins with it. The
three libraries count the same.
"""
import collections
import re
import subprocess
import sys
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent.parent / "src/knowledge/verbs.toml"
LEAST = 0.02  # share of the units of libraries; rarer words are left out
MOST_CLASSES = 150  # classes in one call of javap


def first_word(name):
    """Returns the first word of a name, and whether further words follow."""
    name = name.strip("_")
    found = re.match(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+", name)
    return (found[0].lower(), len(found[0]) < len(name)) if found else ("", False)


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def of_go(units):
    root = Path(run("go", "env", "GOROOT").strip()) / "src"
    for file in root.rglob("*.go"):
        folder = file.parent.relative_to(root).as_posix()
        skipped = re.search(r"(^|/)(cmd|internal|vendor|testdata|runtime|simd)(/|$)", folder)
        if file.name.endswith("_test.go") or skipped:
            continue
        for name in re.findall(r"^func (?:\([^)]*\) )?([A-Z]\w*)", file.read_text(errors="replace"), re.M):
            units[folder].add(first_word(name))


def of_java(units):
    home = Path(run("bash", "-c", "readlink -f $(command -v javac)").strip()).parent.parent
    names = [
        line[len("classes/") : -len(".class")].replace("/", ".")
        for line in run("jmod", "list", str(home / "jmods/java.base.jmod")).splitlines()
        if line.startswith("classes/java/") and "$" not in line and line.endswith(".class") and "-info" not in line
    ]
    for at in range(0, len(names), MOST_CLASSES):
        unit = ""
        for line in run("javap", "-public", *names[at : at + MOST_CLASSES]).splitlines():
            found = re.search(r"(?:class|interface|enum) ([\w.]+)", line)
            if found and "(" not in line:
                unit = found[1]
            elif found := re.search(r" ([a-z]\w*)\([^)]*\)", line):
                units[unit].add(first_word(found[1]))


def of_python(units):
    root = Path(sys.modules["re"].__file__).resolve().parent.parent
    for file in [*root.glob("*.py"), *root.glob("*/*.py")]:
        where = file.relative_to(root).as_posix()
        if re.search(r"(^|/)(test|encodings|site-packages|dist-packages|lib2to3|idlelib)", where):
            continue
        for name in re.findall(r"^\s*def ([a-z]\w*)", file.read_text(errors="replace"), re.M):
            units[where].add(first_word(name))


def main():
    shares = collections.Counter()
    counted = []
    libraries = (("Go", of_go), ("Java", of_java), ("Python", of_python))
    for library, count in libraries:
        units = collections.defaultdict(set)
        count(units)
        counted.append(f"{len(units)} {'' if counted else 'units '}of {library}")
        for word, times in collections.Counter(word for words in units.values() for word in words).items():
            shares[word] += times / len(units) / len(libraries)
    lines = [
        "# Words that are names of functions in standard libraries (alone), or that such names begin with (first), and"
        " the share",
        f"# of library units that have one: {', '.join(counted)}.",
        "# Written by test/eval/library_verbs.py.",
    ]
    for table, more in (("alone", False), ("first", True)):
        lines += ["", f"[{table}]"]
        lines += [
            f"{word} = {share:.3f}"
            for (word, others), share in shares.most_common()
            if others == more and share >= LEAST and word.isalpha()
        ]
    OUT.write_text("\n".join(lines) + "\n")
    print(f"{OUT}: {len(lines)} lines")


if __name__ == "__main__":
    main()
