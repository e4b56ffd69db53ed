"""Waits for the GIL, parallel calls that bring nothing, and calls too small to pay: from numbers, not by a clock."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3

import pytest

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.records import FROM_GENERATOR
from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE, THREADS, call, node, written

MS = 1_000_000


def recording(
    tmp_path,
    calls,
    wait_ns,
    took_ns,
    *,
    kind="tf.function",
    grade="native",
    blame="",
    at_once=1,
    inside_ns=0,
    idle_ns=0,
    inputs=(),
    others=None,
    **columns,
):
    """One node with calls that each waited and took so long, `at_once` of them side by side."""
    function = {"id": 1, "name": "load", "kind": kind, "file": None, "line": None, "origin": "user"}
    rows, gil, period = [], [], (wait_ns + took_ns) // at_once
    for i in range(1, calls + 1):
        start = i * period + wait_ns
        rows.append(call(i, start_ns=start, end_ns=start + took_ns, cpu_ns=took_ns, thread=1 + i % at_once, **columns))
        gil.append(
            {"call": i, "grade": grade, "wait_ns": wait_ns, "held_ns": took_ns - inside_ns, "released_ns": 0,
             "reacquire_ns": inside_ns,
             "blame": json.dumps([[blame, wait_ns]] if isinstance(blame, str) and blame else list(dict(blame).items()))}
        )  # fmt: skip
    threads = [{"id": 1 + i, "name": f"TF-{i}", "native_id": 1 + i} for i in range(at_once)]
    end = (calls + 2) * period + wait_ns + idle_ns
    return written(
        tmp_path / "a.pfrec", meta={"cores": 4, "gil": {"grade": grade, "why": "a test"}, "end_ns": end,
                                    "clock": {"monotonic_ns": 0, "wall_ns": 0}, "inputs": [*inputs],
                                    "others": others},
        thread=threads if at_once > 1 else THREADS, function=[function], node=[node(function=1)], call=rows, gil=gil,
    )  # fmt: skip


def rules(path):
    found = Recording(path).findings(select=["gil-wait", "inside-waits", "parallel-calls", "tiny-calls"])
    assert all(one.fix and one.evidence for one in found)
    return [one.rule for one in found]


@pytest.mark.parametrize(
    ("expected", "numbers", "options"),
    [
        (["gil-wait"], (100, 9 * MS, MS), {"blame": "crunch"}),
        (["gil-wait"], (2000, MS, MS), {"blame": "MainThread"}),
        (["gil-wait"], (100, 5 * MS, 4 * MS), {"grade": "op-start"}),
        ([], (100, MS, 9 * MS), {}),  # a tenth of the time
        ([], (10, 9 * MS, MS), {}),  # 0.09 s in all
        ([], (50, 9 * MS, MS), {"blame": "crunch", "others": 0.75}),  # 0.11 s had the machine been idle
        (["gil-wait"], (100, 9 * MS, MS), {"blame": "crunch", "others": 0.75}),
        ([], (100, 9 * MS, MS), {"grade": "bound"}),  # no measurement
        ([], (100, 9 * MS, MS), {"blame": "pyfunc_debug writer"}),  # without us it would not wait
    ],
)
def test_waiting_for_the_gil(tmp_path, expected, numbers, options):
    assert rules(recording(tmp_path, *numbers, **options)) == expected


def test_what_waited_for_us_is_said_apart(tmp_path):
    path = recording(
        tmp_path, 100, 10 * MS, MS, blame={"pyfunc_debug writer": 5 * MS, "other Python threads: MainThread": 5 * MS}
    )
    found = Recording(path)
    (one,) = found.findings(select=["gil-wait"])
    assert "mostly for other Python threads: MainThread" in one.message
    assert ", mostly for other Python threads: MainThread, 50 % of that for pyfunc_debug itself;" in one.evidence[0]
    assert "pyfunc_debug" not in one.fix + one.evidence[1]


def test_who_held_it_stands_once_and_not_with_a_time_of_zero(tmp_path):
    held = {"crunch (#1)": 8 * MS, "crunch": MS, "MainThread": MS // 50}
    (one,) = Recording(recording(tmp_path, 100, 10 * MS, MS, blame=held)).findings(select=["gil-wait"])
    assert one.evidence[1] == "held meanwhile by: crunch 0.90 s"


@pytest.mark.parametrize(
    ("expected", "numbers", "inside_ns"),
    [
        (["inside-waits"], (100, 0, 9 * MS), 8 * MS),
        (["inside-waits"], (1000, MS, 4 * MS), 2 * MS),
        (["inside-waits"], (50, 0, 20 * MS), 10 * MS),
        (["gil-wait"], (100, 6 * MS, 4 * MS), 2 * MS),  # most of it before the body
        ([], (100, 0, 10 * MS), 2 * MS),  # a fifth of the time
        ([], (10, 0, 10 * MS), 9 * MS),  # 0.09 s in all
    ],
)
def test_waiting_inside_the_body(tmp_path, expected, numbers, inside_ns):
    path = recording(tmp_path, *numbers, inside_ns=inside_ns, blame="crunch")
    assert rules(path) == expected
    if expected == ["inside-waits"]:
        (found,) = Recording(path).findings(select=["inside-waits"])
        assert f"{inside_ns / MS:.2f} ms a call inside the body" in found.message


def loop_over_data(
    tmp_path,
    steps,
    wait_ns,
    rest_ns,
    *,
    kinds=("Map", "Range"),
    taken=True,
    batch=None,
    cpu_ns=None,
    source="",
    rows=None,
    second=None,
    at=3,
    others=None,
    passes=1,
    behind=(),
    parallel=None,
    gil=None,
    at_a_time=1,
    body_ns=None,
    kind="tf.data",
    **columns,
):
    """A loop at line `at` whose steps waited and worked so long, over a pipeline that calls `bad` for each element.

    Its calls come `at_a_time`, one behind the other, as where a buffer has room for so many. They take as long as the
    steps wait, or `body_ns`. They are made in a function of this `kind`.
    """
    body_ns = wait_ns if body_ns is None else body_ns
    stages = [{"kind": kind, "parallel": parallel, "batch": batch, "tokens": ["pyfunc_1"] * (not index)}
              for index, kind in enumerate(kinds)]  # fmt: skip
    nodes = [node(function=1, **columns)]
    if second is not None:
        stages.insert(0, {**stages[0], "tokens": ["pyfunc_2"]})
        nodes.append(node(2, second, function=1))
    stages[:0] = behind
    known = None if gil is None else {"grade": gil, "why": "a test"}
    step_ns = wait_ns + rest_ns
    entry = {
        "site": ["/home/u/train.py", at, "train"], "pool": None, "iterators": passes,
        "taken": steps + 1 if taken else 0,
        "first_ns": 0, "steps": steps, "step_ns": steps * step_ns, "wait_ns": steps * wait_ns, "longest_ns": wait_ns,
        "stages": stages,
    }  # fmt: skip
    starts = [i // at_a_time * at_a_time * step_ns + i % at_a_time * wait_ns for i in range(1, steps + 1)]
    calls = [call(i, start_ns=start, end_ns=start + body_ns, cpu_ns=body_ns if cpu_ns is None else cpu_ns)
             for i, start in enumerate(starts, 1)]  # fmt: skip
    calls += [{**one, "id": one["id"] + steps, "node": 2} for one in calls if second is not None]
    runs = [{"id": i, "kind": "forward", "name": "multi_step", "trace": None, "thread": 1, "start_ns": i * step_ns,
             "duration_ns": step_ns, "function": 2} for i in range(1, steps + 1)]  # fmt: skip
    functions = [
        {"id": 1, "name": "load", "kind": kind, "file": None, "line": None, "origin": "user"},
        {"id": 2, "name": "multi_step", "kind": "tf.function", "file": None, "line": None, "origin": "tensorflow"},
    ]
    return written(
        tmp_path / "a.pfrec", meta={"cores": 4, "inputs": [entry], "end_ns": (steps + 2) * step_ns, "gil": known,
                                    "clock": {"monotonic_ns": 0, "wall_ns": 0}, "others": others},
        source=source, thread=THREADS, node=nodes, call=calls,
        run=[] if taken else runs, **{"function": functions, **(rows or {})},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("says", "numbers", "options"),
    [
        ("waits for its input 70 % of its time (7.00 of 10.00 ms a step, 100 steps)", (100, 7 * MS, 3 * MS), {}),
        ("a faster input brings up to x2.0", (20, 20 * MS, 20 * MS), {"kinds": ("Prefetch", "Map", "Range")}),
        ("Python worked on the input for 97 % of the time", (100, 97 * MS, 3 * MS), {"taken": False}),
        (None, (100, 3 * MS, 7 * MS), {}),  # a third
        (None, (100, MS, MS), {}),  # 0.1 s in all
        (None, (1000, 7 * MS, 10_000), {}),  # does nothing with its elements
        ("80 % of the time of the 99 steps", (100, 80 * MS, 20 * MS), {"taken": False}),
        ("can bring x5.0 or more: what TensorFlow itself does", (100, 80 * MS, 20 * MS), {"taken": False}),
        (None, (100, 80 * MS, 20 * MS), {"taken": False, "kinds": ("Prefetch", "Map", "Range")}),  # may be ahead
        (None, (100, 80 * MS, 20 * MS), {"taken": False, "kinds": ("ParallelMap", "Range")}),
        (None, (100, 3 * MS, 7 * MS), {"taken": False}),
        (None, (5, 90 * MS, 10 * MS), {}),  # too few steps
        (None, (100, 7 * MS, 3 * MS), {"others": 0.9}),  # 0.07 s had the machine been idle
        ("70 % of its time", (100, 7 * MS, 3 * MS), {"others": 0.5}),
    ],
)
def test_loops_that_wait_for_their_input(tmp_path, says, numbers, options):
    found = Recording(loop_over_data(tmp_path, *numbers, **options)).findings(select=["input-bound"])
    assert [says in one.message for one in found] == ([] if says is None else [True]), found
    for one in found:
        assert (one.file, one.line) == ("/home/u/train.py", 3)
        assert "num_parallel_calls=" in one.fix
        assert one.confidence == ("measured" if options.get("taken", True) else "likely")
        prefetch = any("prefetch" in text for text in one.evidence)
        assert prefetch == (options.get("taken", True) and "Prefetch" not in options.get("kinds", ()))


@pytest.mark.parametrize(
    ("told", "options"),
    [
        (True, {}),
        (True, {"cpu_ns": 0}),  # it reads, or sleeps
        (False, {"body_ns": 6 * MS}),  # steps that do nothing would bring more
        (False, {"parallel": 2}),
        (False, {"cpu_ns": 3 * MS}),  # others had its CPU
    ],
)
def test_a_map_that_works_beside_the_steps_of_a_loop_in_python_is_named(tmp_path, told, options):
    path = loop_over_data(tmp_path, 100, 3 * MS, 7 * MS, **{"body_ns": 8 * MS, **options})
    found = Recording(path).findings(select=["input-bound"])
    assert [one.confidence for one in found] == ["likely"] * told, found
    for one in found:
        assert "the map of bad makes one element at a time, and worked for 79 % of the time of the 100" in one.message
        assert "These waited 30 % of it: a faster input helps more than a faster model" in one.message


def test_parallel_calls_help_a_map_too_whose_function_calls_a_tf_function(tmp_path):
    (found,) = Recording(loop_over_data(tmp_path, 100, 20 * MS, MS, kind="tf.function", gil="native")).findings(
        select=["input-bound"]
    )
    assert "num_parallel_calls=" in found.fix


@pytest.mark.parametrize(
    ("told", "behind"),
    [
        (True, [("Batch", 2), ("ShuffleV3", None)]),
        (True, [("Batch", 2), ("Repeat", None), ("ShuffleV3", None)]),
        (False, [("Batch", 2), ("Filter", None), ("ShuffleV3", None)]),  # which may have dropped them
        (False, [("Batch", 4), ("ShuffleV3", None)]),  # all were taken
        (False, [("Batch", 2)]),
    ],
)
def test_a_shuffle_behind_a_slow_map_belongs_before_it(tmp_path, told, behind):
    stages = [
        {"kind": kind, "parallel": None, "batch": batch, "tokens": [], **({"buffer": 512} if "Shuffle" in kind else {})}
        for kind, batch in behind
    ]
    path = loop_over_data(tmp_path, 20, 20 * MS, MS, behind=stages)
    with contextlib.closing(sqlite3.connect(path)) as file, file:  # 80 calls, of which 21 batches took 42 or 84
        for i in range(21, 81):
            file.execute(
                "INSERT INTO call (id, node, kind, thread, start_ns, end_ns, status) VALUES (?, 1, 'forward', 1, ?, ?, "
                "'ok')", (i, i * 21 * MS, i * 21 * MS + 20 * MS),
            )  # fmt: skip
    (found,) = Recording(path).findings(select=["input-bound"])
    said = " ".join((found.fix, *found.evidence))
    assert ("shuffle(512) before the map" in said) == told, said
    assert ("80 calls, of which the steps took 42" in said) == told


BEHIND = ({"kind": "Batch", "parallel": None, "batch": 32, "tokens": []},)


@pytest.mark.parametrize(
    ("told", "numbers", "options"),
    [
        (True, (3000, MS // 10, MS // 10 * 3), {}),
        (True, (3000, MS // 10, MS // 10 * 3), {"kinds": ("Prefetch", "Batch", "ParallelMap", "Map", "Range")}),
        (False, (3000, MS // 10, MS // 10 * 3), {"at_a_time": 16}),  # the steps are slower than the map
        (False, (3000, MS // 10, MS // 10 * 3), {"at_a_time": 32}),
        (False, (3000, MS // 10, MS // 10 * 3), {"behind": ()}),  # a step for each element
        (False, (3000, MS // 10, MS // 10 * 3), {"parallel": 2}),
        (False, (900, MS // 10, MS // 10 * 3), {}),  # too few
        (False, (3000, MS // 10, MS // 10 * 3), {"taken": True}),  # seen, and it waits a quarter of its time
    ],
)
def test_a_map_that_never_pauses_sets_the_pace_of_a_loop_inside_a_graph(tmp_path, told, numbers, options):
    given = {"taken": False, "kinds": ("Prefetch", "Map", "Range"), "behind": BEHIND, **options}
    found = Recording(loop_over_data(tmp_path, *numbers, **given)).findings(select=["input-bound"])
    assert [one.confidence for one in found] == ["likely"] * told, found
    for one in found:
        assert "the map of bad makes one element at a time and never pauses: 3,000 elements of" in one.message
        assert "The steps of the loop at" in one.message


@pytest.mark.parametrize(("second", "before"), [("other", ["other", "bad"]), ("bad", ["bad"])])
def test_a_batch_is_offered_before_each_body_by_its_name_and_once(tmp_path, second, before):
    (found,) = Recording(loop_over_data(tmp_path, 100, 20 * MS, MS, second=second)).findings(select=["input-bound"])
    batches = [re.search(r"batch\(\d+\) before (\w+), if it can", one) for one in (found.fix, *found.evidence)]
    assert sorted(one[1] for one in batches if one) == sorted(before), found


SLEEPS = """import tensorflow as tf
data = tf.data.Dataset.range(9).map(lambda x: tf.py_function(bad, [x], tf.float32))
for x in data:
    pass"""


def test_a_body_that_does_not_compute_gets_a_larger_pool_to_paste(tmp_path):
    stack = {"id": 1, "frames": json.dumps([[FILE, 2, "train", ""]])}
    path = loop_over_data(tmp_path, 100, 20 * MS, MS, cpu_ns=0, source=SLEEPS, stack=1, rows={"stack": [stack]})
    (found,) = Recording(path).findings(select=["input-bound"])
    mended = pasted(SLEEPS, found.fix).split("\n")
    assert mended[1].endswith("tf.py_function(bad, [x], tf.float32), num_parallel_calls=8)")
    assert mended[2:5] == [
        "options = tf.data.Options()",
        "options.threading.private_threadpool_size = 8  # at most x8.0 over now",
        "data = data.with_options(options)",
    ]
    assert mended[5:] == SLEEPS.split("\n")[2:]


def test_no_larger_pool_is_offered_where_other_processes_had_the_cpus(tmp_path):
    """A body that was off a CPU may have waited for one."""
    stack = {"id": 1, "frames": json.dumps([[FILE, 2, "train", ""]])}
    path = loop_over_data(
        tmp_path, 100, 40 * MS, MS, cpu_ns=0, source=SLEEPS, stack=1, rows={"stack": [stack]}, others=0.5
    )
    (found,) = Recording(path).findings(select=["input-bound"])
    assert "threadpool" not in " ".join((found.fix, *found.evidence))


@pytest.mark.parametrize(
    ("first_ns", "buffer", "behind_cache", "told"),
    [
        (3000 * MS, 500, False, True),
        (1000 * MS, 500, False, False),  # a part of the program's beginning
        (3000 * MS, 8, False, False),
        (3000 * MS, 500, True, False),  # filled once
    ],
)
def test_a_shuffle_that_is_filled_before_the_first_step_is_named(tmp_path, first_ns, buffer, behind_cache, told):
    shuffle = {"kind": "ShuffleV3", "parallel": None, "batch": None, "tokens": [], "buffer": buffer}
    cache = [{"kind": "Cache", "parallel": None, "batch": None, "tokens": []}] * behind_cache
    path = loop_over_data(tmp_path, 100, 20 * MS, MS, behind=[shuffle, *cache], passes=1 + behind_cache)
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        (text,) = file.execute("SELECT value FROM meta WHERE key = 'inputs'").fetchone()
        inputs = json.loads(text)
        inputs[0]["first_ns"] = first_ns
        file.execute("UPDATE meta SET value = ? WHERE key = 'inputs'", (json.dumps(inputs),))
    found = Recording(path).findings(select=["late-shuffle"])
    assert [one.line for one in found] == [3] * told
    for one in found:
        assert "the first element came after 3.0 s" in one.message
        assert "bad takes 20.0 ms for each" in one.message


SHARES = """import tensorflow as tf
{above}
def bad(x):
    return {value}
