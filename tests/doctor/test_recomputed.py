"""Work that is done again for equal inputs is told of with what a cache saves; work that differs is not."""

from __future__ import annotations

import json

import pytest

from pyfunc_debug.api.recording import Recording
from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE, call, node, written

MS = 1_000_000
SOURCE = "def bad(x):\n    return x * 2\ndata = names.map(lambda x: tf.py_function(bad, [x], tf.float32))\n"


def found(
    tmp_path, keys, took_ms=100, source=SOURCE, gave=None, inputs=(), at_once=1, others=(), gave_other=(), nbytes=8,
    given_bytes=None, rules=("recomputed", "doctor-trouble"),
):  # fmt: skip
    """One call a key, which its input's content goes by; what it gave goes by `gave`, else by the key."""
    calls, values = [], []
    for i, key in enumerate(keys, 1):
        turn = i // at_once
        calls.append(call(i, start_ns=turn * took_ms * MS, end_ns=(turn + 1) * took_ms * MS))
        for role, one in (("input", key), ("output", key if gave is None else gave(i))):
            digest = None if one is None else str(one).encode()
            values.append(
                {"call": i, "role": role, "position": 0, "path": "x", "dtype": "float32", "shape": "[2]", "text": "",
                 "note": "", "kept": "", "digest": digest,
                 "nbytes": given_bytes if role == "input" and given_bytes is not None else nbytes}
            )  # fmt: skip
    for i, given in enumerate(gave_other, len(keys) + 1):
        calls.append(call(i, node=2))
        for role in ("input", "output")[: 1 + given]:
            values.append({**values[0], "call": i, "role": role})
    stack = [{"id": 1, "frames": json.dumps([[FILE, 3, "<module>", ""]])}]
    meta = {"end_ns": (len(keys) + 2) * took_ms * MS, "clock": {"monotonic_ns": 0, "wall_ns": 0}, "inputs": [*inputs]}
    path = written(
        tmp_path / "a.pfrec", source, meta, node=[node(stack=1), *others], stack=stack, call=calls, value=values
    )
    return Recording(path).findings(select=[*rules])


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ([*range(20)] * 3, "in 40 of 60 calls, and gave the same again: some 4.0 s of 6.2 s"),
        ([7] * 40, "in 39 of 40 calls"),
        ([one // 4 for one in range(100)], "in 75 of 100 calls"),
        ([*[None] * 10, *[1, 2] * 30], "in 58 of 60 calls"),  # what was not recorded is not counted
    ],
)
def test_what_a_cache_would_save(tmp_path, keys, says):
    (one,) = found(tmp_path, keys)
    assert (one.rule, one.severity, one.line) == ("recomputed", "note", 3)
    assert says in one.message
    assert one.fix.endswith(":\ndata = names.map(lambda x: tf.py_function(bad, [x], tf.float32)).cache()")


@pytest.mark.parametrize(("nbytes", "told"), [(8, False), (8_000_000, True)])
def test_of_a_cache_that_is_offered_it_is_said_what_it_holds(tmp_path, nbytes, told):
    (one,) = found(tmp_path, [*range(20)] * 3, nbytes=nbytes)
    words = 'the cache holds some 160 MB in memory then; .cache("elements") keeps them in a file'
    assert (words in one.evidence) == told


@pytest.mark.parametrize(
    ("between", "nbytes", "told"),
    [
        ([], 20_000_000, True),
        (["ShuffleV3", "ParallelMapV2"], 20_000_000, True),
        (["Filter"], 20_000_000, False),  # which may have dropped them
        ([], 2_000_000, False),
    ],
)
def test_a_cache_in_memory_that_holds_much_is_named(tmp_path, between, nbytes, told):
    source = SOURCE.replace("tf.float32))", "tf.float32)).cache()")
    stages = [stage("Batch", batch=4), stage("Cache"), *map(stage, between), stage("Map", ["pyfunc_1"])]
    loop = {"site": [FILE, 3, ""], "stages": stages, "iterators": 3, "taken": 15}
    named = found(tmp_path, range(20), source=source, inputs=[loop], nbytes=nbytes, rules=["memory"])
    assert [one.line for one in named] == [3] * told
    for one in named:
        assert "keeps in memory all that bad gave: 20 elements, some 400 MB" in one.message
        assert pasted(source, one.fix) == source.replace(".cache()", '.cache("elements")')
    assert not found(
        tmp_path, range(20), source=source, nbytes=nbytes, rules=["memory"],
        inputs=[{**loop, "stages": [{**one, "cache": "file"} if one["kind"] == "Cache" else one for one in stages]}],
    )  # fmt: skip


