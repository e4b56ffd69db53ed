"""A module beside the program is the program's, also where it is called as one of Python's that we import."""

from __future__ import annotations

import subprocess
import sys

from tests.limits import HANG_S

PROGRAM = """
import sys
import pyfunc_debug.cli
from pyfunc_debug.program.shadowed import give_way
folder = sys.argv[1]
taken = give_way(folder)
sys.path.insert(0, folder)
import code, difflib, html, statistics
print(*(one.__file__.startswith(folder) for one in (code, html, statistics)), hasattr(difflib, "get_close_matches"))
print("pyfunc_debug.doctor.rules.predict_calls" in taken)
from pyfunc_debug.doctor.rules import predict_calls
print(hasattr(predict_calls.statistics, "median"))
sys.modules.update(taken)
import code
print(hasattr(code, "InteractiveConsole"), "tensorflow" in sys.modules, folder in sys.path[1:])
print(give_way(folder + "/nowhere"))
"""


def test_the_program_has_its_own_and_we_have_pythons(tmp_path):
    for name in ("code", "html", "statistics"):
        (tmp_path / f"{name}.py").touch()
    (tmp_path / "difflib").mkdir()  # without __init__.py it is not what Python finds first
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=HANG_S
    )
    assert done.stdout.split("\n")[:4] == ["True True True True", "False", "True", "True False False"], done.stderr
