"""A process in which pyfunc_debug was on and off again, or never: prints everything that could show the difference.

    python no_traces.py FOLDER MODE...

Imports TensorFlow, and for each mode forks a process that tries it and prints its state as one line of JSON. The mode
`stock` imports nothing of ours; with `:ready` behind a mode, the program has used TensorFlow before. The modes behind
the word `import` find us imported.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import json
import logging
import os
import pickle
import random
import signal
import sys
import threading
import warnings
from collections import Counter

os.environ.update({"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "OPENBLAS_NUM_THREADS": "1"})

import numpy as np
import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.ops import script_ops

OPTIONS = {
    "none": {"values": "none"},
    "shape": {"values": "shape"},
    "summary": {},
    "sample": {"values": "sample"},
    "full": {"values": "full"},
    "exact": {"gradients": "exact"},
    "lines": {"lines": True, "gil": False},
    "graph_lines": {"lines": "graph", "gil": False},
    "no_gil": {"gil": False},
}
MODES = [*OPTIONS, "break_on", "exact_gradients"]
IDLE = [mode for mode in MODES if mode not in ("none", "shape", "sample", "full")]
"""Where the program does nothing meanwhile, what is kept of values makes no difference."""


def on_and_off(mode: str, folder: str, run) -> None:
    """Switches on, runs something, and switches off."""
    if mode == "stock":
        run()
        return
    import pyfunc_debug as pfd

    if mode == "break_on":
        breakpoint = pfd.break_on("no such body")
        run()
        breakpoint.remove()
    elif mode == "exact_gradients":
        with pfd.exact_gradients():
            run()
    else:
        with pfd.record(os.path.join(folder, f"{os.getpid()}.pfrec"), **OPTIONS[mode]):
            run()


def state() -> dict:
    """What stands in TensorFlow and in Python now, without changing it."""
    registry, here, loggers = script_ops._py_funcs, context._context, logging.root.manager.loggerDict
    streams = (sys.stdout, sys.stderr, sys.stdin)
    hooks = (sys.excepthook, sys.displayhook, sys.breakpointhook, threading.excepthook, sys.unraisablehook)
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGSEGV)
    gc.collect()
    kinds = Counter(map(type, gc.get_objects()))
    return {
        "tokens": [registry._unique_id, sorted({token.removesuffix("+") for token in registry._funcs})],
        "tape cache": [key.decode() for key in script_ops.tape_cache],
        "context": [here is not None, getattr(here, "_context_handle", None) is not None],
        "seed": [getattr(here, "_seed", None), digest(getattr(here, "_rng", None))],
        "default graph": len(ops._default_graph_stack.stack),
        "global graph": ops._default_graph_stack._global_default_graph is not None,
        "random": digest(random.getstate()),
        "numpy": digest(np.random.get_state()),
        "logging": sorted(
            (name, getattr(one, "level", None), len(getattr(one, "handlers", ())))
            for name, one in loggers.items() if not name.startswith(("asyncio", "concurrent"))
        ),
        "root logger": [logging.root.level, len(logging.root.handlers)],
        "warnings": [str(one) for one in warnings.filters],
        "modules": sorted(name for name in sys.modules if name.partition(".")[0] in ("tensorflow", "keras")),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "hooks": [str(one) for one in (*hooks, *streams, sys.gettrace(), sys.getprofile())],
        "signals": [str(signal.getsignal(one)) for one in signals],
        "import": [str(sys.meta_path), len(sys.path_hooks), str(sys.path)],
        "environment": sorted(os.environ.items()),
        "folder": os.getcwd(),
        "switch interval": sys.getswitchinterval(),
        "collector": [gc.get_threshold(), len(gc.callbacks), gc.isenabled()],
        "files": len(os.listdir("/proc/self/fd")),
        "memory": sorted((one.__qualname__, n) for one, n in kinds.items() if _tensorflows(one)),
    }  # fmt: skip


def _tensorflows(kind: type) -> bool:
    return str(kind.__module__).startswith("tensorflow")


def digest(thing: object) -> str:
    """So that a difference can be seen without reading it."""
    return hashlib.sha256(pickle.dumps(thing)).hexdigest()[:16]


def counters() -> dict:
    """What only using TensorFlow tells: the numbers in names of functions, graphs, ops and tokens, and in texts."""

    def fails(x):
        raise ValueError("no")

    def step(x):
        return tf.py_function(lambda x: x * x, [x], tf.float32)

    function = tf.function(step)
    concrete = function.get_concrete_function(tf.TensorSpec([], tf.float32))
    with tf.GradientTape() as tape:
        x = tf.Variable(3.0)
        y = function(x)
    gradient = float(tape.gradient(y, x))
    try:
        tf.function(lambda x: tf.py_function(fails, [x], tf.float32))(1.0)
    except tf.errors.OpError as error:
        text = str(error)
    return {
        "function": concrete.name.decode() if isinstance(concrete.name, bytes) else concrete.name,
        "graph": concrete.graph.name,
        "ops": [(op.name, op.type) for op in concrete.graph.get_operations()],
        "uid": pywrap_tfe.TFE_Py_UID(),
        "tokens": [
            script_ops._py_funcs._unique_id,
            sorted({token.removesuffix("+") for token in script_ops._py_funcs._funcs}),
        ],
        "gradient": gradient,
        "text": text,
        "random": float(tf.random.uniform([])) if tf.random.set_seed(1) is None else None,
        "variable": tf.Variable(1.0).name,
    }


def _update(found: dict) -> None:
    found.update(counters())


def main() -> None:
    """Each mode in a fork of its own: TensorFlow is imported once, and nothing of it has run."""
    folder, modes = sys.argv[1], sys.argv[2:]
    gc.freeze()  # what is imported stays in all of them: only what is made from now on is looked for and counted
    for mode in modes:
        if mode == "import":
            import pyfunc_debug as pfd

            assert all((pfd.record, pfd.break_on, pfd.exact_gradients))  # loaded as they are first asked for
            continue
        name, _, how = mode.partition(":")
        sys.stdout.flush()
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            if status:
                sys.exit(f"{mode}: exit status {status}")
            continue
        if how == "ready":
            tf.constant(1.0) + 1
        if how == "inside":  # the program runs while we are on
            found = {}
            on_and_off(name, folder, functools.partial(_update, found))
        else:
            before = state()
            on_and_off(name, folder, lambda: None)
            found = {"before": before, "after": state(), **counters()}
        print(json.dumps({"mode": mode, **found}), flush=True)
        os._exit(0)


if __name__ == "__main__":
    main()
