"""Builds the table of docs/breakpoints.md, every way to stop x every place a body can run: `python -m docs.stops`.

Each field is a program that really runs. With names of places (`python -m docs.stops eager "tf.function"`) it tries
only these and changes no file; tests/stops/test_table.py holds some of the page's rows that way.
"""

from __future__ import annotations

import argparse
import bdb
import contextlib
import functools
import io
import itertools
import linecache
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyfunc_debug as pfd

PAGE = Path(__file__).parents[1] / "docs" / "breakpoints.md"
BEGIN, END = "<!-- python -m docs.stops -->\n", "<!-- end -->\n"
_FUNCTION = """def body(x):
    {first}
    y = x * 2
    return y
"""
_GENERATOR = """def body():
    for x in (1.0, 2.0, 3.0, 4.0):
        {first}
        y = x * 2
        yield y
"""
_ITEM = """def body(self, x):
    {first}
    y = np.full((2, 1), x)
    return y, y
"""
_BATCHES = _GENERATOR.replace("yield y", "yield np.full((2, 1), y), np.zeros((2, 1))")
_FIRST = {
    "error": "raise ValueError('no')",
    "breakpoint()": "breakpoint()",
    "pdb.set_trace()": "import pdb; pdb.set_trace()",
    "Pause, Ctrl-C": "RUNS.set()\n{indent}while not GO.is_set(): pass",
}
WAYS = (
    "before", "after", "error", "gradient", "line", "breakpoint()", "pdb.set_trace()", "condition", "hits", "log",
    "Pause, Ctrl-C", "step",
)  # fmt: skip
_GO_ON = ["c"] * 100  # every other call: nobody else is to be asked
_PATIENCE_S = 20.0
_numbers = itertools.count(1)


# -- places: each runs the body at least twice, and asks for its gradient where there is one --------------------------


def _eager(body: Any, tf: Any) -> None:
    for value in (1.0, 2.0):
        x = tf.constant(value)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(body, [x], tf.float32)
        tape.gradient(y, x)


def _function(body: Any, tf: Any) -> None:
    function = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    for value in (1.0, 2.0):
        x = tf.constant(value)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        tape.gradient(y, x)


def _numpy_function(body: Any, tf: Any) -> None:
    function = tf.function(lambda x: tf.numpy_function(body, [x], tf.float32))
    for value in (1.0, 2.0):
        function(tf.constant(value))


def _py_func(body: Any, tf: Any) -> None:
    function = tf.function(lambda x: tf.compat.v1.py_func(body, [x], tf.float32))
    for value in (1.0, 2.0):
        function(tf.constant(value))


def _data(tf: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0])


def _map(body: Any, tf: Any) -> None:
    for _ in _data(tf).map(lambda x: tf.py_function(body, [x], tf.float32), num_parallel_calls=2):
        pass


def _filter(body: Any, tf: Any) -> None:
    for _ in _data(tf).filter(lambda x: tf.py_function(body, [x], tf.float32) > 0):
        pass


def _interleave(body: Any, tf: Any) -> None:
    def parts(x: Any) -> Any:
        return tf.data.Dataset.from_tensors(tf.py_function(body, [x], tf.float32))

    for _ in _data(tf).interleave(parts, cycle_length=2, num_parallel_calls=2):
        pass


@functools.lru_cache(maxsize=1)
def _servers(service: Any) -> Any:
    """Made once: the end of a worker keeps the GIL, and waits for a body that wants it."""
    dispatcher = service.DispatchServer()
    address = dispatcher.target.partition("://")[2]
    return dispatcher, service.WorkerServer(service.WorkerConfig(dispatcher_address=address))


def _service(body: Any, tf: Any) -> None:
    service = tf.data.experimental.service
    dispatcher, _ = _servers(service)
    data = _data(tf).map(lambda x: tf.py_function(body, [x], tf.float32))
    for _ in data.apply(service.distribute("parallel_epochs", dispatcher.target)):
        pass


