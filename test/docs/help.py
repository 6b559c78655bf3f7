#!/usr/bin/env python3
"""Checks what is generated from the table of options: --help, man pages and shell completions.

Usage: help.py ROSE [BUILD]     ROSE_REFRESH_GOLDEN=1 writes the golden files anew.
"""
import json
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from table import Table

rose = os.path.realpath(sys.argv[1])
golden = pathlib.Path(__file__).parent.parent / "golden" / "help"
table = Table(rose)
failures = 0
skips = []


def fail(text):
    global failures
    failures += 1
    print("FAILED: " + text)


def run(*command, **how):
    return subprocess.run(command, capture_output=True, text=True, **how)


def check_help():
    names = {"rose": []} | {"rose-" + c.replace(" ", "-"): c.split() for c in table.commands}
    for name, words in names.items():
        text = run(rose, *words, "--help").stdout
        if text != run(rose, "help", *words).stdout:
            fail(f"{name}: 'rose help' and --help differ")
        body, _, examples = text.partition("Examples:\n")
        for line in body.splitlines():
            if len(line) > 80:
                fail(f"{name} --help: a line of {len(line)} characters: {line}")
        for line in examples.splitlines():
            line = line.strip().split(" | ")[0].split(" > ")[0]
            if line.startswith("rose ") and (problem := table.problem(shlex.split(line)[1:])):
                fail(f"{name} --help has the example '{line}': {problem}")
        # The version changes with each release, but the stored help text should not.
        file = golden / f"{name}.txt"
        if os.environ.get("ROSE_REFRESH_GOLDEN") == "1":
            golden.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        if not file.exists() or file.read_text() != text:
            fail(f"{name} --help is not what {file} has; ROSE_REFRESH_GOLDEN=1 refreshes it")
    # The defaults in the help are those of the program, not the values given on this command line.
    if run(rose, "profile", "-c", "mine.toml", "--runs", "7", "--help").stdout != run(rose, "profile", "--help").stdout:
        fail("'rose profile -c mine.toml --help' differs from 'rose profile --help'")
    for file in golden.glob("*.txt"):
        if file.stem not in names:
            fail(f"{file} is the help of no command")


def check_man(work):
    folder = work / "man1"
    if (made := run(rose, "help", "--man", folder)).returncode:
        fail(f"rose help --man: {made.stderr}")
    # A file name consists of bytes, whereas JSON is text, so bytes that are not UTF-8 are replaced.
    made = run(rose, "help", "--man", os.fsencode(work) + b"/no\xffutf8", "--json")
    if made.returncode or json.loads(made.stdout)["folder"] != f"{work}/no\ufffdutf8":
        fail(f"rose help --man with a folder's name that is no UTF-8: exit {made.returncode}, "
             f"{made.stdout}{made.stderr}")
    pages = sorted(folder.glob("*.1"))
    if len(pages) != len(table.commands) + 1:
        fail(f"{len(pages)} man pages for {len(table.commands)} commands and rose itself")
    linted = False
    for page in pages:
        if shutil.which("mandoc"):
            linted = True
            said = run("mandoc", "-T", "lint", "-W", "warning", page)
            if said.returncode:
                fail(f"mandoc: {said.stdout}")
        if shutil.which("man"):
            linted = True
            said = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page,
                       env=os.environ | {"LC_ALL": "C.UTF-8"})
            if said.returncode or said.stderr:
                fail(f"man --warnings {page.name}: {said.stderr}")
    if not linted:
        skips.append("neither mandoc nor man is installed: the man pages were not checked")
    # Every option is documented, and each page refers to the other pages.
    for command, told in table.commands.items():
        text = (folder / f"rose-{command.replace(' ', '-')}.1").read_text().replace("\\-", "-")
        for option in told["options"]:
            for name in option["names"]:
                if name.startswith("-") and f"\\fB{name}\\fR" not in text:
                    fail(f"rose-{command}.1 does not tell {name}")
        if ".BR rose" not in text:
            fail(f"rose-{command}.1 leads nowhere")


