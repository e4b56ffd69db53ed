"""`pyfunc-debug record` runs a program as `python` does: output, exit code, tracebacks, stdin, signals, threads."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

import pyfunc_debug as pfd
from pyfunc_debug import cli
from tests import forked
from tests.limits import HANG_S, LIGHT

PROGRAM = """
import atexit, os, signal, sys, threading
atexit.register(print, "last words")
import tensorflow as tf

def double(x):
    return x * 2

@tf.function
def f(x):
    return tf.numpy_function(double, [x], tf.float32)

print(sys.argv[1:], __name__, os.path.basename(__file__), sys.path[0] == os.path.dirname(os.path.abspath(__file__)))
print(sys.modules["__main__"].double is double)
for _ in range(3):
    f(tf.constant(2.0))
how = sys.argv[1]
if how == "exit":
    sys.exit(7)
if how == "raise":
    raise ValueError("the user's")
if how == "interrupt":
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if how == "plain":
    print("got", input())
    ready = threading.Event()
    def later():
        ready.wait()
        f(tf.constant(3.0))
        print("thread done")
    threading.Thread(target=later).start()
    ready.set()
"""

ENVIRONMENT = {
    **os.environ,
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONPATH": os.pathsep.join([LIGHT, *filter(None, sys.path)]),
}


def run(*command, cwd, **options):
    return subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=HANG_S, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    (folder / "program.py").write_text(PROGRAM)
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("import sys\nfrom . import part\nprint(sys.argv[1:], __name__, __package__)\n")
    (package / "part.py").write_text("")
    return folder


class Ran:
    """Programs that ran, as python runs them and as we do: each of them once for all tests.

    One imports TensorFlow while it is recorded, the others are forked with it.
    """

    def __init__(self, folder):
        self.folder = folder
        self._done = {}

    def stock(self, how):
        if how not in self._done:
            self._done[how] = self._run(how, "program.py", how)
        return self._done[how]

    def ours(self, how):
        """How it ended, and its recording's path."""
        path = self.folder / f"{how}.pfrec"
        if path not in self._done:
            self._done[path] = self._run(how, "-m", "pyfunc_debug", "record", "-o", str(path), "program.py", how)
        return self._done[path], path

    def _run(self, how, *arguments):
        if how == "plain" and "record" in arguments:
            return run(sys.executable, *arguments, cwd=self.folder, input="hello\n")
        return forked.run(*arguments, cwd=self.folder, env=ENVIRONMENT, input="hello\n")


@pytest.fixture(scope="module")
def ran(folder):
    return Ran(folder)


@pytest.mark.parametrize(("how", "code", "calls"), [("plain", 0, 4), ("raise", 1, 3)])
def test_a_program_runs_as_with_python(ran, how, code, calls):
    stock, (ours, path) = ran.stock(how), ran.ours(how)
    assert (ours.returncode, ours.stdout) == (stock.returncode, stock.stdout)
    assert stock.returncode == code
    assert "last words" in ours.stdout
    if how == "plain":
        assert "got hello\n" in ours.stdout, "stdin is the program's"
        assert "thread done\n" in ours.stdout
    else:
        expected = stock.stderr[stock.stderr.index("Traceback") :]
        assert expected in ours.stderr, "the same traceback, and no frame of ours"
    _recorded(ours, path, calls)


@pytest.mark.parametrize(("how", "code"), [("exit", 7), ("interrupt", -signal.SIGINT)])
def test_a_program_ends_as_with_python(ran, how, code):
    ours, path = ran.ours(how)
    assert ours.returncode == code
    assert ours.stdout == ran.stock("raise").stdout.replace("'raise'", f"'{how}'")
    _recorded(ours, path, 3)


def _recorded(ours, path, calls):
    assert "pyfunc_debug/" not in ours.stderr
    assert "double" in ours.stderr  # the ledger
    recording = pfd.open(path)
    assert len(list(recording.calls("double"))) == calls
    assert recording.meta["state"] == "complete"


