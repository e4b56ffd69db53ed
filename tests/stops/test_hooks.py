"""`breakpoint()` in a body: as without us, or better. Under pytest on a real terminal, and with other hooks."""

from __future__ import annotations

import os
import shlex
import sys

import pytest

from tests import forked
from tests.stops.terminals import talk

UNDER_PYTEST = """
import pdb
import tensorflow as tf
import pyfunc_debug as pfd

def body(x):
    y = x * 2
    breakpoint()
    pdb.set_trace(header="have a look")
    return y

def plain(x):
    return x

def test_body(capsys):
    f = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    with pfd.record(gil=False):
        print("captured")
        assert float(f(tf.constant(4.0))) == 100.0
        here = 1
        breakpoint()
        assert here == 2
    assert "captured" in capsys.readouterr().out
    stop = pfd.break_on("plain")
    tf.py_function(plain, [4.0], tf.float32)
    stop.remove()
    assert stop.outcomes == {"stopped": 1}
"""

TYPED = [
    ("(body #1) ", "y = tf.constant(100.0)\r"), ("(body #1) ", "c\r"), ("(body #", "n\r"), ("(body #", "c\r"),
    ("(Pdb) ", "w\r"), ("(Pdb) ", "here = 2\r"), ("(Pdb) ", "c\r"),
    ("(plain #1) ", "c\r"),
]  # fmt: skip


@pytest.mark.parametrize("capture", [[], ["-s"]], ids=["captured", "-s"])
def test_pytest_gives_the_terminal_back_for_one_prompt(tmp_path, capture):
    (tmp_path / "test_it.py").write_text(UNDER_PYTEST)
    command = [sys.executable, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider", *capture, "test_it.py"]
    # This test may itself run in a worker of xdist's, the pytest that it starts does not.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    screen, code = talk(command, TYPED, cwd=tmp_path, env=environment)
    assert code == 0, screen
    assert "1 passed" in screen
    assert "have a look" in screen
    assert screen.count("pytest captures nothing until") == (0 if capture else 3)
    stack = screen[screen.index("(Pdb) w") : screen.index("(Pdb) here")]
    assert stack.rstrip().endswith("-> breakpoint()") or "-> assert here == 2" in stack
    assert "hooks.py" not in stack


def test_a_worker_of_xdist_says_why_nobody_can_answer(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import tensorflow as tf, pyfunc_debug as pfd\n"
        "def body(x):\n    breakpoint()\n    return x\n"
        "def test_it(capfd):\n"
        "    with pfd.record(gil=False):\n"
        "        assert float(tf.py_function(body, [4.0], tf.float32)) == 4.0\n"
        "    assert 'run pytest with -n 0' in capfd.readouterr().err\n"
    )
    worker = f"popen//python={shlex.join(forked.python())}"
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--dist=load", f"--tx={worker}", "test_it.py"]
    done = forked.run(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert "run pytest with -n 0" in done.stdout  # of a test that passed, too: in pytest's summary of warnings


OTHERS = """
import os, sys
import tensorflow as tf
import pyfunc_debug as pfd

def hook():
    print("hook in", sys._getframe(1).f_code.co_name, flush=True)

def body(x):
    breakpoint()
    return x

f = tf.function(lambda x: tf.py_function(body, [x], tf.float32))

def run(what, named):
    os.environ["PYTHONBREAKPOINT"] = named
    with pfd.record(gil=False):
        print(what, float(f(tf.constant(4.0))), flush=True)

run("none", "0")
run("theirs", "__main__.hook")
run("ours", "")
mine = sys.breakpointhook = hook
run("previous", "")
with pfd.record(gil=False):
    breakpoint()
print(sys.breakpointhook is mine)
"""


def test_other_hooks_are_honoured(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(OTHERS)
    done = forked.run(path)
    assert done.returncode == 0, done.stderr
    said = ["none 4.0", "hook in body", "theirs 4.0", "ours 4.0"]
    said += ["hook in body", "previous 4.0", "hook in <module>", "True"]
    assert done.stdout.splitlines() == said
    assert done.stderr.count("nobody can answer") == 1


PIPED = """
import sys
import tensorflow as tf
import pyfunc_debug as pfd

def body(x):
    breakpoint()
    return x

f = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
with pfd.record(gil=False):
    print("first", float(f(tf.constant(4.0))))
    print("second", float(f(tf.constant(5.0))))
print("rest", sys.stdin.read())
"""

SAID = """\
--- breakpoint(): body #1 on TF-1
'of the home folder'
'of this folder'
> {file}(8)body()
-> return x
(body #1) dbl float(x)
8.0
(body #1) for i in range(2):
...       print("i", i)
...   \n\
i 0
i 1
(body #1) def g(a): return a + 1
(body #1) p g(41)
42
(body #1) x = tf.constant(100.0)
(body #1) c
first 100.0
--- breakpoint(): body #2 on \
"""


def test_commands_are_piped_startup_files_read_and_blocks_typed_as_pdb_has_it(tmp_path):
    path, home, here = tmp_path / "program.py", tmp_path / "home", tmp_path / "here"
    for folder, text in ((home, "alias dbl p 2 * %1\n\np 'of the home folder'\n"), (here, "p 'of this folder'\n")):
        folder.mkdir()
        (folder / ".pdbrc").write_text(text)
    path.write_text(PIPED)
    typed = 'dbl float(x)\nfor i in range(2):\n    print("i", i)\n\ndef g(a): return a + 1\np g(41)\n'
    done = forked.run(
        path, input=typed + "x = tf.constant(100.0)\nc\nc\nof the program", cwd=here,
        env={**os.environ, "HOME": str(home)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(SAID.format(file=path)), done.stdout
    assert done.stdout.endswith("second 5.0\nrest of the program\n")
