#!/usr/bin/env python3
"""Checks line width, first comments, private words and commit subjects, after TigerBeetle's tidy.zig.

Usage: tidy.py                    checks; exits 1 and prints FILE:LINE: RULE for each violation
       tidy.py --update           writes tidy.allow again: the remaining violations in code, for each file
       tidy.py --wrap FILE.md...  fills the paragraphs and lists of documents to the line width

Documents must have no violation. A file of code may violate a rule as often as tidy.allow permits for that file and
rule. This prevents new violations while old ones are removed, so the numbers in tidy.allow may only become smaller.
"""
import collections
import pathlib
import re
import subprocess
import sys
import textwrap

root = pathlib.Path(__file__).parent.parent.parent
allowed_file = pathlib.Path(__file__).with_name("tidy.allow")
WIDTH = 120
SUBJECT = 72

# Files that are generated, recorded, or in a format of other projects.
SKIPPED = re.compile(r"^(skel|LICENSES|test/golden|test/eval/corpora)/|^test/logs/.*\.log$|incident-logs/|"
                     r"^LICENSE$|^bpf/LICENSE$|"
                     r"^test/docs/tidy\.allow$|sha256sums$|fuzz/corpus/|"
                     r"\.(png|svg|dump|json|jsonl|gz|zst|html|sum|mod|rr|xml|xsl|config|css|js)$")
DOCUMENT = re.compile(r"\.md$")
CODE = re.compile(r"\.(cc|c|h|hpp|py|sh|bash|cmake|java|go|rs)$|^[^.]*$|/[^./]*$")

# The header of each folder of src that says what the folder does and what it leaves to others.
MAIN = {
    "base": "result.h", "cli": "command.h", "config": "config.h", "deploy": "deployment.h", "diagnose": "diagnose.h",
    "draft": "draft.h", "engine": "fleet.h", "evidence": "observation.h", "explain": "explain.h",
    "inject": "injector.h",
    "javascript": "session.h", "jvm": "session.h",
    "kernel": "probe.h", "knowledge": "meanings.h", "logs": "reader.h", "observe": "tracer.h", "profile": "profile.h",
    "python": "session.h", "replay": "run.h", "report": "results.h", "rr": "rose_rr.h", "schedule": "schedule.h",
    "symbols": "symbols.h", "trace": "dump.h", "weights": "weights.h",
}

# Words that only this project used, and what the field calls it. Documents, comments and messages must not have them.
WORDS = [
    (r"\btold\b", "reported, recorded, detected"),
    (r"\blet(s|ting)? go of\b", "detach, stop tracing, release"),
    (r"\b(comes?|came|coming) by\b", "reach, is reached"),
    (r"\b(broken|broke|breaks?) off\b", "interrupted"),
    (r"\bwhoever\b", "the process that, the node that, the user who"),
    (r"\b(go|goes|gone|went) on from\b", "continue with, refine"),
    (r"\bshow(s|ed|n)? the bug\b", "reproduce the bug, trigger"),
    (r"\bbelieved of\b", "likelihood, weight of"),
    (r"\bspeaks? like\b", "follows the convention of"),
    (r"\bsound (runs?|ones|sides?)\b", "correct runs"),
    (r"\bmend(s|ed|ing)?\b", "fix"),
    (r"\b(a|one|each|the) try\b|\btries of\b", "trial, attempt"),
]


def files():
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True)
    if listed.returncode:  # not a git repository
        found = (p.relative_to(root) for p in root.rglob("*") if p.is_file())
        return sorted(str(p) for p in found if "build" not in p.parts)
    return sorted(f for f in listed.stdout.split("\0") if f and (root / f).is_file())


def prose(text):
    """Yields number and text of a document's lines that are neither code, tables, pictures, comments nor generated."""
    fenced = generated = False
    for number, line in enumerate(text.splitlines(), 1):
        if marker := re.match(r"<!-- \w+: (begin|end)", line):
            generated = marker[1] == "begin"
        elif re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
        elif not fenced and not generated and not line.lstrip().startswith(("|", "<!--", "![")):
            yield number, line


def without_addresses(line):
    line = re.sub(r"\]\([^)]*\)", "]", line)
    return re.sub(r"https?://\S+", "", line)


def too_wide(line):
    # A line that a single long word makes wide, such as an address or a path, cannot be wrapped.
    return len(line) > WIDTH and len(line.split()) > 1 and len(without_addresses(line)) > WIDTH


def check_width(name, text):
    lines = prose(text) if DOCUMENT.search(name) else enumerate(text.splitlines(), 1)
    for number, line in lines:
        if too_wide(line):
            yield number, "width", f"{len(line)} columns, {WIDTH} at most"


ANY_WORD = re.compile("|".join(pattern for pattern, _ in WORDS), flags=re.I)


def words_in(line):
    if not ANY_WORD.search(line):
        return
    for pattern, better in WORDS:
        if found := re.search(pattern, line, flags=re.I):
            yield f"'{found.group()}' is this project's own word: {better}"


def comments_and_messages(name, text):
    """Yields, for code, the comments and string literals; for documents, everything but quoted code."""
    if DOCUMENT.search(name):
        for number, line in enumerate(text.splitlines(), 1):
            yield number, re.sub(r"`[^`]*`", "", line)
        return
    mark = r"//|/\*|^\s*\*" if re.search(r"\.(cc|c|h|hpp|java|go|rs)$", name) else r"#"
    for number, line in enumerate(text.splitlines(), 1):
        parts = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
        if found := re.search(rf"(?:{mark})(.*)", line):
            parts.append(found[1])
        if parts:
            yield number, " ".join(parts)