def test_a_killed_program_leaves_a_readable_recording(ran):
    ours, path = ran.ours("kill")
    assert ours.returncode == -signal.SIGKILL
    recording = pfd.open(path)
    assert recording.meta["state"] == "interrupted"
    assert "the program died" in str(recording.ledger())


def test_a_module_runs_as_with_python_m(folder):
    stock = run(sys.executable, "-m", "package", "a", "-b", cwd=folder)
    (folder / "package.pfrec").touch()  # an older run's
    ours = run(sys.executable, "-m", "pyfunc_debug", "record", "-q", "-m", "package", "a", "-b", cwd=folder)
    said = ours.stderr.splitlines()
    assert said[-1] == "recorded in package-2.pfrec (package.pfrec was there already: --overwrite replaces it)"
    assert "traced" not in ours.stderr, "no ledger"
    assert (ours.returncode, ours.stdout) == (stock.returncode, stock.stdout) == (0, "['a', '-b'] __main__ package\n")


def test_overwrite_takes_the_usual_file_again(tmp_path):
    (tmp_path / "nothing.py").write_text("print(1)\n")
    (tmp_path / "nothing.pfrec").touch()  # an older run's
    ours = run(sys.executable, "-m", "pyfunc_debug", "record", "-q", "--overwrite", "nothing.py", cwd=tmp_path)
    assert ours.stderr.splitlines()[-1] == "recorded in nothing.pfrec"
    assert pfd.open(str(tmp_path / "nothing.pfrec")).meta["state"] == "complete"
    assert [path.name for path in tmp_path.glob("*.pfrec")] == ["nothing.pfrec"]


