#!/usr/bin/env python3
"""Checks that the links in the documents have targets, that rose accepts the commands in them, and that the reference
describes the keys that the parser knows.

Usage: documents.py ROSE
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from table import Table

rose = os.path.realpath(sys.argv[1])
root = pathlib.Path(__file__).parent.parent.parent
table = Table(rose)
failures = 0


def fail(text):
    global failures
    failures += 1
    print("FAILED: " + text)


def documents():
    """Returns the project's documents, at the top and in its folders, without those in build folders."""
    found = [p for p in root.glob("*.md")]
    for folder in ("bpf", "cmake", "configs", "examples", "src", "test"):
        found += [p for p in (root / folder).rglob("*.md") if "build" not in p.relative_to(root).parts]
    return sorted(found)


def without_code(text):
    text = re.sub(r"^```.*?^```\s*$", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "code", text)


def anchors(text):
    """Returns the anchors that GitHub generates for headings."""
    names = set()
    for heading in re.findall(r"^#+ +(.+?)\s*$", re.sub(r"^```.*?^```\s*$", "", text, flags=re.M | re.S), flags=re.M):
        names.add(re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-"))
    return names


def check_links():
    count = 0
    for file in documents():
        for target in re.findall(r"\]\(([^)\s]+)\)", without_code(file.read_text())):
            if re.match(r"[a-z]+:", target):
                continue
            count += 1
            path, _, anchor = target.partition("#")
            to = (file.parent / path) if path else file
            where = f"{file.relative_to(root)}: the link to {target}"
            if not to.exists():
                fail(f"{where}: there is no such file")
            elif root not in to.resolve().parents and to.resolve() != root:
                fail(f"{where} leaves the project")
            elif anchor and (to.suffix != ".md" or anchor not in anchors(to.read_text())):
                fail(f"{where}: there is no such heading")
    if count < 20:
        fail(f"only {count} links were found: are they looked for in the right way?")
    for file in documents():
        if file.parent != root and file.name == "README.md" and file.parent.parent == root:
            if f"]({file.relative_to(root)}" not in (root / "README.md").read_text():
                fail(f"README.md does not lead to {file.relative_to(root)}")


def shell_blocks(text):
    """Yields the code blocks whose language is a shell or not given."""
    block, language = None, ""
    for line in text.splitlines():
        fence = re.match(r"\s*```(\S*)\s*$", line)
        if not fence:
            if block is not None:
                block.append(line)
        elif block is None:
            block, language = [], fence[1]
        else:
            if language in ("", "sh", "bash", "console"):
                yield "\n".join(block)
            block = None


def shown_commands(text):
    """Yields the lines of code blocks that call rose: continued lines are joined, pipes and redirections are cut
    off."""
    for block in shell_blocks(text):
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"\s+#.*", "", line.strip().removeprefix("$ "))
            line = re.sub(r"^(?:\$\S*rose|\S*/rose)(?=\s)", "rose", line)
            if line.startswith("rose "):
                yield re.split(r" (?:\||>|&&|\|\||;|&)(?: |$)", line)[0]


def check_commands():
    count = 0
    for file in documents():
        for line in shown_commands(file.read_text()):
            count += 1
            if problem := table.problem(shlex.split(line)[1:]):
                fail(f"{file.relative_to(root)} shows '{line}': {problem}")
    if count < 10:
        fail(f"only {count} commands were found: are they looked for in the right way?")
    top = {c.split()[0] for c in table.commands}
    told = set(re.findall(r"^\| `([a-z]+)` \|", (root / "README.md").read_text(), flags=re.M))
    for name in sorted(top - told):
        fail(f"README.md's table of commands lacks '{name}'")
    for name in sorted(told - top):
        fail(f"README.md's table of commands has '{name}', which rose does not know")


# --- commands that documents show are run