def check_words(name, text):
    if name == "CHANGELOG.md" or name.startswith(("test/", "examples/")) and not DOCUMENT.search(name):
        return  # data of tests contains words of other programs
    for number, line in comments_and_messages(name, text):
        for problem in words_in(line):
            yield number, "words", problem


def check_header(name, text):
    """Checks that each header begins with a comment that states its purpose."""
    if re.match(r"(src|bpf)/.*\.h$", name) and not re.match(r"\s*(//|/\*)\s*\S", text):
        yield 1, "header", "opens without a comment that states what it is for"


def check_folders():
    """Checks that each folder of src has a main header whose first comment is at least one complete sentence."""
    for folder in sorted(p for p in (root / "src").iterdir() if p.is_dir() and any(p.glob("*.h"))):
        header = folder / MAIN.get(folder.name, "")
        if not header.is_file():
            yield f"src/{folder.name}: which of its headers says what the folder does? name it in MAIN of tidy.py"
            continue
        comment = re.match(r"\s*(?://[^\n]*\n)+|\s*/\*.*?\*/", header.read_text(), flags=re.S)
        if not comment or len(comment[0].split()) < 8:
            yield f"{header.relative_to(root)}: header: does not open with what the folder does"


def check_subjects():
    """Checks the subjects of the commits since the one that added this test."""
    def git(*words):
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)

    first = git("log", "--diff-filter=A", "--format=%H", "--", "test/docs/tidy.py").stdout.split()
    if not first:
        print("SKIPPED: tidy: there is no history of commits here: their subjects are not checked")
        return
    for line in git("log", "--format=%h %s", f"{first[-1]}..HEAD").stdout.splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > SUBJECT and not subject.startswith(("Merge ", "Revert ")):
            yield f"commit {commit}: the subject has {len(subject)} characters, {SUBJECT} at most: {subject}"


def wrap(text):
    """Fills the paragraphs and lists of a document to the line width; tables, code, headings and HTML are unchanged."""
    out, block, fenced, generated = [], [], False, False

    def flush():
        if not block:
            return
        first = block[0]
        indent = re.match(r"\s*(?:[-*+] |\d+\. |> )?", first)[0]
        hanging = " " * len(indent)
        words = " ".join([first[len(indent):], *(line.strip() for line in block[1:])])
        filler = textwrap.TextWrapper(width=WIDTH, initial_indent=indent, subsequent_indent=hanging,
                                      break_long_words=False, break_on_hyphens=False)
        # Links, code, and numbers with their units are not divided.
        whole = r"`[^`]+`|!?\[[^]]*\]\([^)]*\)|\d (?:%|s|ms|µs|ns|[KMG]iB)(?!\w)"
        kept = re.sub(whole, lambda m: m[0].replace(" ", "\0"), words)
        out.extend(line.replace("\0", " ") for line in filler.wrap(kept))
        block.clear()

    for line in text.splitlines():
        if marker := re.match(r"<!-- \w+: (begin|end)", line):
            flush()
            generated = marker[1] == "begin"
            out.append(line)
        elif re.match(r"\s*(```|~~~)", line):
            flush()
            fenced = not fenced
            out.append(line)
        elif generated or fenced or not line.strip() or re.match(r"\s*(\||#|<|!\[|-{3,}$)", line):
            flush()
            out.append(line)
        elif re.match(r"\s*([-*+] |\d+\. |> )", line):
            flush()
            block.append(line)
        else:
            block.append(line)
    flush()
    return "\n".join(out) + "\n"


def allowed():
    """Maps (rule, file) to the number of violations that are allowed."""
    counts = {}
    if allowed_file.exists():
        for line in allowed_file.read_text().splitlines():
            if line and not line.startswith("#"):
                rule, count, name = line.split(" ", 2)
                counts[rule, name] = int(count)
    return counts


def main():
    if sys.argv[1:2] == ["--wrap"]:
        for name in sys.argv[2:]:
            pathlib.Path(name).write_text(wrap(pathlib.Path(name).read_text()))
        return 0
    found = collections.defaultdict(list)
    checked = 0
    for name in files():
        if SKIPPED.search(name) or not (DOCUMENT.search(name) or CODE.search(name)):
            continue
        try:
            text = (root / name).read_text()
        except UnicodeDecodeError:
            continue
        checked += 1
        for check in (check_width, check_words, check_header):
            for number, rule, problem in check(name, text):
                found[rule, name].append(f"{name}:{number}: {rule}: {problem}")
    if checked < 300:
        print(f"FAILED: only {checked} files were found: are they looked for in the right way?")
        return 1
    if "--update" in sys.argv[1:]:
        lines = ["# Violations left in code: rule, number, file. Written by tidy.py --update; the numbers only shrink."]
        lines += [f"{rule} {len(problems)} {name}" for (rule, name), problems in sorted(found.items())
                  if not DOCUMENT.search(name)]
        allowed_file.write_text("\n".join(lines) + "\n")
    left, failures, shrunk = allowed(), 0, 0
    for (rule, name), problems in sorted(found.items()):
        if len(problems) <= (0 if DOCUMENT.search(name) else left.get((rule, name), 0)):
            continue
        failures += 1
        print("\n".join(problems))
        if (rule, name) in left:
            print(f"  tidy.allow has {left[rule, name]} for {name}")
    for (rule, name), count in left.items():
        shrunk += len(found.get((rule, name), [])) < count
    for problem in [*check_folders(), *check_subjects()]:
        failures += 1
        print(problem)
    if shrunk:
        print(f"{shrunk} entries of tidy.allow can shrink: test/docs/tidy.py --update")
    print("tidy: ok" if failures == 0 else f"tidy: {failures} files or commits are not tidy")
    return 1 if failures else 0


sys.exit(main())