data = tf.data.Dataset.range(9).map(lambda x: tf.py_function(bad, [x], tf.float32){calls})
for x in data:
    pass"""


@pytest.mark.parametrize(
    ("above", "value", "given", "condition"),
    [
        ("tokenizer = Tokenizer()", "tokenizer.encode(x)", None, "tokenizer may be used by several calls at once"),
        ("tokenizer = Tokenizer()", "tokenizer.encode(x)", 1, None),
        ("model = tf.keras.Sequential([])", "model.predict(x)", None, ""),
        ("model = tf.keras.Sequential([])", "model.predict(x)", 1, None),
        ("import time", "time.sleep(1)", 1, ""),
    ],
)
def test_parallel_calls_are_pasted_with_what_they_would_share_and_not_where_one_at_a_time_was_asked_for(
    tmp_path, above, value, given, condition
):
    calls = "" if given is None else f", num_parallel_calls={given}"
    source = SHARES.format(above=above, value=value, calls=calls)
    stack = {"id": 1, "frames": json.dumps([[FILE, 5, "train", ""]])}
    path = loop_over_data(
        tmp_path, 100, 20 * MS, MS, cpu_ns=0, source=source, stack=1, rows={"stack": [stack]}, parallel=given, line=3,
        at=6,
    )  # fmt: skip
    (found,) = Recording(path).findings(select=["input-bound"])
    text = "\n".join([found.fix, *found.evidence])
    if condition is None:
        assert "num_parallel_calls=" not in text
        assert "threadpool" not in text
    else:
        (line,) = [one for one in pasted(source, found.fix).split("\n") if "num_parallel_calls=8" in one]
        assert line.endswith(f", num_parallel_calls=8)  # if {condition}" if condition else ", num_parallel_calls=8)")


@pytest.mark.parametrize(
    ("grade", "held", "blame", "begins"),
    [
        ("native", 9, "bad", "num_parallel_calls=8 brings at most x1.11: bad holds the GIL 90 % of its time"),
        ("native", 2, "bad", "the loop at"),
        (
            "op-start",
            None,
            "bad",
            "in spite of num_parallel_calls=8 the calls of bad wait for each other: for the GIL 9 %",
        ),
        ("op-start", None, "other Python threads: MainThread", "the loop at"),
    ],
)
def test_that_parallel_calls_wait_for_each_other_is_said_before_that_the_loop_waits(
    tmp_path, grade, held, blame, begins
):
    spans = {"held_ns": None, "released_ns": None, "reacquire_ns": None}
    if held is not None:
        spans = {"held_ns": held * 2 * MS, "released_ns": (10 - held) * 2 * MS, "reacquire_ns": 0}
    gil = [{"call": i, "grade": grade, "wait_ns": 2 * MS, **spans, "blame": json.dumps([[f"{blame} (#{i})", 2 * MS]])}
           for i in range(1, 101)]  # fmt: skip
    if blame != "bad":
        gil = [{**one, "blame": json.dumps([[blame, 2 * MS]])} for one in gil]
    path = loop_over_data(
        tmp_path, 100, 20 * MS, MS, parallel=8, gil=grade, rows={"gil": gil}, kinds=("ParallelMap", "Range")
    )
    (found,) = Recording(path).findings(select=["input-bound"])
    assert found.message.startswith(begins)


SHORT = """import tensorflow as tf
data = tf.data.Dataset.range(9).map(lambda x: tf.py_function(bad, [x], tf.float32))
for x in data:
    pass"""


@pytest.mark.parametrize(("wait_ns", "pasted_calls"), [(MS // 5, False), (5 * MS, True)])
def test_parallel_calls_of_a_short_body_are_no_paste_where_the_gil_was_not_measured(tmp_path, wait_ns, pasted_calls):
    stack = {"id": 1, "frames": json.dumps([[FILE, 2, "train", ""]])}
    path = loop_over_data(tmp_path, 3000, wait_ns, MS // 10, source=SHORT, stack=1, rows={"stack": [stack]})
    (found,) = Recording(path).findings(select=["input-bound"])
    assert ("num_parallel_calls=" in found.fix and found.fix.startswith("Replace")) == pasted_calls
    assert any("if bad lets the GIL go" in one for one in found.evidence) != pasted_calls


TINY = """import numpy as np
import tensorflow as tf
table = np.arange(9.0)
def bad(x):
    return {value}
