"""Makes recordings without TensorFlow: real files with the real schema, of any size, always the same."""

# ruff: noqa: E501 - rows of tables read best as rows
from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import json
import sqlite3
import tempfile
from importlib import resources
from pathlib import Path

import numpy as np

from pyfunc_debug.pfrec.schema import APPLICATION_ID, SCHEMA_VERSION

TRAIN = """import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)


def decode(path):
    raw = tf.io.read_file(path).numpy()
    if raw[:2] != b"\\xff\\xd8":
        raise ValueError(f"no JPEG: {path}")
    return tf.io.decode_jpeg(raw)


def augment(x):
    x = x.astype(np.float32) / 255
    if rng.random() < 0.5:
        x = x[:, ::-1]
    return np.clip(x * rng.uniform(0.8, 1.2), 0, 1)


def log_huber(y, x, delta):
    error = y - x
    small = tf.abs(error) <= delta
    return tf.math.log1p(tf.where(small, error**2 / 2, delta * tf.abs(error)))


def images(paths):
    ds = tf.data.Dataset.from_tensor_slices(paths)
    ds = ds.map(lambda p: tf.py_function(decode, [p], tf.uint8), num_parallel_calls=3)
    ds = ds.map(lambda x: tf.numpy_function(augment, [x], tf.float32), num_parallel_calls=3)
    return ds.batch(8).prefetch(2)


@tf.function
def train_step(x, lr):
    print("train_step", x.shape, lr)
    with tf.GradientTape() as tape:
        y = model(x, training=True)
        loss = tf.py_function(log_huber, [y, x, 1.0], tf.float32)
    return loss


for step, x in enumerate(images(paths)):
    loss = train_step(x, 1e-3 if step < 51 else 5e-4)
"""


def line(text: str) -> int:
    """Number of the first line of the program that begins so."""
    return next(i for i, found in enumerate(TRAIN.splitlines(), 1) if found.strip().startswith(text))


FILE = "/home/ada/pets/train.py"
# Columns are named where newer schemas may have added some.
TRACE = "id, function, object, ordinal, name, signature, reason, thread, start_ns, duration_ns, error, parent"
CALL = "id, node, kind, forward, run, runs, thread, start_ns, end_ns, cpu_ns, status, failure"
ORIGIN = 5_000_000_000_000
THREADS = [(1, "main"), (2, "TF-1"), (3, "TF-2"), (4, "TF-3"), (5, "TF-4")]