# Documents whose blocks a test runs literally, and the test.
WORD_FOR_WORD = {"examples/README.md": "cluster/tutorial.sh", "examples/own-system/README.md": "cluster/own_system.sh"}
# Beginnings of shown commands that neither belong to rose nor are scripts of the project. For each: the test that runs
# the command, and a text that this test must contain.
OTHERS = {
    "cpack -G DEB": ("package", "cpack -G DEB -B"),
    "apt install": ("package", "dpkg-deb -x"),  # the test unpacks the package and runs the program in it
    "systemctl enable": ("package", "rose-trace@"),
    "JAVA_TOOL_OPTIONS=": ("cluster/jvm.sh", "JAVA_TOOL_OPTIONS"),
}


def options_of(name, words):
    """Returns the options in a command line, which is given as words. Each option is given by its long name."""
    by_name = {n: o["names"][-1] for o in table.commands[name]["options"] if not o["positional"] for n in o["names"]}
    found = set()
    for word in words:
        if word == "--":
            break
        for given in (word, word.partition("=")[0], word[:2]):
            if given in by_name:
                found.add(by_name[given])
                break
    return found


def named(words):
    """Splits `dump show x` into the command's name `dump show` and the remaining words; None if no command is named."""
    if not words or words[0] not in table.commands:
        return None
    name, rest = words[0], words[1:]
    while rest and f"{name} {rest[0]}" in table.commands:
        name, rest = f"{name} {rest[0]}", rest[1:]
    return name, rest


def run_by_tests():
    """Maps each command to the options with which tests run it. Tests call rose as `rose`, `$rose` or `$r`, or by a
    function that begins `rose trace`."""
    traces = {"start_trace", "start_tracer", "tracer"}
    found = {}
    for file in (root / "test").rglob("*"):
        if file.suffix not in (".sh", ".bash", ".py") or "docs" in file.relative_to(root).parts:
            continue
        for line in file.read_text().replace("\\\n", " ").splitlines():
            if line.lstrip().startswith("#"):
                continue
            words = re.sub(r"[\"'\[\](),]", " ", line).split()
            for at, word in enumerate(words):
                behind = ["trace", *words[at + 1 :]] if word in traces else words[at + 1 :]
                if (word in traces or re.fullmatch(r"\S*(?:\brose|\$r)", word)) and (one := named(behind)):
                    found.setdefault(one[0], set()).update(options_of(one[0], one[1]))
    for document, test in WORD_FOR_WORD.items():
        if document not in (root / "test" / test).read_text():
            fail(f"test/{test} does not run {document}")
        for line in shown_commands((root / document).read_text()):
            if one := named(shlex.split(line)[1:]):
                found.setdefault(one[0], set()).update(options_of(*one))
    return found


def check_run():
    """Checks that a test runs each command that a document shows, with each option, and that scripts and presets
    exist."""
    tested = run_by_tests()
    presets = (root / "CMakePresets.json").read_text()
    rules = "".join(p.read_text() for p in root.rglob("CMakeLists.txt") if "build" not in p.relative_to(root).parts)
    for file in documents():
        where = str(file.relative_to(root))
        for line in shown_commands(file.read_text()):
            one = named(shlex.split(line)[1:])
            if one is None:
                continue
            if one[0] not in tested:
                fail(f"{where} shows '{line}': no test runs 'rose {one[0]}'")
            for option in sorted(options_of(*one) - tested.get(one[0], set())):
                fail(f"{where} shows '{line}': no test runs 'rose {one[0]}' with {option}")
        if where in WORD_FOR_WORD:
            continue
        for block in shell_blocks(file.read_text()):
            for line in block.replace("\\\n", " ").splitlines():
                line = re.sub(r"\s+#.*", "", line.strip())
                first = line.split(" ")[0]
                if not line or line.startswith(("#", "rose ", "cd ",
                                                "cp ")) or re.match(r"\$?\w+=|\$rose ", line) and "JAVA" not in line:
                    continue
                if first in ("cmake", "ctest"):
                    for preset in re.findall(r"--preset (\S+)", line):
                        if f'"name": "{preset}"' not in presets:
                            fail(f"{where} shows '{line}': there is no preset '{preset}'")
                    for target in re.findall(r"--target (\S+)", line):
                        if not re.search(rf"\b{target}\b", rules):
                            fail(f"{where} shows '{line}': nothing builds '{target}'")
                elif known := next((test for start, test in OTHERS.items() if line.startswith(start)), None):
                    place = root / "test" / known[0]
                    texts = [p.read_text(errors="replace") for p in ([place] if place.is_file() else place.rglob("*"))
                             if p.is_file()]
                    if not any(known[1] in text for text in texts):
                        fail(f"{where} shows '{line}': test/{known[0]} has no '{known[1]}'")
                elif not any(os.access(at / first, os.X_OK) and (at / first).is_file()
                             for at in (root, file.parent, *(p for p in file.parent.iterdir() if p.is_dir()))):
                    fail(f"{where} shows '{line}', which is neither a command of rose, nor a script of the project, "
                         f"nor run by a test that is known here")