data = tf.data.Dataset.range(9).map(lambda x: tf.py_function(bad, [x], tf.float32)){between}
data = data.batch(32)
for x in data:
    pass"""
ROW = {"id": 1, "frames": json.dumps([[FILE, 6, "train", ""]])}
OF_BATCHES = "data = data.map(lambda x: tf.py_function(bad, [x], tf.float32))"


@pytest.mark.parametrize(
    ("value", "between", "shape", "pasted_lines"),
    [
        ("table[x]", "", "[]", ["data = tf.data.Dataset.range(9).batch(32)", OF_BATCHES]),
        ("np.sqrt(x.numpy() * 2.0)", "", "[3]", ["data = tf.data.Dataset.range(9).batch(32)", OF_BATCHES]),
        ("table[x] / 2", ".shuffle(9)", "[]", ["data = tf.data.Dataset.range(9).shuffle(9).batch(32)", OF_BATCHES]),
        ("float(x)", "", "[]", None),
        ("np.sum(x)", "", "[3]", None),
        ("other[x]", "", "[]", None),  # may be a list, or a dict
        ("table[x]", ".filter(keep)", "[]", None),
    ],
)
def test_a_body_that_takes_less_time_than_the_way_into_python_gets_the_batch_first(
    tmp_path, value, between, shape, pasted_lines
):
    source = TINY.format(value=value, between=between)
    kept = {
        "call": 1,
        "position": 0,
        "path": "",
        "dtype": "float32",
        "shape": shape,
        "text": "",
        "note": "",
        "kept": "",
    }
    values = [{**kept, "role": role} for role in ("input", "output")]
    path = loop_over_data(
        tmp_path, 6000, MS // 20, MS // 50 * 3, source=source, at=8, line=4, stack=1, behind=BEHIND,
        rows={"stack": [ROW], "value": values},
    )  # fmt: skip
    (found,) = Recording(path).findings(select=["input-bound", "tiny-calls"])
    told = " ".join((found.fix, *found.evidence))
    assert "bad runs 50 us a call; the way into Python and back takes about 60 us more" in told
    assert "num_parallel_calls" not in told
    assert "threadpool" not in told
    if pasted_lines is None:
        assert found.fix.startswith(
            "batch(32) before bad, written to take arrays of 32 elements: 6,000 calls become 188"
        )
        return
    lines = pasted(source, found.fix).split("\n")
    assert [one.replace("(9).map(", "(9).") for one in lines[5:7]] == pasted_lines


def test_parallel_calls_of_a_body_that_takes_no_time_blame_no_other_threads(tmp_path):
    """At op start the way of the others into Python counts as other threads: of the user's there may be none."""
    path = recording(tmp_path, 20000, 180_000, 20_000, kind="tf.data", grade="op-start", blame="other Python threads",
                     at_once=2)  # fmt: skip
    assert "gil-wait" not in rules(path)


