#!/usr/bin/env python3
"""Checks that files in nodes' folders are accessed only through base/folder.h, because other users may write there.
Other calls that take a path, in the parts of rose that work on such folders, must be listed here with a reason. Also
checks that rose writes the memory of processes only through descriptors."""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "src"
FOLDERS = ["deploy", "inject", "replay", "engine", "report", "explain", "jvm", "logs"]
FILES = ["cli/log_evidence.cc", "cli/explain_runs.cc"]

STANDARD = """recursive_directory_iterator directory_iterator remove remove_all create_directory
create_directories rename copy copy_file exists is_[a-z_]+ read_symlink file_size status
symlink_status resize_file last_write_time permissions create_symlink canonical"""
SYSTEM = """open openat creat chown lchown fchownat chmod fchmodat mkdir mkdirat mkdtemp mkfifo mknod unlink
unlinkat rmdir rename renameat stat lstat fstatat access truncate mount umount umount2 symlink link
linkat statvfs statfs readlink utimensat bind inotify_add_watch execv execve execl execlp execvp"""
OWN = "[io]fstream fopen read_file write_file write_new_file open_regular AtomicFile"
CALL = re.compile(
    rf"\b(?:std::filesystem|fs)::(?:{'|'.join(STANDARD.split())})\b"
    rf"|(?<![\w:])::(?:{'|'.join(SYSTEM.split())})\("
    rf"|\b(?:{'|'.join(OWN.split())})\b")
# Paths of the kernel's own files.
KERNELS = re.compile(r'"/(?:proc|dev|sys)/|\bcgroup\b|kLockFolder|kNetnsFolder|write_control|own_path\(')