def test_syntax_errors_are_the_users(folder):
    (folder / "broken.py").write_text("x = = 1\n")
    stock = run(sys.executable, "broken.py", cwd=folder)
    ours = run(sys.executable, "-m", "pyfunc_debug", "record", "-q", "broken.py", cwd=folder)
    assert ours.returncode == stock.returncode == 1
    *_, error, where = ours.stderr.splitlines()
    assert error == stock.stderr.splitlines()[-1] == "SyntaxError: invalid syntax"
    assert where == "recorded in broken.pfrec"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["record", "nope.py"], 2, "no such script: nope.py"),
        (["record", "-m", "nope"], 2, "no such module: nope"),
        (["record"], 2, "which program?"),
        (["record", "--budget", "lots", "program.py"], 2, "budget='lots' is not an amount of bytes"),
        (["record", "--values", "sumary", "program.py"], 2, "Did you mean 'summary'?"),
        (["record", "-o", "/dev/null/x.pfrec", "program.py"], 1, "the folder"),
        (["record", "-o", "program.py", "program.py"], 2, "exists and is not a recording"),
        (["show", "nope.pfrec"], 1, "no such recording"),
        (["show", "program.py"], 1, "is not a recording"),
        (["show", "good.pfrec", "--node", "dubble"], 2, "There are: double"),
        (["show", "good.pfrec", "--call", "99"], 1, "no call 99"),
        (["query", "good.pfrec", "delete from call"], 2, "can only read"),
        (["query", "good.pfrec", "selec"], 2, "syntax error"),
    ],
)
def test_bad_input_is_one_clear_line(folder, good, arguments, code, text, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert cli.main(arguments) == code
    out, err = capsys.readouterr()
    assert text in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""


def test_the_command_exits_with_what_main_says(folder):
    done = run(sys.executable, "-m", "pyfunc_debug", "record", "nope.py", cwd=folder)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


@pytest.fixture(scope="module")
def good(ran, folder):
    """A good recording beside the programs."""
    done, path = ran.ours("exit")
    assert done.returncode == 7, done.stderr
    return shutil.copy(path, folder / "good.pfrec")


def test_show_and_query_speak_json(folder, good, monkeypatch, capsys):
    def json_of(*arguments):
        assert cli.main([*arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    monkeypatch.chdir(folder)
    ledger = json_of("show", "good.pfrec")
    alone = run(sys.executable, "-m", "pyfunc_debug", "show", "good.pfrec", "--json", cwd=folder)
    assert json.loads(alone.stdout) == ledger
    (function,) = ledger["functions"]
    assert (function["name"], function["traces"], function["runs"]) == ("f", 1, 3)
    assert [(node["body"], node["calls"]) for node in function["nodes"]] == [("double", 3)]
    call = json_of("show", "good.pfrec", "--call", "2")
    assert call["inputs"][0]["text"] == "float32[] 2.0"
    assert call["outputs"][0]["mean"] == 4.0
    assert json_of("query", "good.pfrec", "select count(*) as n from call") == [{"n": 3}]
    assert json_of("doctor", "good.pfrec") == []
    assert json_of("show", "good.pfrec", "--node", "d*")[0]["calls"][0]["status"] == "ok"


def test_a_file_that_is_there_is_told_with_the_commands_option_and_leaves_no_breakpoint(tmp_path, capsys):
    from pyfunc_debug.switchboard import board

    (tmp_path / "prog.py").write_text("print('runs')")
    older = tmp_path / "older.pfrec"
    older.touch()
    assert cli.main(["record", "--break", "crop", "-o", str(older), str(tmp_path / "prog.py")]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == (
        "",
        f"pyfunc-debug: the empty file {older} exists: choose another path, or overwrite it (--overwrite)\n",
    )
    assert not board.rules.all()


OUT_OF_RANGE = """
import tensorflow as tf
@tf.function
def f(x):
    return tf.gather(x, 7)
f(tf.constant([1.0]))
"""


def test_the_text_of_where_a_node_was_made_has_no_frame_of_ours(tmp_path):
    (tmp_path / "p.py").write_text(OUT_OF_RANGE)
    ours = forked.run("-m", "pyfunc_debug", "record", "-q", "p.py", cwd=tmp_path, env=ENVIRONMENT)
    place = ours.stderr.index("defined at (most recent call last):")
    assert 'p.py", line 5, in f\n' in ours.stderr[place:]
    assert "pyfunc_debug" not in ours.stderr[place : ours.stderr.index("indices = 7")]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import tensorflow as tf\nraise KeyError('of the program')\n", "knows no cause for this KeyError.\n"),
        (
            "import tensorflow as tf\nds = tf.data.Dataset.from_tensor_slices({'a': [[1.0, 2.0]]})\nlimit = 3\n"
            "def ask(data, sizes):\n    raise KeyError(data, sizes[0], limit)\nask(ds, {'w': 1, 0: 2})\n",
            "knows no cause for this KeyError.\n  in p.py:5: data is a dataset of {'a': float32[2]}, sizes is dict "
            "with 'w', 0,\n    limit is 3\n",
        ),
        (
            "import numpy as np\nimport tensorflow as tf\nplace, share = np.int32(13), np.float32(0.1)\n"
            "def ask(n, s, t):\n    raise KeyError(n, s, t)\nask(place, share, tf.constant(True))\n",
            "knows no cause for this KeyError.\n  in p.py:5: n is 13, s is 0.1, t is True\n",
        ),
        (
            "import tensorflow as tf\nx = tf.Variable(3.0)\nwith tf.GradientTape() as t:\n    y = x * 2\n"
            "print(t.gradient(x**2, x).numpy())\n",
            "knows no sure cause for this AttributeError; what it found may be it:\n\nwarning: p.py:5:",
        ),
        (
            "import subprocess, sys\nimport tensorflow as tf\nmodule = tf.Module()\n"
            "double = lambda x: tf.numpy_function(lambda y: y * 2, [x], tf.float32)\n"
            "module.double = tf.function(double, input_signature=[tf.TensorSpec([])])\n"
            "tf.saved_model.save(module, 'saved')\nsubprocess.run([sys.executable, '-c', '1 / 0'], check=True)\n",
            "knows no sure cause for this CalledProcessError; what it found may be it:\n",
        ),
        ("import tensorflow as tf\ntf.py_function(lambda x: 1 / 0, [1.0], tf.float32)\n", "[body-raised]"),
        ("import tensorflow as tf\nprint(tf.function(lambda x: x * 2)(tf.constant(1.0)))\n", "recorded in"),
    ],
    ids=["unknown", "with names", "numbers of numpy", "likely", "child", "known", "well"],
)
def test_of_a_failure_without_a_known_cause_it_is_said_that_none_is_known(tmp_path, program, said):
    (tmp_path / "p.py").write_text(program)
    ours = forked.run("-m", "pyfunc_debug", "record", "p.py", cwd=tmp_path, env=ENVIRONMENT)
    assert said in ours.stderr
    assert ("knows no" in ours.stderr) is ("knows no" in said)
    assert "No py_function of yours was made" not in ours.stderr


BIN, MODULE = os.path.dirname(sys.executable), [sys.executable, "-m", "pyfunc_debug"]
NAMED_AS_OURS = """
import code, html, statistics
print(code.run(), html.run(), statistics.run())
import difflib, tensorflow as tf
print(hasattr(difflib, "get_close_matches"))
tf.py_function(lambda x: x, [1.0], tf.float32)
"""


@pytest.mark.more  # tests/program/test_shadowed.py has the heart of it
def test_modules_beside_the_program_are_its_own_also_where_we_have_loaded_others_of_their_names(tmp_path):
    (tmp_path / "program.py").write_text(NAMED_AS_OURS)
    (tmp_path / "difflib").mkdir()  # without __init__.py: Python takes its own
    for name in ("code", "html", "statistics"):
        (tmp_path / f"{name}.py").write_text("def run():\n    return __name__\n")
    plain, recorded, as_module = (
        subprocess.run(
            [*by, "program.py"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=HANG_S
        )
        for by in ([sys.executable], [shutil.which("pyfunc-debug", path=BIN), "record"], [*MODULE, "record"])
    )
    assert plain.stdout == recorded.stdout == as_module.stdout == "code html statistics\nTrue\n", (
        plain.stderr + recorded.stderr
    )
    assert [one.returncode for one in (plain, recorded, as_module)] == [0, 0, 0], recorded.stderr
    assert "recorded in program.pfrec" in recorded.stderr


OF_KERAS = """
import tensorflow as tf

inputs = tf.keras.Input((2,))
columns = [tf.keras.layers.Lambda(lambda t: t[:, j : j + 1])(inputs) for j in range(2)]
model = tf.keras.Model(inputs, columns)
model(tf.ones((1, 2)))
"""


def test_of_a_program_in_which_nothing_was_traced_the_text_is_kept_and_its_traps_are_told(tmp_path):
    (tmp_path / "columns.py").write_text(OF_KERAS)
    done = forked.run("-m", "pyfunc_debug", "record", "columns.py", cwd=tmp_path, env=ENVIRONMENT)
    assert done.returncode == 0
    assert "Lambda(lambda t, j: t[:, j:j + 1], arguments={'j': j})" in done.stderr.replace(" : ", ":")


FILES = """
import os, resource
import numpy as np, tensorflow as tf
open("one.txt", "w").write("1 2 3")
resource.setrlimit(resource.RLIMIT_NOFILE, (300, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
kept = []
def rows():
    while True:
        kept.append(open("one.txt"))
        yield np.array(kept[-1].read().split(), np.float32)
for row in tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((3,), tf.float32)):
    pass
"""


def test_a_program_that_has_opened_all_files_that_it_may_is_explained(tmp_path):
    (tmp_path / "files.py").write_text(FILES)
    done = run(sys.executable, "-m", "pyfunc_debug", "record", "files.py", cwd=tmp_path)
    assert "pyfunc-debug: files.py:9: this process has as many files open as it may" in done.stderr
    assert "trouble" not in done.stderr
    assert "During handling" not in done.stderr