NESTED = """import tensorflow as tf
data = tf.data.Dataset.range(9)
for x in data:
    pass
for epoch in range(3):
    for x in data:
        pass"""
BUILT = """import tensorflow as tf
def batches():
    return tf.data.Dataset.range(9).batch(2)
for x in batches():
    pass"""
SHOWN = """import tensorflow as tf
from tqdm import tqdm
data = tf.data.Dataset.range(9)
for x in tqdm(data.as_numpy_iterator()):
    pass"""


@pytest.mark.parametrize(
    ("source", "line", "mended"),
    [
        (NESTED, 6, {5: "data = data.prefetch(tf.data.AUTOTUNE)  # makes the next element while the step runs"}),
        (BUILT, 4, {3: "    return tf.data.Dataset.range(9).batch(2).prefetch(tf.data.AUTOTUNE)"}),
        (SHOWN, 4, None),
    ],
    ids=["above the outer loop", "where the dataset is built", "nothing of another library's"],
)
def test_a_prefetch_is_pasted_once_and_where_the_dataset_is(tmp_path, source, line, mended):
    path = loop_over_data(tmp_path, 100, 20 * MS, 19 * MS, cpu_ns=MS, source=source, at=line)
    (found,) = Recording(path).findings(select=["input-bound"])
    if mended is None:
        assert "prefetch(" not in found.fix
        return
    lines = pasted(source, found.fix).split("\n")
    assert {place: lines[place - 1] for place in mended} == mended