# Source files that never access a node's folder.
ELSEWHERE = {
    "deploy/engine.cc": "a Dockerfile of the configuration, in a temporary folder that is root's",
    "deploy/environment.cc": "programs that the configuration names; whether a word is a file there, for a hint",
    "deploy/guardian.cc": "locks in /run/rose",
    "deploy/identity.cc": "locks in /run/rose",
    "deploy/image_files.cc": "a folder of root's own with what an engine took out of images",
    "deploy/libc_recorder.cc": "a library in the run's folder, which is root's; the node's program",
    "deploy/loopback.cc": "/run/rose and the kernel's settings",
    "deploy/name_server.cc": "an address of a socket",
    "deploy/names.cc": "/etc/hosts and /etc/resolv.conf; whether the run's folder, which is root's, exists",
    "deploy/network.cc": "/run/netns",
    "deploy/node_control.cc": "cgroups",
    "deploy/run_data.cc": "volumes that the configuration names; their copies are made through base/folder.h",
    "deploy/paced_file.cc": "a name in a folder that only root may enter",
    "deploy/machine/cgroup.cc": "cgroups",
    "deploy/machine/containers.cc": "cgroups",
    "inject/call.cc": "links and files under /proc",
    "inject/caller.cc": "files under /proc",
    "inject/exec_socket.cc": "a socket in the run's folder, which is root's; the program that a command names",
    "inject/file_taker.cc": "files under /proc; /dev/null",
    "inject/holder.cc": "threads under /proc",
    "inject/limits.cc": "cgroups",
    "inject/link.cc": "devices",
    "inject/plan_places.cc": "programs that the configuration names",
    "inject/stacks.cc": "mapped files, as the kernel names them, for their symbols; whether an agent left a file",
    "replay/cases.cc": "folders of schedules that the user names",
    "replay/launched.cc": "programs of processes, as the kernel names them",
    "replay/run.cc": "a copy of a program, in a temporary folder that is root's",
    "replay/side_by_side.cc": "what the kernel shows of processors and memory",
    "replay/store.cc": "the report folder and folders of runs, which are root's",
    "replay/work.cc": "how full the run's file system is; the profile",
    "engine/wire/tree.cc": "the folder of the configuration, and its copy in a worker's folder",
    "inject/packets_under_way.cc": "an address of a socket",
    "inject/sockets.cc": "links under /proc",
    "jvm/agent/agent.cc": "the agent runs in the node's own processes, with their rights",
    "jvm/agent/code_file.cc": "as above",
    "jvm/agent/stacks.cc": "as above",
    "jvm/agent/state.cc": "as above",
    "jvm/application.cc": "class files that the configuration names",
    "jvm/node.cc": "programs that the configuration names",
}
# Source files that access nodes' folders and other folders: the number of calls for other folders, and their purpose.
BESIDE = {
    "deploy/command.cc": (2, "logs of commands, in the run's folder, which is root's"),
    "deploy/container_launch.cc": (7, "the folder of an entry point, below one that only root may enter"),
    "deploy/container_nodes.cc": (14, "files for containers, in a folder that only root may enter; programs of "
                                      "engines; volumes of the configuration"),
    "deploy/control.cc": (3, "a socket in the run's folder, which is root's"),
    "deploy/deployment.cc": (12, "the run's folder and those above it; a node's folder when it is made; pid files; "
                                 "/etc/hosts"),
    "deploy/places.cc": (2, "volumes of the configuration; the folder in which an engine keeps a volume"),
    "deploy/disk.cc": (3, "mke2fs; devices; the top of a disk that nobody else can reach"),
    "deploy/heal.cc": (18, "cgroups, namespaces, locks and folders that are root's"),
    "deploy/machine/processes.cc": (2, "cgroups; a pid file outside of the run's folder"),
    "deploy/monitor.cc": (4, "pid files in the run's folder, which is root's"),
    "deploy/ready.cc": (1, "logs of commands, in the run's folder, which is root's"),
    "deploy/volumes.cc": (4, "mountinfo; mounts that hold files of the machine; the root; the top of a mount"),
    "engine/fleet.cc": (1, "files of the configuration"),
    "engine/worker.cc": (8, "the worker's own folder"),
    "jvm/session.cc": (4, "a folder of rose's own in the run's, which is root's"),
    "logs/line/bytes.cc": (1, "a log that the user names"),
    "replay/alone.cc": (3, "recordings that the user names"),
    "replay/log_times.cc": (1, "the node's folder itself, by its name in the run's, which is root's"),
    "replay/watchable.cc": (1, "files of the configuration"),
    "replay/runs_folder.cc": (17, "folders of runs and those above them, which are root's"),
    "cli/log_evidence.cc": (4, "times of logs, in the run's folder, which is root's; what the user names"),
    "cli/explain_runs.cc": (1, "whether a node has a folder"),
}


def calls(path):
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        code = line.split("//")[0]
        if code.lstrip().startswith("#include") or KERNELS.search(code):
            continue
        found += [(number, match.group(0)) for match in CALL.finditer(code)]
    return found


problems = []
names = [str(path.relative_to(SOURCE)) for folder in FOLDERS for path in sorted((SOURCE / folder).rglob("*"))
         if path.suffix in (".cc", ".h")]
for name in names + FILES:
    found = calls(SOURCE / name)
    allowed, reason = BESIDE.get(name, (0, ""))
    if name in ELSEWHERE or len(found) == allowed:
        continue
    if len(found) < allowed:
        problems.append(f"src/{name}: {len(found)} calls with a path, {allowed} are listed: lower the number")
        continue
    about = f" ({reason})" if reason else ""
    problems.append(f"src/{name}: {len(found)} calls with a path, {allowed} are listed{about}:")
    problems += [f"  {number}: {call.strip('(')}" for number, call in found]
    problems.append("  use base/folder.h for what another user may write; list other calls with the reason")
# At the time of the call, a process id may belong to another process, whereas an open /proc/PID/mem always belongs to
# the process for which it was opened.
for path in sorted(SOURCE.rglob("*.cc")):
    if "::process_vm_writev(" in path.read_text():
        problems.append(f"src/{path.relative_to(SOURCE)}: writes to memory by a process id: use NotifiedCall::memory()")
for name in list(ELSEWHERE) + list(BESIDE):
    if not (SOURCE / name).is_file():
        problems.append(f"src/{name} is listed and does not exist")
if problems:
    sys.exit("\n".join(problems))