def check_inline():
    """Checks that `rose x --y` in a line of text names an existing command and existing options."""
    count = 0
    for file in documents():
        if file.name == "CHANGELOG.md":
            continue
        text = re.sub(r"^```.*?^```\s*$", "", file.read_text(), flags=re.M | re.S)
        for code in re.findall(r"`rose ([^`\n]+)`", text):
            words = code.replace("\\|", "|").split()
            if not re.fullmatch(r"[a-z]+", words[0]):
                continue
            count += 1
            one = named(words)
            if one is None:
                fail(f"{file.relative_to(root)} has `rose {code}`: there is no such command")
                continue
            options = {n for o in table.commands[one[0]]["options"] if not o["positional"]
                       for n in o["names"]} | {"--help", "--version"}
            for word in one[1]:
                if word == "--":
                    break
                if word.startswith("--") and word.partition("=")[0] not in options:
                    fail(f"{file.relative_to(root)} has `rose {code}`: 'rose {one[0]}' has no {word}")
    if count < 20:
        fail(f"only {count} commands were found in the text: are they looked for in the right way?")


# --- the reference of keys

NODE = '[[node]]\nname = "n1"\ncommand = ["true"]\n'
REST = '[workload]\ncommand = ["true"]\n[oracle]\ncommand = ["true"]\n'
CONFIG = {
    "top": "{key}" + NODE + REST,
    "deployment": "[deployment]\n{key}" + NODE + REST,
    "node": NODE + "{key}" + REST,
    "node.ready": NODE + "[node.ready]\ntcp = 1\n{key}" + REST,
    "node.restart": NODE + "[node.restart]\n{key}" + REST,
    "node.attach": '[[node]]\nname = "n1"\n[node.attach]\nunit = "u"\n{key}' + REST,
    "workload": NODE + '[oracle]\ncommand = ["true"]\n[workload]\ncommand = ["true"]\n{key}',
    "oracle": NODE + REST + "{key}",
} | {name: NODE + REST + f"[{name}]\n{{key}}" for name in ("profile", "trace", "diagnose", "inject")}
CONFIG["log"] = NODE + REST + '[[log]]\nzone = "UTC"\n{key}'

FAULT = '[[fault]]\nid = "f"\nnode = "n1"\nkind = "{kind}"\n'


def known(what, text):
    """Returns the known keys, which the parser lists in its message about an unknown key. `what` is config or
    schedule."""
    with tempfile.TemporaryDirectory(prefix="rosetest-") as work:
        work = pathlib.Path(work)
        config = text if what == "config" else NODE + REST
        (work / "rose.toml").write_text(config)
        (work / "schedule.toml").write_text(text)
        command = [rose, "replay", "schedule.toml", "-c", "rose.toml"]
        if what == "config":
            command = [rose, "profile", "-c", "rose.toml"]
        run = subprocess.run(command, cwd=work, capture_output=True, text=True)
    if "unknown key 'zzz'" not in run.stderr:
        fail(f"the parser does not complain of the unknown key in {text!r}: {run.stderr}")
        return set()
    lines = run.stderr.splitlines()
    at = next(i for i, line in enumerate(lines) if "unknown key 'zzz'" in line)
    hint = next(line for line in lines[at:] if "accepted here: " in line)
    return set(hint.partition("accepted here: ")[2].split(", "))