class Terminal:
    """An interactive shell on its own terminal, controlled by keys."""

    def __init__(self, command, folder, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command,
                       {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8"} | env)
        self.seen = ""

    def until(self, pattern, seconds=30):
        """Reads until the screen matches; returns what was read, or None."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen, re.S)):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                return None
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                return None
        self.seen = self.seen[found.end() :]
        return found

    def keys(self, text):
        os.write(self.fd, text.encode())

    def close(self):
        os.close(self.fd)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


# The text that is typed, and what must then be on the line or among the candidates.
COMPLETIONS = [
    ("rose diag", ["diagnose"]),
    ("rose dump sh", ["show"]),
    ("rose dump show --form", ["--format"]),
    ("rose dump show --format j", ["jsonl"]),
    ("rose dump show --format=perf", ["perfetto"]),
    ("rose dump show --type scf,a", ["scf,af"]),
    ("rose replay sched", ["schedule.toml"]),
    ("rose replay schedule.toml --expect f", ["fixed"]),
    ("rose replay schedule.toml -c other/ro", ["other/rose.toml"]),
    ("rose diagnose --trace dump.bin --report a-fol", ["a-folder"]),
    ("rose diagnose --trace dump.bin dump2", ["dump2.bin"]),
    ("rose node res", ["restart"]),
    ("rose node restart node-o", ["node-one"]),
    ("rose exec --node node-t", ["node-two"]),
    ("rose trace --interface l", ["lo"]),
    ("rose trace --pid 1 --dump-on-c", ["--dump-on-crash"]),
    ("rose trace -- progr", ["program-of-test"]),
    ("rose help diag", ["diagnose"]),
    ("rose help --completion fi", ["fish"]),
]


def completion_folder(work):
    folder = work / "completions"
    (folder / "a-folder").mkdir(parents=True)
    (folder / "other").mkdir()
    (folder / "bin").mkdir()
    (folder / "fpath").mkdir()
    for name in ("dump.bin", "dump2.bin", "schedule.toml", "other/rose.toml"):
        (folder / name).write_text("")
    (folder / "rose.toml").write_text('name = "not-a-node"\n[[node]]\nname = "node-one"\n[[node]]\nname = '
                                      '\'node-two\'\n[workload]\ncommand = ["x"]\n')
    (folder / "bin" / "program-of-test").write_text("#!/bin/sh\n")
    (folder / "bin" / "program-of-test").chmod(0o755)
    os.symlink(rose, folder / "bin" / "rose")
    for shell, name in (("bash", "rose.bash"), ("zsh", "fpath/_rose"), ("fish", "rose.fish")):
        (folder / name).write_text(run(rose, "help", "--completion", shell, check=True).stdout)
    return folder, {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


def check_keys(shell, terminal, clear):
    """Checks that TAB completes what is typed in an interactive shell; the line is deleted without being executed."""
    for typed, wanted in COMPLETIONS:
        last = typed.split(" ")[-1].split("=")[-1].split(",")[-1].split("/")[-1]
        for whole in wanted:
            missing = whole.split(",")[-1].split("/")[-1][len(last) :]
            terminal.keys(typed + "\t")
            # First the typed text is echoed, then the inserted text appears.
            if not terminal.until(re.escape(typed) + ".*?" + re.escape(missing)):
                fail(f"{shell}: '{typed}' and TAB do not make '{whole}'; on the screen: {terminal.seen[-300:]!r}")
                return
        terminal.keys(clear)
        if not terminal.until("READY"):
            fail(f"{shell}: no prompt after '{typed}'")
            return


def check_bash(work):
    folder, env = completion_folder(work / "bash")
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], folder, env)
    terminal.keys(
        "bind 'set bell-style none'; bind 'set show-all-if-ambiguous on'; bind 'set enable-bracketed-paste off'; "
                  "source ./rose.bash; PS1=REA''DY; PS1='READY> '\n")
    if terminal.until("READY> "):
        check_keys("bash", terminal, "\x15\n")
        # If there are several candidates, they are listed: here the commands of `rose dump`, and no options.
        terminal.keys("rose dump \t")
        if not (listed := terminal.until(
            "import.*?show.*?READY> ")) or "--" in listed.group() or "merge" not in listed.group():
            fail(f"bash: 'rose dump ' does not list its commands: {terminal.seen[-200:]!r}")
    else:
        fail(f"bash does not start: {terminal.seen[-300:]!r}")
    terminal.close()


def check_zsh(work):
    folder, env = completion_folder(work / "zsh")
    terminal = Terminal(["zsh", "-f", "-i"], folder, env)
    terminal.keys("unsetopt zle_bracketed_paste prompt_cr prompt_sp; setopt no_beep; fpath=($PWD/fpath $fpath); "
                  "autoload -Uz compinit; "
                  "compinit -u -D; PS1=REA''DY; PS1='READY> '\n")
    if terminal.until("READY> "):
        check_keys("zsh", terminal, "\x15\n")
        terminal.keys("rose \t")
        if not (listed := terminal.until(
            "diagnose.*?trace")) or "Find the fault schedule" not in listed.group() + terminal.seen:
            fail(f"zsh: 'rose ' does not list the commands with what they do: {terminal.seen[-200:]!r}")
    else:
        fail(f"zsh does not start: {terminal.seen[-300:]!r}")
    terminal.close()


def check_fish(work):
    folder, env = completion_folder(work / "fish")
    for typed, wanted in COMPLETIONS:
        said = run("fish", "--no-config", "-c", f"source rose.fish; complete -C {shlex.quote(typed)}", cwd=folder,
                   env=os.environ | env | {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder)})
        offered = [line.split("\t")[0] for line in said.stdout.splitlines()]
        for whole in wanted:
            if not any(o in (whole, whole + "/", f"--format={whole}") for o in offered):
                fail(f"fish: '{typed}' does not offer '{whole}' but {offered[:8]} {said.stderr[:200]}")
    said = run("fish", "--no-config", "-c", "source rose.fish; complete -C 'rose '", cwd=folder,
               env=os.environ | env | {"HOME": str(folder)})
    offered = dict(line.split("\t", 1) for line in said.stdout.splitlines() if "\t" in line)
    if offered.get("diagnose") != table.commands["diagnose"]["summary"] or "show" in offered:
        fail(f"fish: 'rose ' offers {offered}")


with tempfile.TemporaryDirectory(prefix="rosetest-") as work:
    work = pathlib.Path(work)
    check_help()
    check_man(work)
    for shell, check in (("bash", check_bash), ("zsh", check_zsh), ("fish", check_fish)):
        if shutil.which(shell):
            check(work)
        else:
            skips.append(f"{shell} is not installed: its completions were not tried")
for skip in skips:
    print(f"SKIPPED: help: {skip}")
print("help: ok" if failures == 0 else f"help: {failures} failures")
sys.exit(1 if failures else 77 if skips else 0)