def empty(path: Path, *, state: str = "complete", started: int = ORIGIN) -> sqlite3.Connection:
    """A recording with the schema, the program's functions and nodes, and no call."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.executescript((resources.files("pyfunc_debug") / "pfrec" / "schema.sql").read_text())
    meta = {
        "schema": 1, "cores": 4, "gil": {"grade": "native", "why": "self-test passed"}, "pid": 4711, "host": "workshop", "argv": ["train.py"], "state": state, "cost": {"hook_ns": 2100, "calls": 2000, "values_ns": 10_000_000, "writer_cpu_ns": 40_000_000},
        "versions": {"python": "3.11.9", "tensorflow": "2.21.0", "numpy": "2.1.3"},
        "clock": {"monotonic_ns": started, "wall_ns": 1_773_324_120_000_000_000},
        "options": {"values": {"*": "full"}, "nodes": "*", "gradients": "stock", "gil": True, "budget": "256MB"},
        "budget": 268435456, "dropped": {"values": 0, "calls": 0},
    }  # fmt: skip
    connection.executemany("INSERT INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in meta.items()])
    connection.executemany("INSERT INTO thread VALUES (?, ?, ?)", [(i, n, 9000 + i) for i, n in THREADS])
    top = [FILE, line("for step"), "<module>", "for step, x in enumerate(images(paths)):"]
    stacks = {
        1: [top, [FILE, line("ds = ds.map(lambda p"), "images", "ds = ds.map(lambda p: tf.py_function(decode, ..."]],
        2: [
            top,
            [FILE, line("ds = ds.map(lambda x"), "images", "ds = ds.map(lambda x: tf.numpy_function(augment, ..."],
        ],
        3: [
            [FILE, line("loss = train_step"), "<module>", "loss = train_step(x, ..."],
            [FILE, line("loss = tf.py_function"), "train_step", "loss = tf.py_function(log_huber, ..."],
        ],
    }
    connection.executemany("INSERT INTO stack VALUES (?, ?)", [(i, json.dumps(s)) for i, s in stacks.items()])
    connection.executemany(
        "INSERT INTO function VALUES (?, ?, ?, ?, ?, ?)",
        [
            (1, "train_step", "tf.function", FILE, line("@tf.function"), "user"),
            (2, "images", "tf.data", FILE, line("def images"), "user"),
        ],
    )
    j = json.dumps
    nodes = [
        (1, "pyfunc_1", "py_function", "decode", FILE, line("def decode"), "EagerPyFunc", "Dataset_map", 2, 1, j(["uint8"]), j(["path"]), j(["out"]), "user"),
        (2, "pyfunc_2", "numpy_function", "augment", FILE, line("def augment"), "PyFunc", "Dataset_map", 2, 2, j(["float32"]), j(["x"]), j(["out"]), "user"),
        (3, "pyfunc_3", "py_function", "log_huber", FILE, line("def log_huber"), "EagerPyFunc", "train_step", 1, 3, j(["float32"]), j(["y", "x", "delta"]), j(["out"]), "user"),
        (4, "pyfunc_4", "py_function", "log_huber", FILE, line("def log_huber"), "EagerPyFunc", "train_step", 1, 3, j(["float32"]), j(["y", "x", "delta"]), j(["out"]), "user"),
    ]  # fmt: skip
    connection.executemany(f"INSERT INTO node VALUES ({','.join('?' * 14)})", nodes)
    connection.execute("INSERT INTO source VALUES (?, ?)", (FILE, TRAIN))
    ms = 1_000_000

    connection.executemany(
        f"INSERT INTO trace ({TRACE}) VALUES ({','.join('?' * 12)})",
        [
            (
                1,
                2,
                1,
                1,
                "map_1",
                "(TensorSpec(shape=(), dtype=tf.string),)",
                "[]",
                1,
                started + 8 * ms,
                12 * ms,
                None,
                None,
            ),
            (
                2,
                2,
                1,
                1,
                "map_2",
                "(TensorSpec(shape=None, dtype=tf.uint8),)",
                "[]",
                1,
                started + 22 * ms,
                10 * ms,
                None,
                None,
            ),
            (
                3,
                1,
                1,
                1,
                "train_step_1",
                "(x: float32[8, 64, 64, 3], lr=0.001)",
                "[]",
                1,
                started + 60 * ms,
                171 * ms,
                None,
                None,
            ),
        ],
    )
    connection.executemany("INSERT INTO trace_node VALUES (?, ?)", [(1, 1), (2, 2), (3, 3)])
    return connection


class Writer:
    """Fills a recording with steps of the program: 8 decodes, 8 augments, one train_step with its gradient each.

    Times are in milliseconds here and deterministic; every 300th decode fails; GIL numbers are of grade `native`.
    """

    def __init__(
        self, connection: sqlite3.Connection, *, gil: bool = True, values: str = "full", started: int = ORIGIN
    ):
        self.connection, self.gil, self.values, self.started = connection, gil, values, started
        self.random = np.random.default_rng(7)
        self.call = self.run = self.failure = 0
        self.now = 240.0
        self.free = {thread: 240.0 for thread, _ in THREADS}
        self.rows: dict[str, list[tuple]] = {"call": [], "gil": [], "value": [], "run": [], "failure": []}
        self.blobs: set[bytes] = set()

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()
        self.flush()

    def step(self) -> None:
        random, start = self.random, self.now
        for i in range(8):
            for node, body, released in ((1, 3.3, 1.7), (2, 1.3, 0.6)):
                thread = 3 + (i + node) % 3
                wait = abs(random.normal(2.5, 2.0))
                begin = max(self.free[thread], start) + wait + 0.05
                fails = node == 1 and (self.call + 1) % 301 == 0
                self._call(node, "forward", thread, begin, wait, body * random.uniform(0.6, 1.5), released, fails=fails)
        run = self.run = self.run + 1
        begin = self.now + 1.0
        if run == 52:
            reason = json.dumps(["lr, a Python number, went from 0.001 to 0.0005"])
            sql = f"INSERT INTO trace ({TRACE}, closest, avoid) VALUES (4, 1, 1, 2, 'train_step_2', '(x: float32[8, 64, 64, 3], lr=0.0005)', ?, 1, ?, ?, NULL, NULL, '(x: float32[8, 64, 64, 3], lr=0.001)', 'pass lr as a tensor')"
            self.connection.execute(sql, (reason, self._ns(begin), 118_000_000))
            self.connection.execute("INSERT INTO trace_node VALUES (4, 4)")
            begin += 119
        node = 3 if run < 52 else 4
        forward = self._call(
            node, "forward", 2, begin + 4, abs(random.normal(2, 1.5)), random.uniform(0.7, 1.2), 0.0, run=run
        )
        self._call(
            node,
            "gradient",
            2,
            begin + 9,
            abs(random.normal(1, 0.7)),
            random.uniform(0.9, 1.6),
            0.0,
            run=run,
            of=forward,
        )
        end = begin + 14.5 * random.uniform(0.9, 1.2)
        self.rows["run"].append(
            (
                *(run, 3 if run < 52 else 4, 1, "forward", "train_step", 1),
                *(self._ns(begin), int((end - begin) * 1e6), None, None),
            )
        )
        self.now = max(end + 0.6, max(self.free.values()) - 12)

    def flush(self) -> None:
        self.connection.execute("BEGIN")
        for table, rows in self.rows.items():
            if rows:
                marks = ",".join("?" * len(rows[0]))
                into = f"{table} ({CALL})" if table == "call" else table
                self.connection.executemany(f"INSERT INTO {into} VALUES ({marks})", rows)
                rows.clear()
        self.connection.execute("COMMIT")

    def end(self) -> None:
        self.flush()
        self.connection.execute("UPDATE meta SET value = '\"complete\"' WHERE key = 'state'")
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES ('end_ns', ?)", (str(self._ns(self.now)),))

    def _ns(self, ms: float) -> int:
        return self.started + int(ms * 1e6)

    def _call(self, node, kind, thread, begin, wait, body, released, *, run=None, of=None, fails=False):
        self.call += 1
        end = begin + body
        self.free[thread] = end
        failure = None
        if fails:
            failure = self.failure = self.failure + 1
            text = f"Traceback (most recent call last):\n  File \"{FILE}\", line 10, in decode\nValueError: no JPEG: b'images/<b>broken</b>-{self.call}.jpg'\n"
            frames = [[FILE, 10, "decode", 'raise ValueError(f"no JPEG: {path}")']]
            self.rows["failure"].append(
                (failure, "ValueError", f"no JPEG: b'images/<b>broken</b>-{self.call}.jpg'", text, json.dumps(frames))
            )
        status = "error" if fails else "ok"
        self.rows["call"].append(
            (
                self.call,
                node,
                kind,
                of,
                run,
                None,
                thread,
                self._ns(begin),
                self._ns(end),
                int(body * 8e5),
                status,
                failure,
            )
        )
        if self.gil:
            others = [
                ["decode", int(wait * 0.7e6)],
                ["augment", int(wait * 0.25e6)],
                ["graph trace", int(wait * 0.05e6)],
            ]
            free = released * body / 4
            self.rows["gil"].append(
                (self.call, "native", int(wait * 1e6), int((body - free) * 1e6), int(free * 1e6), 0, json.dumps(others))
            )
        if self.values != "none":
            self._values(node, kind, fails)
        return self.call

    def _values(self, node, kind, fails):
        if self.values == "full":
            photo = _photo(self.call % 40)
            pixels = (photo * 255).astype(np.uint8)
            error = photo.mean(-1) - 0.5
            cell: dict[tuple[int, str], list] = {
                (1, "forward"): [("input", "path", None), ("output", "out", pixels)],
                (2, "forward"): [("input", "x", pixels), ("output", "out", photo)],
                (3, "forward"): [("input", "y", photo), ("input", "x", photo * 0.9), ("input", "delta", np.float32(1)), ("output", "out", np.abs(error))],
                (3, "gradient"): [("input", "of out", np.float32(1.02e-5)), ("output", "of y", error * 1e-6), ("output", "of x", -error * 1e-6), ("output", "of delta", np.float32(0))],
            }  # fmt: skip
        else:
            small = np.float32([0.1, 0.4, 0.9])
            cell = {
                (n, k): [("input", "x", small), ("output", "out", small)]
                for n in (1, 2, 3)
                for k in ("forward", "gradient")
            }
        position = {"input": 0, "output": 0}
        for role, path, array in cell[min(node, 3), kind]:
            if fails and role == "output":
                continue
            self.rows["value"].append(self._value(role, position[role], path, array))
            position[role] += 1

    def _value(self, role, position, path, array):
        if array is None:
            text = f"string[] b'images/cat-{self.call:05}.jpg'"
            return (self.call, role, position, path, "string", "[]", None, *[None] * 8, None, text, "", "", None, None)
        array = np.asarray(array)
        counts, text, *numbers = _summary(array.tobytes(), array.dtype.str, array.shape)
        digest = None
        if self.values == "full":
            data = array.tobytes()
            digest = hashlib.blake2b(data, digest_size=16).digest()
            if digest not in self.blobs:
                self.blobs.add(digest)
                sql = "INSERT INTO blob VALUES (?, 'raw', ?, ?, ?)"
                self.connection.execute(sql, (digest, str(array.dtype), json.dumps(list(array.shape)), data))
        return (
            self.call, role, position, path, str(array.dtype), json.dumps(list(array.shape)), array.nbytes, *numbers,
            None, counts, text, "", self.values if digest else "", digest, None,
        )  # fmt: skip


@functools.cache
def _summary(data: bytes, dtype: str, shape: tuple[int, ...]) -> tuple[object, ...]:
    """Histogram, text and numbers of an array: all calls show one of forty photos."""
    array = np.frombuffer(data, dtype).reshape(shape)
    flat = array.astype(np.float64).ravel()
    counts = np.histogram(flat, 20)[0].tolist() if flat.size > 1 else []
    text = f"{array.dtype}{list(shape)} x∈[{flat.min():.3g}, {flat.max():.3g}] μ={flat.mean():.3g} σ={flat.std():.3g}"
    numbers = flat.min(), flat.max(), flat.mean(), flat.std(), 0, 0, int((flat == 0).sum())
    return json.dumps(counts), text, *numbers


@functools.cache
def _photo(seed: int) -> np.ndarray:
    """A small landscape: sky, sun, hills."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:48, 0:48] / 48
    image = np.stack([0.4 + 0.4 * y, 0.6 + 0.25 * y, 0.9 - 0.05 * y], -1)
    sun = np.hypot(x - random.uniform(0.2, 0.8), y - random.uniform(0.15, 0.35))
    image[sun < 0.09] = (0.98, 0.88, 0.5)
    hills = 0.6 + 0.1 * np.sin(x * random.uniform(6, 14) + random.uniform(0, 6))
    image[y > hills] = (0.35, 0.42, 0.47)
    image[y > hills + 0.2] = (0.25, 0.5, 0.2)
    return np.clip(image + random.normal(0, 0.02, image.shape), 0, 1).astype(np.float32)