def stage(kind, tokens=(), batch=None):
    return {"kind": kind, "tokens": [*tokens], "parallel": None, "batch": batch}


@pytest.mark.parametrize(
    ("taken", "fix"),
    [
        (15, "tf.py_function(bad, [x], tf.float32)).take(20).cache().batch(4)"),
        (16, "or dataset.take(n).cache() for a part of it"),  # not as many in each pass
    ],
)
def test_a_cache_that_no_pass_filled(tmp_path, taken, fix):
    """It is there, so that another one would keep nothing either."""
    source = SOURCE.replace("tf.float32))", "tf.float32)).cache().batch(4)")
    stages = [stage("Batch", batch=4), stage("Cache"), stage("Map", ["pyfunc_1"])]
    loop = {"site": [FILE, 3, ""], "stages": stages, "iterators": 3, "taken": taken}
    (one,) = found(tmp_path, [*range(20)] * 3, source=source, inputs=[loop])
    assert "as no pass read its dataset to the end" in one.message
    assert one.fix.endswith(fix)


@pytest.mark.parametrize("first", [["Map"], ["Batch", "Map"]])
def test_a_read_in_front_of_the_cache_is_not_taken_for_one_that_the_cache_did_not_serve(tmp_path, first):
    """As the first element is read for its shape: parallel calls are made for more than that one."""
    source = SOURCE.replace("tf.float32))", "tf.float32)).cache().batch(4)")
    behind = [stage("Batch", batch=4), stage("Cache"), stage("Map", ["pyfunc_1"])]
    ahead = [*map(stage, first[:-1]), stage("Map", ["pyfunc_1"])]
    loops = [
        {"site": [FILE, 3, ""], "stages": stages, "iterators": count, "taken": 0}
        for stages, count in ((ahead, 1), (behind, 3))
    ]
    assert found(tmp_path, [*range(20)] * 3, source=source, inputs=loops) == []


REPEAT, ONES = {**stage("Repeat"), "repeats": -1}, [stage("Map", ["pyfunc_1"])]
GENERATOR = [stage("FlatMap", ["pyfunc_0"]), stage("Tensor")]
YIELDS = "data = tf.data.Dataset.from_generator(gen, tf.float32)\n"
ENDLESS = f"{SOURCE}def gen():\n    while True:\n        yield 1\n{YIELDS}"
CYCLES = f"{SOURCE}def gen():\n    for one in itertools.cycle([1, 2]):\n        yield one\n{YIELDS}"
ENDS = f"{SOURCE}def gen():\n    while True:\n        yield 1\n        if over():\n            break\n{YIELDS}"


def of_stages(tmp_path, stages, iterators=3, source=SOURCE, gave=()):
    """The finding for inputs that come again, in a loop over a dataset with these stages."""
    loop = {"site": [FILE, 3, ""], "stages": stages, "iterators": iterators, "taken": 0}
    gen = node(id=2, token="pyfunc_0", origin="tensorflow", body="gen", line=4)
    (one,) = found(tmp_path, [*range(20)] * 3, source=source, inputs=[loop], others=[gen], gave_other=gave)
    return one


@pytest.mark.parametrize(
    ("stages", "source", "says", "fix"),
    [
        ([*ONES, REPEAT, stage("TensorSlice")], SOURCE, "a .repeat() without an end stands before it",
         "let one pass end: .map(...).cache().repeat(), without the .repeat() before the map"),
        ([stage("Cache"), *ONES, stage("Shuffle"), REPEAT], SOURCE, "a .repeat() without an end stands before it",
         ".map(...).cache().shuffle(n).repeat(), without"),
        ([*ONES, *GENERATOR], ENDLESS, "gen yields for ever",
         "let gen end after one pass, then .map(...).cache().repeat()"),
        ([stage("Batch", batch=4), *ONES, *GENERATOR], CYCLES, "gen yields for ever", "let gen end after one pass"),
    ],
)  # fmt: skip
def test_no_cache_behind_data_that_never_end(tmp_path, stages, source, says, fix):
    one = of_stages(tmp_path, stages, source=source)
    assert f"A .cache() behind it is never full, and serves nothing: {says}" in one.message
    assert fix in one.fix
    assert "Replace" not in one.fix
    assert one.evidence == ("20 different inputs in 60 calls",)