def _threads(body: Any, tf: Any) -> None:
    function = tf.function(lambda x: tf.py_function(body, [x], tf.float32))

    def turn(value: float) -> None:
        x = tf.constant(value)
        with contextlib.suppress(tf.errors.OpError), tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
            tape.gradient(y, x)

    threads = [threading.Thread(target=turn, args=(value,)) for value in (1.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _mirrored(body: Any, tf: Any) -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])

    @tf.function
    def step(x: Any) -> Any:
        def replica(x: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.py_function(body, [x], tf.float32)
            return tape.gradient(y, x)

        return strategy.run(replica, args=(x,))

    for value in (1.0, 2.0):
        step(tf.constant(value))


def _from_generator(body: Any, tf: Any) -> None:
    for _ in tf.data.Dataset.from_generator(body, output_signature=tf.TensorSpec((), tf.float32)):
        pass


def _map_fn(body: Any, tf: Any) -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.function(lambda v: tf.map_fn(lambda one: tf.py_function(body, [one], tf.float32), v))(x)
    tape.gradient(y, x)


def _nested(body: Any, tf: Any) -> None:
    _function(lambda x: tf.py_function(body, [x], tf.float32), tf)


def _custom_gradient(body: Any, tf: Any) -> None:
    @tf.custom_gradient
    def twice(x: Any) -> Any:
        return x * 2, lambda dy: tf.py_function(body, [dy], tf.float32)

    for value in (1.0, 2.0):
        x = tf.constant(value)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.function(twice)(x) * value
        tape.gradient(y, x)


def _forward(body: Any, tf: Any) -> None:
    @tf.custom_gradient
    def plain(x: Any) -> Any:
        return tf.py_function(body, [x], tf.float32), lambda dy: dy

    for value in (1.0, 2.0):
        x = tf.constant(value)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.function(plain)(x)
        tape.gradient(y, x)


def _session(body: Any, tf: Any) -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [])
        y = tf.py_function(body, [x], tf.float32)
        (gradient,) = tf.gradients(y, x)
        for value in (1.0, 2.0):
            session.run([y, gradient], {x: value})


def _fit(tf: Any, layers: Any = (), data: Any = None, loss: Any = "mse", **options: Any) -> None:
    import numpy as np

    metrics = options.pop("metrics", None)
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1), *layers])
    model.compile("sgd", loss, metrics=metrics, jit_compile=False)
    ones = np.ones((4, 1), "float32")
    given = {"x": data, "steps_per_epoch": 2} if data is not None else {"x": ones, "y": ones, "batch_size": 2}
    model.fit(**given, verbose=0, **options)


def _layer(body: Any, tf: Any) -> None:
    class Layer(tf.keras.layers.Layer):  # type: ignore[misc]  # TensorFlow is imported when this runs
        def call(self, x: Any) -> Any:
            return tf.ensure_shape(tf.py_function(body, [x], tf.float32), (None, 1))

    _fit(tf, [Layer()])


def _loss(body: Any, tf: Any) -> None:
    _fit(tf, loss=lambda y, given: tf.ensure_shape(tf.py_function(body, [given - y], tf.float32), (None, 1)))


def _metric(body: Any, tf: Any) -> None:
    def metric(y: Any, given: Any) -> Any:
        return tf.ensure_shape(tf.py_function(body, [given - y], tf.float32), (None, 1))

    _fit(tf, metrics=[metric])


def _callback(body: Any, tf: Any) -> None:
    class Callback(tf.keras.callbacks.Callback):  # type: ignore[misc]  # the same
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            tf.py_function(body, [float(batch) + 1], tf.float32)

    _fit(tf, callbacks=[Callback()])


def _batches(body: Any, tf: Any) -> None:
    _fit(tf, data=body())


def _predict(body: Any, tf: Any) -> None:
    class Layer(tf.keras.layers.Layer):  # type: ignore[misc]  # the same
        def call(self, x: Any) -> Any:
            return tf.ensure_shape(tf.py_function(body, [x], tf.float32), (None, 1))

    tf.keras.Sequential([tf.keras.Input((1,)), Layer()]).predict(tf.constant([[1.0], [2.0]]), batch_size=1, verbose=0)


def _dataset(workers: int) -> Callable[[Any, Any], None]:
    def run(body: Any, tf: Any) -> None:
        class Batches(tf.keras.utils.PyDataset):  # type: ignore[misc]  # the same
            __getitem__ = body

            def __len__(self) -> int:
                return 4

        _fit(tf, data=Batches(workers=workers))

    return run


