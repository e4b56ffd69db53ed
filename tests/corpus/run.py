"""Runs corpus programs and writes what came out as JSON: `run.py FOLDER [NAME...]`, into stock.json and recorded.json.

Recorded, each program has a recording of its own in FOLDER. Stock and recorded programs run in the same order, from the
same random state, each in a process of its own, forked from one that has only imported TensorFlow.
"""

from __future__ import annotations

import json
import os
import random
import sys
import traceback
import warnings
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def main(mode: str, folder: str, names: list[str]) -> None:
    import contextlib

    import numpy as np
    import tensorflow as tf

    import pyfunc_debug
    from tests.corpus import programs  # noqa: F401  # fills the table
    from tests.corpus.table import ALONE, PROGRAMS, plain

    def attempt_program(program: Any, log: list[object]) -> Any:
        try:
            return program(log)
        except Exception:
            return {"crashed": traceback.format_exc()}

    # The GIL grade "op start" switches TensorFlow's own profiler on, and then TensorFlow itself takes other lines
    # (profiler/trace.py), which its error texts show: that grade has its own tests.
    outcome = {}
    for name in names or [name for name in PROGRAMS if name not in ALONE]:
        tf.random.set_seed(7)
        np.random.seed(7)
        random.seed(7)
        log: list[object] = []
        recording = (
            contextlib.nullcontext()
            if mode == "stock"
            else pyfunc_debug.record(os.path.join(folder, f"{name}.pfrec"), gil=False, overwrite=True)
        )
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with recording:
                result = plain(attempt_program(PROGRAMS[name], log))
        outcome[name] = {
            "result": result,
            "log": plain(log),
            "warnings": sorted({plain(str(one.message)) for one in warned}),
        }
        if name not in ALONE:
            outcome[name]["random"] = plain([tf.random.uniform([2]), np.random.random(), random.random()])
    with open(os.path.join(folder, f"{mode}.json"), "w") as file:
        json.dump(outcome, file)


def fork(mode: str, folder: str, names: list[str]) -> int:
    """A process that runs `main`; its number."""
    child = os.fork()
    if not child:
        code = 1
        try:
            main(mode, folder, names)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return child


if __name__ == "__main__":
    import tensorflow  # noqa: F401  # once for both, and nothing of it runs here

    children = [fork(mode, sys.argv[1], sys.argv[2:]) for mode in ("stock", "recorded")]
    sys.exit(int(sum(os.waitpid(child, 0)[1] for child in children) > 0))
