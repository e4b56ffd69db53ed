"""Programs of tests that import TensorFlow, without its 3 s of import: forked from a process that has imported it.

The process that has imported TensorFlow has done nothing with it: no context, no thread of TensorFlow's. What it forks
is as a fresh `python ARGUMENTS` is: file descriptors, folder, environment, sys.argv, sys.path, __main__, tracebacks,
exit code (tests/test_forked.py holds them against each other). Not for tests about the order of imports, about
options of the interpreter, or about what TensorFlow reads from the environment as it is imported.

Kernels of notebooks are forked as well, and what an IDE starts: the command of a kernel spec in `kernels()`, as that of
`python()`, is a small process that has its program forked, hands signals on to it and ends as it ends.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import dataclasses
import gc
import importlib.machinery
import importlib.util
import io
import json
import logging
import marshal
import os
import pkgutil
import runpy
import select
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

HANG_S = 600.0
SET_BY_OPENCV = ("LD_LIBRARY_PATH",)
"""What OpenCV, which Keras imports where it is installed, puts in front of its value again in each process."""

MADE = (
    "api", "doctor", "interception", "recorder", "stops", "gil", "values", "analysis", "pfrec", "report", "program",
    "switchboard", "profiler", "cli",
)  # fmt: skip
"""What records and reads, of our packages: it needs nothing but TensorFlow, Rich and Python's own modules."""
ANEW = ("pyfunc_debug.program.file_lines",)
"""Notes the folder that a process begins in."""

_server: list[socket.socket] = []
_kernels: list[str] = []
_address: list[str] = []
"""Of the process that has TensorFlow, where another process of the tests may find it."""
_interrupted: list[BaseException] = []
"""The KeyboardInterrupt that nobody caught in a forked program."""
_ADDED: dict[str, str] = {}
"""What TensorFlow adds to the environment as it is imported."""
_CODE: dict[str, tuple[Any, types.CodeType]] = {}
"""The code of our modules, by file, with what the file's time and size were."""
_MADE: dict[str, _Made] = {}
"""Our modules, by name."""
_get_code: Any = importlib.machinery.SourceFileLoader.get_code
_exec_module: Any = importlib.machinery.SourceFileLoader.exec_module


@dataclasses.dataclass
class _Made:
    """A module of ours that has run, and what an import of it does beside that.

    Attributes:
      module: What is put into sys.modules.
      named: Whether its package has it by its name: a function may have taken the name of its module.
      needs: The modules of ours that it imports.
      deeds: What it has called at exit, and where the process forks.
    """

    module: types.ModuleType
    named: bool
    needs: list[str]
    deeds: list[tuple[Any, Any, Any]]


class Program:
    """A forked program, with what tests use of subprocess.Popen.

    Args:
      arguments: What follows `python`: a script, `-m module` or `-c code`, and its arguments.
      stdin: A file descriptor, as are stdout and stderr.
      stdout: The same.
      stderr: The same.
      cwd: Its folder; that of the tests when not given.
      env: Its environment; that of the tests when not given.
      terminal: stdin is a terminal, and becomes that of a session of its own.
      session: It has a session of its own.
    """

    def __init__(
        self, arguments: list[str], *, stdin: int, stdout: int, stderr: int, cwd: Any = None, env: Any = None,
        terminal: bool = False, session: bool = False,
    ) -> None:  # fmt: skip
        request = {
            "arguments": [str(one) for one in arguments], "cwd": str(cwd or os.getcwd()),
            "env": dict(os.environ if env is None else env), "terminal": terminal, "session": session or terminal,
        }  # fmt: skip
        self.returncode: int | None = None
        ours, theirs = os.pipe()
        self._told = os.fdopen(ours, "rb", buffering=0)
        with tempfile.TemporaryFile() as file:  # a message has room for descriptors, not for any environment
            file.write(json.dumps(request).encode())
            file.flush()
            socket.send_fds(_started(), [b"run"], [file.fileno(), stdin, stdout, stderr, theirs])
        os.close(theirs)
        self.pid = int(self._told.read(8))

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = HANG_S) -> int:
        """Waits for its end; the exit code, as subprocess has it."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked program", timeout or 0)
            self.returncode = int(self._told.read(8))
            self._told.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends it a signal, if it is still there."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kills it."""
        self.send_signal(signal.SIGKILL)