def sections(text):
    """Maps each heading to the keys in the first column of the tables below it."""
    found = {}
    heading = ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ").replace("`", "")
        elif row := re.match(r"\| (`[^|]*`) \|", line):
            found.setdefault(heading, set()).update(re.findall(r"`([\w]+)`", row[1]))
    return found


def compare(documented, heading, keys, shown):
    page = f"configs/{shown[0].replace('.', '-')}.md"
    missing, strange = keys - documented.get(heading, set()), documented.get(heading, set()) - keys
    if missing:
        fail(f"{page}, '{heading}': the parser also knows {', '.join(sorted(missing))}")
    if strange:
        fail(f"{page}, '{heading}': the parser does not know {', '.join(sorted(strange))}")
    for key in sorted(keys):
        if not re.search(rf"(?<![\w-]){key}(?![\w-])", shown[1]):
            fail(f"configs/{shown[0]} does not show the key '{key}' ({heading})")


def check_keys():
    documented = sections((root / "configs/rose-toml.md").read_text())
    config = ("rose.toml", (root / "configs/rose.toml").read_text())
    for name, text in CONFIG.items():
        heading = "The top of the file" if name == "top" else f"[[{name}]]" if name in (
            "node", "log") else name if "." in name else f"[{name}]"
        compare(documented, heading, known("config", text.format(key="zzz = 1\n")), config)
    documented = sections((root / "configs/schedule-toml.md").read_text())
    schedule = ("schedule.toml", (root / "configs/schedule.toml").read_text())
    compare(documented, "The schedule", known("schedule", "zzz = 1\n" + FAULT.format(kind="crash")), schedule)
    unknown = subprocess.run([rose, "replay", "/dev/stdin", "-c", str(root / "configs/rose.toml")], capture_output=True,
                             text=True,
                             input=FAULT.format(kind="zzz")).stderr
    kinds = re.findall(r'"([a-z-]+)"', unknown.partition("'zzz' is not one of ")[2].partition("\n")[0])
    if len(kinds) < 4:
        fail(f"the parser does not name the kinds of faults: {unknown}")
        return
    by_kind = {kind: known("schedule", FAULT.format(kind=kind) + "zzz = 1\n") for kind in kinds}
    common = set.intersection(*by_kind.values())
    compare(documented, "Every fault", common, schedule)
    for kind, keys in by_kind.items():
        compare(documented, kind, keys - common, schedule)
    compare(documented, "Roles",
            known("schedule", '[[role]]\nname = "r"\nfunction = "f"\nzzz = 1\n' + FAULT.format(kind="crash")), schedule)
    # Keys that select calls are documented with the syscall faults.
    condition = known("schedule", FAULT.format(kind="crash") + "when = [ { zzz = 1 } ]\n")
    narrow = known("schedule",
                   FAULT.format(kind="crash") + 'before = { syscall = "read", zzz = 1 }\n') - {"syscall", "count"}
    compare(documented, "Conditions", condition - narrow - {"offset", "result"}, schedule)


def check_folders():
    """Checks that every folder of src and test has a row in its table."""
    told = set(re.findall(r"`(\w+)`",
                          "".join(re.findall(r"^\| (`[^|]*) \|", (root / "src/README.md").read_text(), flags=re.M))))
    for folder in sorted(p.name for p in (root / "src").iterdir() if p.is_dir()):
        if folder not in told:
            fail(f"src/README.md's table of folders lacks '{folder}'")
    told = set(re.findall(r"^\| `(\w+)` \|", (root / "test/README.md").read_text(),
                          flags=re.M)) | {"golden", "programs"}
    for folder in sorted(p.name for p in (root / "test").iterdir() if p.is_dir() and not p.name.startswith("__")):
        if folder not in told:
            fail(f"test/README.md's table lacks '{folder}'")


