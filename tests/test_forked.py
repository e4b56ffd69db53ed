"""A program that is forked with TensorFlow imported is what it is when Python starts it."""

import difflib
import os
import re
import subprocess
import sys
from collections import defaultdict

import pytest
from jupyter_client.manager import KernelManager

from tests import forked
from tests.limits import HANG_S
from tests.stops.kernels import manager
from tests.stops.terminals import talk

PROGRAM = """
import atexit, os, signal, sys, threading
atexit.register(print, "last words")
how = sys.argv[1]
if how in ("what", "tensorflow"):
    import gc
    if how == "tensorflow":
        import tensorflow as tf
    print(__name__, sorted(globals()), globals().get("__file__"), __spec__, type(__loader__), __builtins__)
    print(sys.argv, sys.orig_argv, sys.path, sys.modules["__main__"].__dict__ is globals(), os.getcwd())
    print(os.getenv("PLANTED"), [*os.listdir("/proc/self/fd")][:-1])
    for one in (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__):
        print(one, one.encoding, one.errors, one.line_buffering, one.write_through, one.isatty(), one.fileno())
    print([(one, signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD)])
    print(sys.gettrace(), sys.getprofile(), threading.excepthook, threading.enumerate()[0].name)
    print(threading.current_thread() is threading.main_thread(), sys.flags, gc.isenabled(), gc.get_threshold())
    print([*filter(lambda name: name.split(".")[0] in ("tests", "pyfunc_debug", "jupyter_ext"), sys.modules)])
    threading.Thread(target=lambda: print("a thread")).start()
if how == "tensorflow":
    print(sys.excepthook, sorted(os.environ.items()), tf.config.get_visible_devices())
    f = tf.function(lambda x: tf.numpy_function(lambda y: y * 2, [x], tf.float32))
    data = tf.data.Dataset.range(4).map(lambda i: f(tf.cast(i, tf.float32)), num_parallel_calls=2)
    print([float(x) for x in data], input(), file=sys.stderr)
if how == "exit":
    sys.exit(7)
if how == "text":
    sys.exit("a reason")
if how == "raise":
    def inner():
        raise ValueError("the user's")
    inner()
if how == "interrupt":
    signal.raise_signal(signal.SIGINT)
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "broken.py").write_text("x = = 1\n")
    (folder / "within").mkdir()
    (folder / "within" / "__main__.py").write_text(PROGRAM)
    return folder


def _environment():
    return {name: value for name, value in os.environ.items() if name not in forked.SET_BY_OPENCV}


def _fresh(*arguments, **options):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=HANG_S, **options)


def _said(done):
    return re.sub("0x[0-9a-f]+", "0x", done.stdout)


@pytest.mark.parametrize(
    "arguments",
    [pytest.param(("program.py", "tensorflow"), marks=pytest.mark.more),
     ("program.py", "what"), ("-m", "program", "what"), ("-c", PROGRAM, "what"),
     ("within", "what"), ("within", "raise"),
     ("program.py", "exit"), ("program.py", "text"), ("program.py", "raise"), ("program.py", "interrupt"),
     ("program.py", "kill"), ("broken.py",)],
    ids=lambda arguments: "-".join(arguments).replace(PROGRAM, "code"),
)  # fmt: skip
def test_it_is_what_it_would_be(folder, arguments):
    environment = {**_environment(), "PLANTED": "here", "PYTHONPATH": f"{folder}/more"}
    environment.pop("PYTHONUNBUFFERED" if arguments[0] == "program.py" else "", None)
    fresh = _fresh(*arguments, cwd=folder, env=environment, input="typed\n")
    ours = forked.run(*arguments, cwd=folder, env=environment, input="typed\n")
    assert ours.returncode == fresh.returncode
    assert _said(ours) == _said(fresh)
    said = [line for line in fresh.stderr.splitlines() if not re.match(r"WARNING: All log|[IWE]0000 ", line)]
    assert ours.stderr.splitlines() == said, "but for what TensorFlow logs as it is imported"


MADE = """
import os
class Told:
    def __init__(self, name):
        self.name = name
    def __del__(self, write=os.write):
        write(1, f"{self.name} is released\\n".encode())
one = Told("a global")
def function():
    return one
function.told = Told("an attribute")
import part
part.told = Told("what a module of its own holds")
"""


def test_what_it_made_and_imported_is_released_as_it_ends(folder):
    (folder / "made.py").write_text(MADE)
    (folder / "part.py").write_text("")
    fresh, ours = _fresh("made.py", cwd=folder), forked.run("made.py", cwd=folder)
    assert sorted(ours.stdout.splitlines()) == sorted(fresh.stdout.splitlines())
    assert len(fresh.stdout.splitlines()) == 3


IMPORTING = """
import importlib, os, sys
began = os.getcwd()
import pyfunc_debug as pfd
names = [name for name in sys.modules if name.startswith("pyfunc_debug")]
os.chdir("within")
for wanted in sys.argv[1:]:
    importlib.import_module(wanted)