def run(*arguments: Any, cwd: Any = None, env: Any = None, input: str | None = "") -> subprocess.CompletedProcess[str]:
    """Runs `python ARGUMENTS` to its end; its exit code and what it wrote. Without `input`, stdin is /dev/null."""
    with contextlib.ExitStack() as stack:
        out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        stdin, ours = os.pipe()
        if input is None:
            os.close(stdin)
            stdin = os.open(os.devnull, os.O_RDONLY)
        with os.fdopen(ours, "wb", buffering=0) as to_it:  # a buffer would be written once more at its end
            program = Program(
                [*arguments], stdin=stdin, stdout=out.fileno(), stderr=err.fileno(), cwd=cwd, env=env
            )  # fmt: skip
            os.close(stdin)
            with contextlib.suppress(BrokenPipeError):
                to_it.write((input or "").encode())
        try:
            code = program.wait()
        finally:
            program.kill()
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess([*arguments], code, out.read().decode(), err.read().decode())


def kernels() -> str:
    """A folder of kernel specs, for Jupyter: its python3 is forked."""
    _started()
    return _kernels[0]


def python() -> list[str]:
    """What stands for `python` in the command lines of those who start programs themselves: an IDE, a kernel spec."""
    _started()
    return [sys.executable, "-S", __file__, "python", _address[0]]


def shared() -> tuple[str, str]:
    """What `join` takes in other processes of the same tests: all have one process with TensorFlow between them."""
    _started()
    return _address[0], _kernels[0]


def join(address: str, kernels: str) -> None:
    """Has programs forked from the process that another process of the tests started, and gave the address of."""
    _address[:], _kernels[:] = [address], [kernels]


def _write_kernel_spec() -> None:
    folder = Path(tempfile.mkdtemp(prefix="pfd-forked-")) / "kernels"
    (folder / "python3").mkdir(parents=True)
    command = [*python(), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "python3", "language": "python"}
    (folder / "python3" / "kernel.json").write_text(json.dumps(spec))
    _kernels.append(str(folder))


