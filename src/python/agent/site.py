"""Python loads this file at its start, as the module `sitecustomize`, because its folder is in PYTHONPATH. It loads
rose's agent, and then the module `sitecustomize` that Python would have loaded without this file."""


def _started_packages():
    """The installed packages that the command starts: that of `python3 -m NAME`, or those that a short script imports.
    A short script, such as installers make for a command, only starts the application that is in these packages."""
    import os
    import re

    shortest_program = 50  # lines; longer scripts are taken to be the application themselves
    with open("/proc/self/cmdline", "rb") as command:
        words = [os.fsdecode(word) for word in command.read().split(b"\0")[1:-1]]
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "-m" and words:
            return [words[0].split(".")[0]]
        if option in ("-W", "-X") and words:
            words.pop(0)
    if not words or not os.path.isfile(words[0]):
        return []
    with open(words[0], encoding="utf-8", errors="replace") as script:
        lines = [line for _, line in zip(range(shortest_program + 1), script)]
    if len(lines) > shortest_program:
        return []
    named = [re.match(r"\s*(?:from|import)\s+([A-Za-z_]\w*)", line) for line in lines]
    return sorted({one.group(1) for one in named if one})


def _begin():
    import os
    import sys

    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if path != folder]
    agent, state = os.environ.get("ROSE_PYTHON_AGENT"), os.environ.get("ROSE_PYTHON_STATE")
    if not agent or not state or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return  # the agent relies on the interpreter's lock
    try:
        import ctypes
        import threading

        library = ctypes.PyDLL(agent)
        if library.rose_python_begin(os.path.join(state, "%d.stacks" % os.getpid()).encode()) != 0:
            return
        library.rose_python_own(("/%s/" % "/".join(_started_packages())).encode())
        threading.setprofile(lambda frame, event, argument: library.rose_python_thread())
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=library.rose_python_forked)
        library.rose_python_thread()
    except Exception as error:  # the program runs without the agent
        sys.stderr.write("rose: functions of Python are not watched: %s\n" % error)


def _next():
    import sys

    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        sys.modules["sitecustomize"] = own
        if error.name != "sitecustomize":
            raise


_begin()
_next()
