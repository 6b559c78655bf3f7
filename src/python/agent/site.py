"""Python loads this file at its start, because its folder is in PYTHONPATH. It loads rose's agent, and then the module
of the same name that Python would have loaded without it."""


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