DRAWS = """import numpy as np
import tensorflow as tf
def bad(x):
    return x + np.random.normal()
data = tf.data.Dataset.range(9).map(lambda x: tf.numpy_function(bad, [x], tf.float32))
for x in data:
    pass"""


@pytest.mark.parametrize("passes", [1, 2])
def test_a_cache_is_offered_for_data_read_again_and_before_a_body_that_draws(passes, tmp_path):
    path = loop_over_data(tmp_path, 100, 20 * MS, MS, source=DRAWS, at=6, line=3, passes=passes)
    (found,) = Recording(path).findings(select=["input-bound"])
    told = " ".join((found.fix, *found.evidence))
    assert ("data = data.cache()  # before the stage of bad, which draws random numbers" in told) == (passes > 1)
    assert ("cache" in told) == (passes > 1)


@pytest.mark.parametrize(
    ("parts", "begins"),
    [(1, "yield in bad only what is cheap"), (137, "bad: give one array in place of 137 parts, each of which is made")],
)
def test_a_slow_generator_is_named_and_no_parallel_calls_are_offered(tmp_path, parts, begins):
    function = {"id": 1, "name": FROM_GENERATOR, "kind": "tf.data", "file": None, "line": None, "origin": "tensorflow"}
    path = loop_over_data(
        tmp_path,
        100,
        20 * MS,
        MS,
        origin="tensorflow",
        rows={"function": [function]},
        tout=json.dumps(["float32"] * parts),
    )
    (found,) = Recording(path).findings(select=["input-bound"])
    assert "It waits for the generator bad, which gives one element at a time" in found.message
    assert found.fix.startswith(begins)