def _nobodys_code() -> str:
    """This file, compiled as code of Python's own: its frames below a program's are not taken for the user's."""
    code = compile(Path(__file__).read_bytes(), "<frozen forked>", "exec")
    file = Path(_kernels[0]).parent / "forked.pyc"
    file.write_bytes(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
    return str(file)


def _stand_for(address: str, arguments: list[str]) -> int:
    """Is, for who started this process, the program that is forked: hands on signals, ends as it does."""
    _address.append(address)
    # Of debugpy, to see into Python's own modules, and of xdist, which writes to no stream of Python's.
    for ignored in (["-X", "frozen_modules=off"], ["-u"]):
        if arguments[: len(ignored)] == ignored:
            del arguments[: len(ignored)]
    program = Program(arguments, stdin=0, stdout=1, stderr=2, session=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os.killpg(program.pid, number))
    code = program.wait(None)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _started() -> socket.socket:
    """The connection to the process that has TensorFlow, which begins with the first program if it was not joined."""
    if not _server and _address:
        _server.append(socket.socket(socket.AF_UNIX))
        _server[0].connect(f"\0{_address[0]}")
    elif not _server:
        ours, theirs = socket.socketpair()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("")  # to an address that Linux chooses
        listener.listen()
        _address.append(listener.getsockname()[1:].decode())
        _write_kernel_spec()
        without = ("PYTHONPATH", *SET_BY_OPENCV)
        environment = {name: value for name, value in os.environ.items() if name not in without}
        process = subprocess.Popen(
            [sys.executable, _nobodys_code(), "serve", str(theirs.fileno()), str(listener.fileno())],
            pass_fds=[theirs.fileno(), listener.fileno()], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
        theirs.close()
        listener.close()
        _server.append(ours)
        atexit.register(_end, process, os.getpid())
    return _server[0]


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """Ends the process that has TensorFlow: as the tests end, not as a process ends that a test forked."""
    if os.getpid() == owner:
        process.kill()
        process.wait()
        shutil.rmtree(Path(_kernels[0]).parent, ignore_errors=True)


def _serve(connection: socket.socket, listener: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Forks a program for each request; comes back in the forked one, with what is asked of it."""
    selector = selectors.DefaultSelector()
    selector.register(connection, selectors.EVENT_READ)
    selector.register(listener, selectors.EVENT_READ)
    stands_for: dict[Any, int] = {}  # the programs of those who came to the listener
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
            elif isinstance(key.fileobj, socket.socket):
                message, received, _, _ = socket.recv_fds(key.fileobj, 3, 5)
                if not message and key.fileobj is connection:
                    os._exit(0)
                if not message:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    if key.fileobj in stands_for:  # killed, as its kernel would be
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(stands_for.pop(key.fileobj), signal.SIGKILL)
                    continue
                asked, *standard, told = received
                pid = os.fork()
                if pid == 0:
                    for other in selector.get_map().values():
                        os.close(other.fd)
                        if isinstance(other.fileobj, socket.socket):
                            other.fileobj.detach()
                        else:
                            os.close(other.data[1])
                    selector.close()
                    os.close(told)
                    with open(asked, "rb") as file:
                        file.seek(0)
                        return json.loads(file.read()), standard
                if key.fileobj is not connection:
                    stands_for[key.fileobj] = pid
                os.write(told, b"%8d" % pid)
                for one in (asked, *standard):
                    os.close(one)
                selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, told))
            else:
                pid, told = key.data
                selector.unregister(key.fileobj)
                os.close(key.fd)
                stands_for = {who: its for who, its in stands_for.items() if its != pid}
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(BrokenPipeError):
                    os.write(told, b"%8d" % code)
                os.close(told)


def _become(request: dict[str, Any], standard: list[int]) -> types.ModuleType:
    """Makes this process what was asked for; its `__main__`, which is empty yet."""
    if request["session"]:
        os.setsid()
    if request["terminal"]:
        import fcntl
        import termios

        fcntl.ioctl(standard[0], termios.TIOCSCTTY, 0)
    for place, one in enumerate(standard):
        os.dup2(one, place)
    for one in standard:
        if one > 2:
            os.close(one)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update({**_ADDED, **request["env"]})
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    for place, name in enumerate(("stdin", "stdout", "stderr")):
        raw = io.FileIO(place, "rb" if place == 0 else "wb", closefd=False)
        raw.name = f"<{name}>"
        binary = io.BufferedReader(raw) if place == 0 else raw if unbuffered else io.BufferedWriter(raw)
        stream = io.TextIOWrapper(
            binary, encoding=getattr(sys, name).encoding, errors=getattr(sys, name).errors,
            line_buffering=not unbuffered and (place == 2 or raw.isatty()), write_through=unbuffered,
        )  # fmt: skip
        stream.mode = "r" if place == 0 else "w"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    kind, *rest = arguments = request["arguments"]
    sys.orig_argv = [sys.executable, *arguments]
    folder, script = os.path.isdir(kind), not kind.startswith("-")
    place = os.path.abspath(kind) if folder else os.path.dirname(os.path.realpath(kind))
    first = place if script else os.getcwd() if kind == "-m" else ""
    more = [os.path.abspath(one) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    sys.path[:] = [first, *more, *sys.path[1:]]
    sys.argv = arguments if script else [kind, *rest[1:]]
    importlib.invalidate_caches()
    if logs := sys.modules.get("tensorflow.python.platform.tf_logging"):  # it logs to the stream of its first use
        logging.getLogger("tensorflow").handlers.clear()
        logs._logger = None
    if matplotlib := sys.modules.get("matplotlib"):  # Keras imports it; it reads MPLBACKEND then, which a kernel sets
        kernel = "module://matplotlib_inline.backend_inline" if "ipykernel_launcher" in request["arguments"] else None
        if backend := os.environ.get("MPLBACKEND", kernel):
            matplotlib.rcParams["backend"] = backend
    if "numpy" in sys.modules:  # its generator is seeded as it is imported
        sys.modules["numpy"].random.seed()
    atexit.register(_die_if_interrupted)
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __annotations__={}, __loader__=importlib.machinery.BuiltinImporter)
    if script and not folder:
        path = os.path.abspath(kind)
        loader = importlib.machinery.SourceFileLoader("__main__", path)
        main.__dict__.update(__loader__=loader, __file__=path, __cached__=None)
    sys.modules["__main__"] = main
    return main


def _leave_what_was_imported(names: list[str]) -> None:
    """The last that runs at exit: what TensorFlow's modules hold since they were imported is not taken apart.

    Each of their pages would be copied for that, 0.1 s of CPU. What the program imported and made goes as ever.
    """
    ends = {*sys.stdlib_module_names, "__main__", "__mp_main__"}
    kept = {name: sys.modules.get(name) for name in names if name.partition(".")[0] not in ends}
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    sys.modules.update(dict.fromkeys(kept))  # as Python does it with all of them: what is imported now fails


def _read_code(package: str) -> None:
    """Reads the code of a package's modules once for all programs: each runs it anew, from files that are as they were.

    To find the 500 files that a recording imports, to read them and to make code of them took 0.1 s of CPU a program.
    """
    for file in Path(importlib.util.find_spec(package).submodule_search_locations[0]).rglob("*.py"):
        path = str(file)
        loader = importlib.machinery.SourceFileLoader(".".join(file.parts), path)
        with contextlib.suppress(SyntaxError, UnicodeDecodeError):
            _CODE[path] = (loader.path_stats(path), _get_code(loader, loader.name))


def _known_code(loader: importlib.machinery.SourceFileLoader, name: str) -> types.CodeType | None:
    """In the place of a loader's `get_code`."""
    path = loader.path
    if path in _CODE:
        stats, code = _CODE[path]
        with contextlib.suppress(OSError):
            if loader.path_stats(path) == stats:
                return code
    return _get_code(loader, name)


def _make(package: str) -> None:
    """Runs a package's modules once for all programs, and takes them away again: 0.2 s of CPU a program that records.

    A program that imports one of them gets it as if it had run: with what it imports of ours, and with what it has
    called at exit and at forks. Those that look at the process that imports them run anew, as the package itself does.
    """
    needs: dict[str, dict[str, None]] = {}
    deeds: dict[str, list[tuple[Any, Any, Any]]] = {}
    running: list[str] = []
    real_import, real_named = builtins.__import__, importlib.import_module
    real_calls = (atexit.register, os.register_at_fork)

    def importing(name: str, *arguments: Any, **others: Any) -> Any:
        """In the place of `__import__`: notes what a module asks for as it runs."""
        module = real_import(name, *arguments, **others)
        names = arguments[2] if len(arguments) > 2 else others.get("fromlist")
        note(name, *(f"{name}.{inner}" for inner in names or ()))
        return module

    def import_named(name: str, *arguments: Any) -> Any:
        """In the place of `importlib.import_module`."""
        module = real_named(name, *arguments)
        note(module.__name__)
        return module

    def note(*names: str) -> None:
        if running:
            its = [one for one in names if one.startswith(f"{package}.") and one in sys.modules]
            needs.setdefault(running[-1], {}).update(dict.fromkeys(its))

    def run(loader: importlib.machinery.SourceFileLoader, module: types.ModuleType) -> None:
        """In the place of a loader's `exec_module`: notes which one runs."""
        running.append(module.__name__)
        try:
            _exec_module(loader, module)
        finally:
            running.pop()

    def noting(call: Any) -> Any:
        return lambda *given, **named: deeds.setdefault(running[-1], []).append((call, given, named))

    builtins.__import__, importlib.import_module = importing, import_named
    importlib.machinery.SourceFileLoader.exec_module = run  # type: ignore[method-assign]
    atexit.register, os.register_at_fork = map(noting, real_calls)  # type: ignore[assignment]
    try:
        for room in MADE:
            inside = real_named(f"{package}.{room}")
            for one in pkgutil.walk_packages(inside.__path__, f"{inside.__name__}."):
                real_named(one.name)
    finally:
        builtins.__import__, importlib.import_module = real_import, real_named
        importlib.machinery.SourceFileLoader.exec_module = _exec_module  # type: ignore[method-assign]
        atexit.register, os.register_at_fork = real_calls
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        parent, _, child = name.rpartition(".")
        module = sys.modules[name]
        named = vars(sys.modules[parent]).get(child) is module
        _MADE[name] = _Made(module, named, [*needs.get(name, ())], deeds.get(name, []))
    for name, made in _MADE.items():
        parent, _, child = name.rpartition(".")
        if made.named:
            delattr(sys.modules[parent], child)
    for name in (package, *_MADE):
        del sys.modules[name]
    importlib.machinery.SourceFileLoader.create_module = _made_module  # type: ignore[method-assign]
    importlib.machinery.SourceFileLoader.exec_module = _run_unless_made  # type: ignore[method-assign]


def _made_module(loader: importlib.machinery.SourceFileLoader, spec: Any) -> types.ModuleType | None:
    """In the place of a loader's `create_module`: one that has run, if this is its file.

    Not under pytest, which runs the modules of its plugins' packages by itself: two of each would be there.
    """
    made = _MADE.get(spec.name) if "_pytest" not in sys.modules else None
    return made.module if made is not None and made.module.__file__ == loader.path else None


def _run_unless_made(loader: importlib.machinery.SourceFileLoader, module: types.ModuleType) -> None:
    """In the place of a loader's `exec_module`."""
    made = _MADE.get(module.__name__)
    if made is None or made.module is not module or "_pytest" in sys.modules:
        _exec_module(loader, module)
        return
    _do(made)


# As a frame of Python's own imports, which no traceback shows.
_run_unless_made.__code__ = _run_unless_made.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")


def _take(name: str) -> None:
    """Has a module that has run, as if it was imported, and what it needs."""
    if name in sys.modules:
        return
    parent, _, child = name.rpartition(".")
    if parent in _MADE:
        _take(parent)
    made = _MADE[name]
    if name in sys.modules:
        return
    sys.modules[name] = made.module
    _do(made)
    if made.named:
        setattr(sys.modules[parent], child, made.module)


def _do(made: _Made) -> None:
    """What the run of a module does beside itself."""
    if made.module.__name__ in ANEW:
        _exec_module(made.module.__loader__, made.module)
    for call, given, named in made.deeds:
        call(*given, **named)
    for name in made.needs:
        _take(name)


def _die_if_interrupted() -> None:
    """What nobody catches of Ctrl-C ends a program by that signal, after its last words."""
    if _interrupted:
        sys.stdout.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


def _said(error: BaseException) -> int:
    """Says that the program failed, as Python does: without the frame of ours that it ran in; the exit code."""
    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
    if type(error) is KeyboardInterrupt:
        _interrupted.append(error)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    sys.excepthook(type(error), error, error.__traceback__)
    return 1


if __name__ == "__main__":
    if sys.argv[1] == "python":
        sys.exit(_stand_for(sys.argv[2], sys.argv[3:]))
    _sockets = [socket.socket(fileno=int(_number)) for _number in sys.argv[2:4]]
    _before = set(os.environ)
    _names: list[str] = []
    atexit.register(_leave_what_was_imported, _names)  # the first is the last that runs
    import tensorflow  # noqa: F401

    _names += sys.modules

    _read_code("pyfunc_debug")
    _read_code("jupyter_ext")
    _make("pyfunc_debug")
    importlib.machinery.SourceFileLoader.get_code = _known_code  # type: ignore[method-assign]
    _ADDED.update((_name, _value) for _name, _value in os.environ.items() if _name not in _before)
    gc.collect()
    gc.freeze()
    _main = _become(*_serve(*_sockets))  # from here on in a program
    try:
        if sys.orig_argv[1] == "-m":
            runpy._run_module_as_main(sys.orig_argv[2])
        elif sys.orig_argv[1] == "-c":
            exec(compile(sys.orig_argv[2], "<string>", "exec"), _main.__dict__)
        elif os.path.isdir(sys.orig_argv[1]):
            runpy._run_module_as_main("__main__", alter_argv=False)
        else:
            with open(_main.__file__, "rb") as _file:
                _code = _file.read()
            exec(compile(_code, _main.__file__, "exec"), _main.__dict__)
    except SystemExit:
        raise
    except BaseException as _error:
        sys.exit(_said(_error))