def check_licences():
    """Checks that code loaded into the kernel states its licence itself; REUSE.toml states those of all other files."""
    files = [p for p in (root / "bpf").rglob("*.[ch]")]
    if len(files) < 10:
        fail(f"only {len(files)} files were found in bpf/")
    for file in files:
        if "SPDX-License-" + "Identifier: GPL-2.0-only OR MIT" not in file.read_text().partition("*/")[0]:
            fail(f"{file.relative_to(root)} does not open with its licence (SPDX-License-Identifier)")


def check_numbers():
    """Checks that the numbers of runs for minimisation and for rivals are the same in the documents and in the
    search."""
    source = (root / "src/diagnose/thresholds.h").read_text() + (root / "src/weights/weights.def").read_text()
    number = {}
    for name in ("kMostSimplifying", "kMostRivalRuns"):
        found = re.search(rf'{name} = (\d+);|{name}, "[^"]*", (\d+),', source)
        if not found:
            fail(f"src/diagnose has no number {name}")
            return
        number[name] = found[1] or found[2]
    wanted = {
        "configs/rose-toml.md": f"is minimised in at most {number['kMostSimplifying']} runs, and its rivals are tried "
                                f"in at most {number['kMostRivalRuns']} runs",
        "configs/rose.toml": f"in at most {number['kMostSimplifying']} further runs",
    }
    for path, words in wanted.items():
        if words not in (root / path).read_text():
            fail(f"{path} does not say what src/diagnose/thresholds.h has: '{words}'")


def check_tables():
    """Checks that the tables of measured cases agree with the kept figures."""
    sys.path.insert(0, str(root / "test/planted"))
    import explain
    import measure
    for kind, folder in (("planted", root / "test/planted"), ("bugs", root / "examples/bugs")):
        rows, logs_only = measure.read_figures(folder), measure.read_logs_only(folder)
        if len(rows) < 10:
            fail(f"only {len(rows)} measured cases were found in {folder.relative_to(root)}")
        readme = (folder / "README.md").read_text()
        if measure.with_table(folder / "README.md", measure.table_of(kind, rows, logs_only)) != readme:
            fail(f"{folder.relative_to(root)}/README.md: its table is not that of the figures; "
                 f"{folder.relative_to(root)}/run-all --only-table writes it")
        if (folder / "results.json").read_text() != measure.results_of(rows, logs_only):
            fail(f"{folder.relative_to(root)}/results.json is not that of the figures; "
                 f"{folder.relative_to(root)}/run-all --only-table writes it")
        if explain.with_summary(folder) != readme:
            fail(f"{folder.relative_to(root)}/README.md: the summary of explanations is not that of the figures")


ERROR_CODES = {"usage": 2, "input": 2, "environment": 3, "inconclusive": 4, "cancelled": 4, "bug": 70}