PLACES: dict[str, tuple[str, Callable[[Any, Any], None]]] = {
    "eager": (_FUNCTION, _eager),
    "tf.function": (_FUNCTION, _function),
    "numpy_function": (_FUNCTION, _numpy_function),
    "compat.v1.py_func": (_FUNCTION, _py_func),
    "threads": (_FUNCTION, _threads),
    "Dataset.map, parallel": (_FUNCTION, _map),
    "Dataset.filter": (_FUNCTION, _filter),
    "Dataset.interleave": (_FUNCTION, _interleave),
    "tf.data service": (_FUNCTION, _service),
    "from_generator": (_GENERATOR, _from_generator),
    "map_fn": (_FUNCTION, _map_fn),
    "nested": (_FUNCTION, _nested),
    "custom_gradient, forward": (_FUNCTION, _forward),
    "in a custom_gradient": (_FUNCTION, _custom_gradient),
    "v1 Session": (_FUNCTION, _session),
    "MirroredStrategy": (_FUNCTION, _mirrored),
    "Keras layer": (_FUNCTION, _layer),
    "Keras predict": (_FUNCTION, _predict),
    "Keras loss": (_FUNCTION, _loss),
    "Keras metric": (_FUNCTION, _metric),
    "Keras callback": (_FUNCTION, _callback),
    "generator of fit": (_BATCHES, _batches),
    "PyDataset": (_ITEM, _dataset(1)),
    "PyDataset, 2 workers": (_ITEM, _dataset(2)),
    "kernel cell": (_FUNCTION, _function),
}
QUICK = ("eager", "tf.function", "numpy_function", "Dataset.map, parallel", "nested", "v1 Session")
"""Places that take no second."""


HOLES = {
    **{
        (place, "gradient"): "TensorFlow has no gradient of a numpy_function"
        for place in ("numpy_function", "compat.v1.py_func")
    },
    **{
        (place, "gradient"): "nobody asks for a gradient of data"
        for place in (
            "Dataset.map, parallel",
            "Dataset.filter",
            "Dataset.interleave",
            "tf.data service",
            "from_generator",
            "generator of fit",
            "PyDataset",
            "PyDataset, 2 workers",
        )
    },
    ("custom_gradient, forward", "gradient"): "the gradient is the function's own",
    ("Keras predict", "gradient"): "predict asks for no gradient",
    ("in a custom_gradient", "gradient"): "the body is the gradient; nobody asks for its own",
    ("Keras metric", "gradient"): "Keras asks for no gradient of a metric",
    ("Keras callback", "gradient"): "a callback runs outside of Keras' tape",
}
"""Why a body cannot be stopped there in that way."""


# -- one field ---------------------------------------------------------------------------------------------------------


def source(way: str, template: str) -> str:
    """The body for a way to stop it."""
    indent = template[: template.index("{first}")].rpartition("\n")[2]
    first = _FIRST.get(way, "z = 0")
    return template.replace("{first}", first.replace("{indent}", indent))


def tried(way: str, place: str, body: Any = None) -> bool:
    """Runs a body in a place; whether it stopped there as often as it should, with the values that it should.

    Args:
      way: One of `WAYS`.
      place: One of `PLACES`.
      body: The body, where it is not to be made from a file.
    """
    import tensorflow as tf

    template, run = PLACES[place]
    go, runs = threading.Event(), threading.Event()
    if body is None:
        body = _from_file(source(way, template))
    body.__globals__.update(GO=go, RUNS=runs)
    code = body.__code__
    line = code.co_firstlineno + 2 + (template in (_GENERATOR, _BATCHES)) + (way == "Pause, Ctrl-C")
    where = f"{code.co_filename}:{line}"
    when = way if way in ("before", "after", "error", "gradient") else "before"
    options: dict[str, Any] = {
        "line": {"where": where}, "condition": {"where": where, "condition": "x > 1"}, "hits": {"hits": 2},
        "log": {"log": "inputs"}, "breakpoint()": None, "pdb.set_trace()": None, "Pause, Ctrl-C": None,
    }.get(way, {})  # fmt: skip
    said, pauser = io.StringIO(), threading.Thread(target=_pause, args=(runs, go), daemon=True)
    lines = {"step": ("n", "n", "n"), "Pause, Ctrl-C": ("GO.set()",)}.get(way, ("p 'in'",))
    with pfd.record(gil=False), contextlib.redirect_stderr(said), pfd.answers(*lines, *_GO_ON) as dialogue:
        rule = None if options is None else pfd.break_on(**{"where": body.__name__, "when": when, **options})
        try:
            if way == "Pause, Ctrl-C":
                pauser.start()
            with contextlib.suppress(tf.errors.OpError, ValueError, bdb.BdbQuit):
                run(body, tf)
        finally:
            go.set()
            runs.set()
            if rule is not None:
                rule.remove()
            if pauser.ident is not None:
                pauser.join()
    text = dialogue.text
    if way == "log":
        return bool(re.search(rf"{body.__name__}( #\d+)? \(before\): ", said.getvalue())) and not text
    if way == "step":
        return "return y" in text or "yield" in text
    expected = {"line": "y = ", "condition": "y = ", "error": "raise ValueError"}.get(way, "--- ")
    return "--- " in text and expected in text