@pytest.mark.parametrize(
    ("expected", "numbers", "at_once"),
    [
        (["parallel-calls"], (200, 6 * MS, 2 * MS), 4),
        (["parallel-calls"], (400, 2 * MS, 2 * MS), 2),
        (["parallel-calls"], (200, 14 * MS, 2 * MS), 8),
        ([], (200, MS, 9 * MS), 4),  # hardly any wait
        (["gil-wait"], (200, 6 * MS, 2 * MS), 1),  # nothing parallel about it
        ([], (20, 6 * MS, 2 * MS), 4),  # too short to matter
    ],
)
def test_parallel_calls_that_bring_nothing(tmp_path, expected, numbers, at_once):
    assert rules(recording(tmp_path, *numbers, kind="tf.data", at_once=at_once, blame="bad")) == expected


@pytest.mark.parametrize(
    ("expected", "numbers", "options"),
    [
        (["parallel-calls"], (300, MS // 10, 3 * MS), {}),
        (["parallel-calls"], (300, MS // 10, 3 * MS), {"idle_ns": 20_000 * MS}),  # a short loop of a long program
        ([], (300, MS // 10, 3 * MS), {"parallel": 1}),  # nobody asked for more
        ([], (100, MS // 10, 3 * MS), {"idle_ns": 20_000 * MS}),  # too short to matter
        ([], (300, 7 * MS, 3 * MS), {"idle_ns": 20_000 * MS, "sql": "wait_ns = 0"}),  # who takes it is what is slow
        ([], (300, MS // 10, 3 * MS), {"sql": "held_ns = 1000000, released_ns = 2000000"}),  # it lets the GIL go
    ],
)
def test_bodies_that_hold_the_gil_one_after_the_other(tmp_path, expected, numbers, options):
    """TensorFlow's pool may be so small that nobody waits for long: asked for were more calls at once."""
    stage = {"kind": "ParallelMap", "tokens": ["pyfunc_1"], "parallel": options.get("parallel", 8), "batch": None}
    loop = {"site": [FILE, 1, ""], "stages": [stage], "iterators": 1, "taken": numbers[0], "pool": None}
    count, wait, took = numbers
    idle = options.get("idle_ns", 0)
    path = recording(tmp_path, count, wait, took, kind="tf.data", inputs=[loop], idle_ns=idle)
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute(f"UPDATE gil SET {options.get('sql', 'wait_ns = wait_ns')}")
    assert rules(path) == expected


@pytest.mark.parametrize(
    ("expected", "numbers", "status"),
    [
        (["tiny-calls"], (2000, 0, 5_000), "ok"),
        (["tiny-calls"], (1000, 0, 20_000), "ok"),
        (["tiny-calls"], (5000, 10_000, 1_000), "ok"),
        ([], (900, 0, 5_000), "ok"),  # too few
        ([], (2000, 0, MS), "ok"),  # the body is what takes long
        ([], (2000, 0, 5_000), "error"),
    ],
)
def test_calls_that_do_not_pay(tmp_path, expected, numbers, status):
    assert rules(recording(tmp_path, *numbers, status=status)) == expected


def test_calls_that_are_a_small_part_of_the_program_are_left_alone(tmp_path):
    path = recording(tmp_path, 2000, 0, 5_000)
    import sqlite3

    with sqlite3.connect(path) as file:
        file.execute("UPDATE meta SET value = ? WHERE key = 'end_ns'", (str(60_000 * MS),))
    assert rules(path) == []


def test_a_million_calls_are_asked_by_aggregates(tmp_path):
    """No rule reads all calls one by one: the number of rows that SQLite hands out does not grow with them."""
    from pyfunc_debug import doctor
    from pyfunc_debug.pfrec import Reader

    counts = []
    for calls in (3000, 6000):
        reader = Reader(recording(tmp_path, calls, 1000, 5_000))
        handed, rows = [0], reader.rows

        def counted(*args, rows=rows, handed=handed):
            found = rows(*args)
            handed[0] += len(found)
            return found

        reader.rows = counted
        doctor.examine(reader)
        counts.append(handed[0])
        reader.close()
    assert counts[0] == counts[1]


LOCKED = """import threading
lock = threading.Lock()
def load(i):
    with lock:
        return read(i)
ds = ds.map(lambda i: tf.numpy_function(load, [i], tf.float32), num_parallel_calls=4)
"""


@pytest.mark.parametrize(
    ("source", "at_once", "expected"),
    [
        (LOCKED, 4, ["one-lock"]),
        (LOCKED, 1, []),  # one after the other: nobody waits
        (LOCKED.replace("lock = threading.Lock()", "lock = open_pool(4)"), 4, []),
        (LOCKED.replace("        return read(i)", "        name = NAMES[i]\n    return read(name)"), 4, []),
    ],
    ids=["held", "alone", "no-lock", "held-for-a-part"],
)
def test_a_lock_that_all_calls_wait_for(tmp_path, source, at_once, expected):
    rows = [call(i, start_ns=i * 10 * MS, end_ns=(i + at_once) * 10 * MS, thread=1) for i in range(1, 100)]
    stack = {"id": 1, "frames": json.dumps([[FILE, 6, "<lambda>", source.splitlines()[5]]])}
    path = written(
        tmp_path / "a.pfrec", source, node=[node(body="load", line=3, stack=1)], call=rows, stack=[stack]
    )  # fmt: skip
    found = Recording(path).findings(select=["one-lock"])
    assert [one.rule for one in found] == expected
    for one in found:
        assert "3.9 were in progress on average, and waited for it at least 74 %" in one.message
        assert "num_parallel_calls=1)" in pasted(source, one.fix)


OWN_WORK = LOCKED.replace(
    "        return read(i)", "        squares = [j * j for j in range(int(i))]\n    return squares"
)


@pytest.mark.parametrize(
    ("source", "without"),
    [
        (OWN_WORK, True),
        (OWN_WORK.replace("j * j", "j * SCALE[0]"), False),
        (OWN_WORK.replace("j * j", "take(j)"), False),
    ],
    ids=["own-values", "a-global", "an-unknown-function"],
)
def test_a_lock_around_work_that_shares_nothing(tmp_path, source, without):
    rows = [call(i, start_ns=i * 10 * MS, end_ns=(i + 4) * 10 * MS, thread=1) for i in range(1, 100)]
    stack = {"id": 1, "frames": json.dumps([[FILE, 7, "<lambda>", source.splitlines()[6]]])}
    path = written(
        tmp_path / "a.pfrec", source, node=[node(body="load", line=3, stack=1)], call=rows, stack=[stack]
    )  # fmt: skip
    (finding,) = Recording(path).findings(select=["one-lock"])
    mended = pasted(source, finding.fix)
    assert ("with lock" not in mended, "num_parallel_calls=1)" not in mended) == (without, without)