@pytest.mark.parametrize(
    ("stages", "iterators", "source"),
    [
        ([*ONES, stage("TensorSlice")], 3, SOURCE),
        ([REPEAT, *ONES, stage("TensorSlice")], 1, SOURCE),  # the cache comes before it
        ([*ONES, stage("Take"), REPEAT, stage("TensorSlice")], 3, SOURCE),  # that ends
        ([*ONES, stage("Zip"), REPEAT, stage("TensorSlice")], 3, SOURCE),  # with the other side, perhaps
        ([*ONES, {**REPEAT, "repeats": 2}, stage("TensorSlice")], 3, SOURCE),
        ([*ONES, *GENERATOR], 3, ENDS),
        ([*ONES, stage("Interleave", ["pyfunc_0"]), stage("TensorSlice")], 3, ENDLESS),  # perhaps with a take() inside
    ],
)
def test_a_cache_behind_data_that_end(tmp_path, stages, iterators, source):
    one = of_stages(tmp_path, stages, iterators, source)
    assert one.fix.endswith(".cache()")
    assert "never full" not in one.message


BODY = "tf.py_function(bad, [x], tf.float32)"


@pytest.mark.parametrize(
    ("made", "mended"),
    [
        (f"data = names.shuffle(9).map(lambda x: {BODY}).batch(2)",
         f"data = names.map(lambda x: {BODY}).cache().shuffle(9).batch(2)"),
        (f"data = names.shuffle(9).map(str).map(lambda x: {BODY})",
         f"data = names.map(str).map(lambda x: {BODY}).cache().shuffle(9)"),
        (f"data = data.shuffle(9, seed=1)\ndata = data.map(lambda x: {BODY})",
         f"data = data.map(lambda x: {BODY})\ndata = data.cache().shuffle(9, seed=1)"),
    ],
)  # fmt: skip
def test_a_shuffle_before_the_map_goes_behind_the_cache(tmp_path, made, mended):
    """A cache behind it would keep the order of the first pass."""
    head = "def bad(x):\n    return x * 2\n" if "\n" not in made else "def bad(x): return x * 2\n"
    shuffled = {**stage("ShuffleV3"), "reshuffles": True}
    one = of_stages(tmp_path, [*ONES, shuffled, stage("TensorSlice")], source=f"{head}{made}\n")
    assert pasted(f"{head}{made}\n", one.fix) == f"{head}{mended}\n"


def test_where_that_shuffle_stands_elsewhere_words_say_so(tmp_path):
    shuffled = {**stage("ShuffleV3"), "reshuffles": True}
    one = of_stages(tmp_path, [*ONES, stage("Filter"), shuffled, stage("TensorSlice")])
    assert one.fix.startswith("cache behind the map of bad, and the shuffle behind the cache")


@pytest.mark.parametrize("ended", [False, True])
def test_a_generator_that_no_pass_read_to_its_end(tmp_path, ended):
    """The call that finds the end gives nothing."""
    one = of_stages(tmp_path, [*ONES, *GENERATOR], source=ENDS, gave=[True, True, not ended])
    assert ("serves nothing: no pass read gen to its end" in one.message) != ended
    assert one.fix.endswith(".cache()")  # behind a take(n), or in a paste
    assert (".take(n)" in one.fix) != ended


@pytest.mark.parametrize(
    ("stages", "iterators", "source"),
    [
        ([*ONES, stage("TensorSlice")], 1, SOURCE),  # one pass, for which a cache serves nothing
        ([stage("Zip"), *ONES, REPEAT], 3, SOURCE),  # whose repeat it is is not known
        ([stage("Cache"), *ONES, stage("TensorSlice")], 1, SOURCE),
        ([stage("Batch"), *ONES, stage("TensorSlice")], 3, SOURCE.replace("tf.float32))", "tf.float32)).cache()")),
        ([*ONES, stage("Cache"), stage("TensorSlice")], 3, SOURCE.replace("names.map", "names.cache().map")),
    ],
)
def test_no_second_cache_and_none_that_serves_nothing(tmp_path, stages, iterators, source):
    one = of_stages(tmp_path, stages, iterators, source)
    assert one.fix.startswith("keep what bad gave for each input")
    assert "never full" not in one.message


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        (range(60), {}),
        ([*range(50), *range(10)], {}),  # a few only
        ([*range(20)] * 3, {"took_ms": 10}),  # too short to matter
        ([*range(20)] * 3, {"gave": lambda i: i}),  # another result each time
        ([None] * 60, {}),
        ([*range(20)] * 3, {"at_once": 8}),  # 4 s of the calls, and half a second of the program
        ([*range(20)] * 3, {"source": SOURCE.replace("x * 2", "x * random.random()")}),
        ([*range(20)] * 3, {"source": SOURCE.replace("x * 2", "x * time.time()")}),
    ],
)
def test_what_it_would_not(tmp_path, keys, options):
    assert found(tmp_path, keys, **options) == []