def _pause(runs: threading.Event, go: threading.Event) -> None:
    """What Ctrl-C and the panel's button do."""
    from pyfunc_debug.switchboard import board

    runs.wait()
    board.pause()
    go.wait(_PATIENCE_S)
    go.set()  # it was not stopped


def _from_file(text: str) -> Any:
    import numpy as np

    file = Path(tempfile.mkdtemp(prefix="stops")) / f"program_{next(_numbers)}.py"
    file.write_text(text)
    linecache.checkcache()
    names: dict[str, Any] = {"np": np, "__name__": "program", "__file__": str(file)}
    exec(compile(text, str(file), "exec"), names)
    return names["body"]


def kernel(ways: tuple[str, ...] = WAYS) -> dict[str, bool]:
    """The same for a body that a cell of a kernel defines."""
    from jupyter_client.manager import start_new_kernel

    found = {}
    manager, client = start_new_kernel(cwd=str(PAGE.parents[1]))
    try:
        for way in ways:
            printed: list[str] = []

            def output(message: Any, printed: list[str] = printed) -> None:
                printed.append(message["content"].get("text", ""))

            client.execute_interactive(source(way, _FUNCTION), allow_stdin=False)
            client.execute_interactive(
                f"from docs import stops\nprint('stops:', stops.tried({way!r}, 'kernel cell', body))",
                allow_stdin=False, output_hook=output,
            )  # fmt: skip
            found[way] = "stops: True" in "".join(printed)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return found


def table(found: dict[str, dict[str, bool]]) -> str:
    """The table in Markdown.

    Args:
      found: By place and way, whether it stopped.

    Raises:
      KeyError: a field without a stop has no reason.
    """
    reasons: dict[str, str] = {}
    rows = []
    for place, ways in found.items():
        fields = []
        for way in WAYS:
            if ways[way]:
                fields.append("✓")
                continue
            reason = HOLES[place, way]
            fields.append(reasons.setdefault(reason, "abcdefgh"[len(reasons)]))
        rows.append(f"| {place} | {' | '.join(fields)} |")
    head = [f"| | {' | '.join(WAYS)} |", f"| --- |{' --- |' * len(WAYS)}"]
    notes = [f"{letter}: {reason}." for reason, letter in reasons.items()]
    return "\n".join([*head, *rows, "", "\\\n".join(notes), ""])


def main() -> int:
    """Tries every field and writes the page; with names of places only these, and writes nothing."""
    parser = argparse.ArgumentParser(prog="python -m docs.stops", description=main.__doc__)
    parser.add_argument("place", nargs="*", help=f"one of: {'; '.join(PLACES)}")
    places = parser.parse_args().place or list(PLACES)
    unknown = [place for place in places if place not in PLACES]
    if unknown:
        parser.error(f"there is no place {unknown[0]!r}; one of: {'; '.join(PLACES)}")
    found = {}
    for place in places:
        found[place] = kernel() if place == "kernel cell" else {way: tried(way, place) for way in WAYS}
        print(f"{place:24} {', '.join(way for way, stops in found[place].items() if not stops) or 'all'}", flush=True)
    text = table(found)
    if len(places) == len(PLACES):
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + rest.partition(END)[2], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
