#!/usr/bin/env python3
"""Names that are local to a file must differ within a folder of src (and within an example).

Release builds compile the files of a folder as one file (CMAKE_UNITY_BUILD), so their anonymous namespaces become one.
Most clashes of names are compile errors. Two functions with the same name, however, may be overloads, and then a call
silently goes to the wrong function.

Usage: check-local-names.py [FOLDER...]   (default: every library's folder under src, and the examples')
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
TYPE = re.compile(r"^(?:struct|class|enum class|enum|union) (?:\[\[.*\]\] )?(\w+)")
FUNCTION = re.compile(r"^(?!using|typedef|return|namespace|template\b.*>$)[\w\[][\w:<>,*&\[\]\s]*?[\s*&](\w+)\(")
VARIABLE = re.compile(
    r"^(?:inline |static |thread_local |const |constexpr )+[\w:<>,*&\s]*?[\s*&](\w+)(?:\[[^\]]*\])*(?: =|\{|;)")


def local_names(path):
    """Maps each file-local name (declared at the left margin) to its line."""
    names = {}
    inside = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line == "namespace {":
            inside = True
        elif line.startswith("}  // namespace"):
            inside = False
        elif (inside or line.startswith("static ")) and line[:1] not in (" ", "#", "/", "}", ""):
            for form in (TYPE, VARIABLE, FUNCTION):
                if match := form.match(line):
                    names.setdefault(match.group(1), number)
                    break
    return names


def main():
    folders = [pathlib.Path(f).resolve() for f in sys.argv[1:]]
    folders = folders or [f.parent for f in TOP.glob("src/*/**/CMakeLists.txt")] + [TOP / "src/jvm/agent"] + list(
        TOP.glob("examples/*/src"))
    clashes = 0
    total = 0
    for folder in sorted(folders):
        seen = {}
        own = [other for other in folders if other != folder and other.is_relative_to(folder)]  # separate libraries
        for path in sorted(p for p in folder.rglob("*.cc") if not any(p.is_relative_to(other) for other in own)):
            for name, line in local_names(path).items():
                total += 1
                if name in seen:
                    clashes += 1
                    print(f"{path.relative_to(TOP)}:{line}: '{name}' is local to {seen[name]} too")
                else:
                    seen[name] = f"{path.relative_to(TOP)}:{line}"
    if total == 0:
        print("no local name found: is this the source tree?")
        return 1
    if clashes:
        print(f"{clashes} names are local to two files of one folder: rename one, or declare one in a header of "
              f"the folder")
    return 1 if clashes else 0


if __name__ == "__main__":
    sys.exit(main())