def small(path: Path, *, steps: int = 110, gil: bool = True, values: str = "full") -> Path:
    """About 2000 calls of 3 nodes in 2 functions, with errors, values, histograms and GIL numbers."""
    path.write_bytes(_small(steps, gil, values))
    return path


@functools.cache
def _small(steps: int, gil: bool, values: str) -> bytes:
    """The file of `small`, which many tests ask for: 1 s of CPU."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.pfrec"
        connection = empty(path)
        writer = Writer(connection, gil=gil, values=values)
        writer.steps(steps)
        writer.end()
        connection.close()
        return path.read_bytes()


def count_lines(path: Path) -> None:
    """Adds what `lines=True` would have counted in augment and train_step, and what they printed."""
    change(path, options={"values": {"*": "full"}, "lines": True})
    body, traced = line("x = x.astype"), line('print("train_step"')
    rows = [(body, "line", None, 880, 0, [], []), (body + 2, "line", None, 1000, 1, [], []),
            (traced, "line", 2, None, 0, [], []), (traced + 3, "line", 2, None, 0, ["if"], ["loop@3"]),
            (line("ds = ds.map(lambda x"), "lambda", 1, None, 0, [], [])]  # fmt: skip
    connection = sqlite3.connect(path, isolation_level=None)
    for number, kind, at_trace, ran, capped, graph, inside in rows:
        values = (FILE, number, kind, at_trace, ran, capped, json.dumps(graph), json.dumps(inside))
        connection.execute("INSERT INTO line VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    prints = [(3, None, traced, "train_step (8, 64, 64, 3) 0.001\n"), (4, None, traced, "train_step again\n")]
    prints += [(None, call, body + 2, f"<b>clipped</b> {call}\n") for call in (2, 4, 6, 8, 10)]
    for trace, call, number, text in prints:
        values = (trace, call, FILE, number, "augment" if call else "train_step", text)
        connection.execute(
            "INSERT INTO print (trace, call, file, line, function, text) VALUES (?, ?, ?, ?, ?, ?)", values
        )
    connection.close()


def wait_inside(path: Path) -> Path:
    """Every other call waits for the GIL inside its body, too, and one was held at a breakpoint for 0.1 ms."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE gil SET held_ns = held_ns - 200000, reacquire_ns = 200000 WHERE call % 2 = 0")
        facts = json.dumps({"start_ns": ORIGIN, "end_ns": ORIGIN + 100_000, "held_ns": 100_000, "why": "b"})
        connection.execute("INSERT INTO notice (rule, node, call, facts) VALUES ('stop', 1, 1, ?)", (facts,))
    return path