pfd.record
found = {name: module for name, module in sys.modules.items() if name.startswith("pyfunc_debug")}
print(names, sys.modules["pyfunc_debug.program.file_lines"]._BEGAN_IN == began)
for name, module in sorted(found.items()):
    inner = [(key, value is sys.modules.get(value.__name__)) for key, value in sorted(vars(module).items())
             if isinstance(value, type(sys))]
    print(name, module.__file__, module.__loader__, module.__spec__.name, sorted(vars(module)), inner)
class Said(set):
    def __iter__(self):
        print("in a child, what belongs to its parent is looked for")
        return super().__iter__()
sys.modules["pyfunc_debug.pfrec.ring"]._held = Said()
sys.stdout.flush()
if os.fork():
    os.wait()
"""


INNER = "pyfunc_debug.doctor.failures.reading.situation"


@pytest.mark.parametrize("wanted", [[], [INNER], ["pyfunc_debug.cli"]], ids=str)
def test_our_modules_are_what_they_are_when_they_run_in_it(folder, wanted):
    (folder / "importing.py").write_text(IMPORTING)
    fresh = _fresh("importing.py", *wanted, cwd=folder)
    ours = forked.run("importing.py", *wanted, cwd=folder)
    assert "in a child, what belongs to its parent is looked for" in fresh.stdout, fresh.stderr
    assert _said(ours) == _said(fresh)


def test_it_has_a_terminal_of_its_own_and_is_interrupted_there(tmp_path):
    (tmp_path / "waits.py").write_text(
        "import os, sys, time\n"
        "try:\n    print(os.getsid(0) == os.getpid(), sys.stdin.isatty(), sys.stdout.line_buffering)\n"
        "    while True: time.sleep(0.01)\n"  # signal.pause() would sleep on if the signal came just before it
        "except KeyboardInterrupt:\n    print('caught', input('?'))\n"
    )
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    script = [("True True True", "\x03"), ("?", "yes\r")]
    screen, code = talk([sys.executable, "waits.py"], script, cwd=tmp_path, env=buffered)
    assert "caught yes" in screen
    assert code == 0


CELL = """
import os, signal, sys, threading
import tensorflow as tf
print(__name__, sorted(name for name in globals() if name[:2] == "__"), __builtins__, sys.modules["__main__"].f is f)
print(sys.argv[0], sys.orig_argv[:-1], sys.path, os.getcwd(), os.getsid(0) == os.getpgrp() == os.getpid(), sys.flags)
print(sorted((name, value) for name, value in os.environ.items() if name not in ("JPY_SESSION_NAME", "PLANTED")))
print([(one, signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD)])
print(threading.current_thread() is threading.main_thread(), sorted(one.name for one in threading.enumerate()))
print(sys.stdin, type(sys.stdout), type(sys.stderr), sys.__stdout__, sys.excepthook, sys.displayhook)
tf.get_logger().warning("of TensorFlow")
print(f(tf.constant(2.0)), [float(x) for x in tf.data.Dataset.range(2).map(lambda i: f(tf.cast(i, tf.float32)))])
"""
WAITING = "import time\nprint('waits', flush=True)\nwhile True: time.sleep(0.01)"


def _kernel_says(manager, folder):
    """What a kernel says and what Interrupt does, each stream by itself, and the exit code of a kernel that is killed.

    Which of two streams is sent first is a matter of ipykernel's clock.
    """
    manager.start_kernel(cwd=str(folder), env={**_environment(), "PYTHONPATH": f"{folder}/more"})
    client = manager.client()
    client.start_channels()
    told = defaultdict(str)

    def hook(message):
        kind, content = message["msg_type"], message["content"]
        name = content.get("name") or kind
        told[name] += content.get("text") or content.get("evalue") or content.get("ename") or ""
        if name == "stdout" and told["stdout"].endswith("waits\n"):
            manager.interrupt_kernel()

    try:
        client.wait_for_ready(timeout=HANG_S)
        defined = (
            "import tensorflow as tf\nf = tf.function(lambda x: tf.numpy_function(lambda y: y * 2, [x], tf.float32))"
        )
        for cell in (defined, CELL, WAITING):
            client.execute_interactive(cell, timeout=HANG_S, output_hook=hook)
        process = manager.provisioner.process
        client.execute("os.kill(os.getpid(), signal.SIGKILL)")
        code = process.wait(HANG_S)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return {name: re.sub("0x[0-9a-f]+|/tmp/ipykernel_[0-9/]+", "#", text) for name, text in told.items()}, code


@pytest.mark.more
def test_a_kernel_is_what_it_would_be(tmp_path):
    fresh, ours = (_kernel_says(one, tmp_path) for one in (KernelManager(kernel_name="python3"), manager()))
    both = [[f"{name}: {line}" for name, text in sorted(one[0].items()) for line in text.split("\n")]
            for one in (fresh, ours)]  # fmt: skip
    different = [one for one in difflib.ndiff(*both) if one[0] != " "]
    assert not different, "\n".join(different)
    assert ours == fresh
    assert "KeyboardInterrupt" in fresh[0]["error"]
    assert fresh[1] < 0