def check_errors():
    """Checks that the page on troubleshooting has an entry for each kind of error and for each part of rose that
    raises it, and quotes only messages that exist."""
    page = (root / "configs/troubleshooting.md").read_text()
    kinds = re.findall(r"^  (\w+),", re.search(r"enum class ErrorKind \{(.*?)\};",
                                               (root / "src/base/result.h").read_text(), flags=re.S)[1], flags=re.M)
    if set(kinds) != set(ERROR_CODES):
        fail(f"src/base/result.h has the kinds {kinds}, this test and configs/troubleshooting.md know "
             f"{sorted(ERROR_CODES)}")
    for kind in kinds:
        if not re.search(rf"^## {kind}: .* \(exit {ERROR_CODES.get(kind)}\)$", page, flags=re.M):
            fail(f"configs/troubleshooting.md has no section '## {kind}: ... (exit {ERROR_CODES.get(kind)})'")
    listed = {row[1]: set(row[2].split(", ")) for row in re.finditer(r"^\| `(\w+)` \| ([a-z, ]+) \|", page, flags=re.M)}
    sources = ""
    for file in sorted((root / "src").rglob("*.cc")):
        text = file.read_text()
        sources += text
        part = file.relative_to(root / "src").parts[0]
        for kind in sorted(set(re.findall(r"ErrorKind::(\w+)", text)) - listed.get(part, set())):
            fail(f"configs/troubleshooting.md: its last table does not have '{kind}' for '{part}' "
                 f"({file.relative_to(root)})")
    literals = re.sub(r'"\s*\n?\s*"', "", sources)  # literals that are divided over lines
    for message in re.findall(r"^### `([^`]+)`", page, flags=re.M):
        if message not in literals:
            fail(f"configs/troubleshooting.md has an entry for the message '{message}', which is not in the source")


def check_paths():
    """Checks that the files and folders of the project that documents name exist."""
    count = 0
    for file in documents():
        if file.name == "CHANGELOG.md":
            continue
        text = re.sub(r"^```.*?^```\s*$", "", file.read_text(), flags=re.M | re.S)
        for path in re.findall(r"`((?:src|bpf|cmake|configs|examples|test)/[\w./*-]+)`", text):
            count += 1
            if any(list(at.glob(path.rstrip("/"))) for at in (root, file.parent)):
                continue
            fail(f"{file.relative_to(root)} names `{path}`: there is no such file")
    if count < 50:
        fail(f"only {count} paths were found: are they looked for in the right way?")


def check_results():
    """Checks that the source writes the keys of --json that the documents promise."""
    page = (root / "configs/formats.md").read_text()
    table = page.partition("## Results of commands")[2].partition("\n## ")[0]
    sources = "".join(p.read_text() for folder in ("report", "cli", "schedule", "explain")
                      for p in (root / "src" / folder).rglob("*.cc"))
    keys = set()
    for row in re.findall(r"^\| `[^|]*\| (.*) \|$", table, flags=re.M):
        keys |= set(re.findall(r"`(\w+)`", row))
    if len(keys) < 60:
        fail(f"only {len(keys)} keys of results were found in configs/formats.md")
    for key in sorted(keys):
        if f'"{key}"' not in sources:
            fail(f"configs/formats.md promises the key '{key}' of a result, which the source does not write")


def check_capabilities():
    """Checks that the table of kernels and features contains what rose doctor probes."""
    page = (root / "configs/limits.md").read_text()
    names = [c["name"] for c in json.loads(subprocess.run([rose, "doctor", "--json"], capture_output=True,
                                                          text=True).stdout)["capabilities"]]
    if len(names) < 20:
        fail(f"rose doctor names only {names}")
    for name in names:
        if f"`{name}`" not in page:
            fail(f"configs/limits.md does not say what '{name}' of rose doctor is for")


def check_glossary():
    """Checks that the glossary's terms are sorted and complete."""
    terms = re.findall(r"^\| ([^|`]+) \|", (root / "configs/glossary.md").read_text(), flags=re.M)[1:]
    if len(terms) < 40 or terms != sorted(terms, key=str.lower):
        fail(f"configs/glossary.md: {len(terms)} terms, out of order: "
             f"{[b for a, b in zip(terms, terms[1:]) if a.lower() > b.lower()]}")


check_links()
check_tables()
check_errors()
check_paths()
check_results()
check_capabilities()
check_glossary()
check_numbers()
check_folders()
check_licences()
check_commands()
check_run()
check_inline()
check_keys()
print("documents: ok" if failures == 0 else f"documents: {failures} failures")
sys.exit(1 if failures else 0)