def workers(folder: Path, count: int, *, steps: int = 60, values: str = "full") -> list[Path]:
    """Recordings of processes that began 0.4 s one after the other, of 60, 80, 100, ... steps."""
    paths = []
    for i in range(count):
        path = small(folder / f"worker-{i}.pfrec", steps=steps + steps // 3 * i, values=values)
        clock = {"monotonic_ns": ORIGIN, "wall_ns": 1_773_324_120_000_000_000 + i * 400_000_000}
        change(path, pid=4711 + i, clock=clock)
        paths.append(path)
    return paths


def change(path: Path, **meta: object) -> None:
    """Rewrites facts of a recording; None takes one away."""
    connection = sqlite3.connect(path, isolation_level=None)
    for key, value in meta.items():
        connection.execute("DELETE FROM meta WHERE key = ?", (key,))
        if value is not None:
            connection.execute("INSERT INTO meta VALUES (?, ?)", (key, json.dumps(value)))
    connection.close()


def large(path: Path, calls: int) -> Path:
    """As many calls as wanted, without elements, and beyond 200,000 without values; written fast."""
    connection = empty(path)
    writer = Writer(connection, values="summary" if calls <= 200_000 else "none")
    while writer.call < calls:
        writer.step()
        if len(writer.rows["call"]) > 20_000:
            writer.flush()
    writer.end()
    connection.close()
    return path


def decoded(data: str) -> bytes:
    return base64.b64decode(data)
