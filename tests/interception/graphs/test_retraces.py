"""Each graph trace has its reason in words: pairs of calls, and what the second one is told."""

from __future__ import annotations

import collections
import pathlib
import threading

import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.interception import names as tensorflow_names
from tests.truth import retraces
from tests.truth.command import seed_of_a_test
from tests.truth.retraces import survey

Point = collections.namedtuple("Point", "a b")
Other = collections.namedtuple("Other", "a b")


class Thing:
    """An object that TensorFlow compares by identity."""


class Model(tf.Module):
    """Two methods: one that creates a variable, one that does not."""

    def __init__(self):
        super().__init__()
        self.weight = None

    @tf.function
    def build(self, x):
        if self.weight is None:
            self.weight = tf.Variable(2.0)
        return self.weight * x

    @tf.function
    def plain(self, x):
        return x + 1.0


ONE, TWO = tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0, 3.0])
KEPT = [Thing(), Thing(), Model(), Model()]


def v1_graph(function):
    with tf.Graph().as_default():
        function(tf.constant([1.0, 2.0]))


def on_device(function):
    with tf.device("CPU:0"):
        function(ONE)


def variables(function):
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    function(v, w)
    function(v, v)


# name: (calls of a fresh `tf.function(lambda x, ...)`, sentences of the second graph trace; None: there is no second)
PAIRS = {
    "shape": ([(ONE,), (TWO,)], ["`x`: shape (3,), was (2,)"]),
    "shape_one_dimension": ([(tf.zeros([2, 3]),), (tf.zeros([4, 3]),)], ["`x`: shape (4, 3), was (2, 3)"]),
    "rank": ([(ONE,), (tf.zeros([1, 2]),)], ["`x`: shape (1, 2), was (2,)"]),
    "scalar_to_vector": ([(tf.constant(1.0),), (ONE,)], ["`x`: shape (2,), was ()"]),
    "same_shape": ([(ONE,), (ONE + 1.0,)], None),
    "dtype": ([(ONE,), (tf.constant([1, 2]),)], ["`x`: dtype int32, was float32"]),
    "dtype_bool": ([(tf.constant(1),), (tf.constant(True),)], ["`x`: dtype bool, was int32"]),
    "dtype_string": ([(tf.constant("a"),), (tf.constant(1.0),)], ["`x`: dtype float32, was string"]),
    "dtype_and_shape": (
        [(ONE,), (tf.constant([[1]]),)], ["`x`: dtype int32, was float32", "`x`: shape (1, 1), was (2,)"],
    ),
    "numpy_shape": ([(np.ones(2),), (np.ones(3),)], ["`x`: shape (3,), was (2,)"]),
    "numpy_dtype": ([(np.ones(2),), (np.ones(2, np.float32),)], ["`x`: dtype float32, was float64"]),
    "int": ([(ONE, 1), (ONE, 2)], ["`k`: Python value 2, was 1"]),
    "float": ([(ONE, 0.5), (ONE, 0.25)], ["`k`: Python value 0.25, was 0.5"]),
    "equal_numbers_share_a_graph": ([(ONE, 1), (ONE, True)], None),
    "bool": (
        [(ONE, True), (ONE, False)], ["`k`: Python value False, was True: each value needs its own graph (2 so far)"],
    ),
    "str": ([(ONE, "a"), (ONE, "b")], ["`k`: Python value 'b', was 'a': each value needs its own graph (2 so far)"]),
    "none": ([(ONE, None), (ONE, 3)], ["`k`: Python value 3, was None: each value needs its own graph (2 so far)"]),
    "value_to_tensor": ([(ONE, 3), (ONE, tf.constant(3))], ["`k`: a tensor int32[], was Python value 3"]),
    "tensor_to_value": ([(ONE, tf.constant(3)), (ONE, 3)], ["`k`: Python value 3, was a tensor int32[]"]),
    "default_then_same": ([(ONE,), (ONE, None)], None),
    "list_length": ([([ONE],), ([ONE, ONE],)], ["`x`: 2 elements, was 1 element"]),
    "list_to_tuple": ([([ONE],), ((ONE,),)], ["`x`: a tuple, was a list"]),
    "list_element_shape": ([([ONE, ONE],), ([ONE, TWO],)], ["`x[1]`: shape (3,), was (2,)"]),
    "dict_keys": ([({"a": ONE},), ({"a": ONE, "b": ONE},)], ["`x`: keys ['a', 'b'], was keys ['a']"]),
    "dict_leaf": ([({"a": (ONE,)},), ({"a": (TWO,)},)], ["`x['a'][0]`: shape (3,), was (2,)"]),
    "dict_value": ([({"a": 1},), ({"a": 2},)], ["`x['a']`: Python value 2, was 1"]),
    "dict_order": ([({"a": ONE, "b": TWO},), ({"b": TWO, "a": ONE},)], None),
    "nested_to_leaf": ([({"a": [ONE]},), ({"a": ONE},)], ["`x['a']`: a tensor float32[2], was a list"]),
    "namedtuple_field": ([(Point(ONE, 1),), (Point(ONE, 2),)], ["`x.b`: Python value 2, was 1"]),
    "namedtuple_type": ([(Point(ONE, 1),), (Other(ONE, 1),)], ["`x`: a Other, was a Point"]),
    "object": ([(ONE, KEPT[0]), (ONE, KEPT[1])], ["`k`: another Thing object (compared by identity)"]),
    "same_object": ([(ONE, KEPT[0]), (ONE, KEPT[0])], None),
    "object_type": ([(ONE, KEPT[0]), (ONE, KEPT[2])], ["`k`: a Model object, was a Thing object"]),
    "dead_object": ([(ONE, Thing), (ONE, Thing)], ["`k`: another Thing object; the earlier one has been deleted"]),
    "ragged_rows": (
        [(tf.ragged.constant([[1], [2, 3]]),), (tf.ragged.constant([[1]]),)], ["`x`: shape (1, None), was (2, None)"],
    ),
    "ragged_dtype": (
        [(tf.ragged.constant([[1], [2, 3]]),), (tf.ragged.constant([[1.0], [2.0, 3.0]]),)],
        ["`x`: dtype float32, was int32"],
    ),
    "ragged_rank": (
        [(tf.ragged.constant([[1], [2]]),), (tf.ragged.constant([[[1]], [[2]]]),)],
        ["`x`: shape (2, None, None), was (2, None)", "`x`: ragged rank 2, was 1"],
    ),
    "tensor_to_ragged": (
        [(ONE,), (tf.ragged.constant([[1], [2, 3]]),)], ["`x`: a Ragged int32[2, None], was a tensor float32[2]"],
    ),
    "sparse_shape": (
        [(tf.sparse.from_dense([[1]]),), (tf.sparse.from_dense([[1, 2]]),)], ["`x`: shape (1, 2), was (1, 1)"],
    ),
    "dataset_elements": (
        [(tf.data.Dataset.range(2),), (tf.data.Dataset.from_tensors(1.0),)],
        ["`x`: elements TensorSpec(shape=(), dtype=tf.float32, name=None), was TensorSpec(shape=(), dtype=tf.int64, "],
    ),
    "variable_to_tensor": (
        [(tf.Variable(1.0),), (tf.constant(1.0),)], ["`x`: a tensor float32[], was a Variable float32[]"],
    ),
    "variable_dtype": ([(tf.Variable(1.0),), (tf.Variable(1),)], ["`x`: dtype int32, was float32"]),
    "another_variable": ([(tf.Variable(1.0),), (tf.Variable(2.0),)], None),
}  # fmt: skip


def make(name):
    def function(x, k=None):
        return tf.constant(1.0)

    function.__name__ = function.__qualname__ = f"case_{name}"
    return function


def run(name, calls):
    function = tf.function(make(name))
    for arguments in calls:
        function(*(Thing() if argument is Thing else argument for argument in arguments))
    return function


def special_cases():
    """Pairs that need more than two argument tuples."""

    def keywords(*args, **options):
        return tf.constant(1.0)

    order = tf.function(keywords)
    order(a=1, b=ONE)
    order(b=ONE, a=1)

    def more(*args):
        return tf.constant(1.0)

    grows = tf.function(more)
    grows(ONE)
    grows(ONE, ONE)

    def other_keywords(**options):
        return tf.constant(1.0)

    keys = tf.function(other_keywords)
    keys(a=1)
    keys(b=1)

    def signed(x):
        return x

    fixed = tf.function(signed, input_signature=[tf.TensorSpec([None], tf.float32)])
    fixed(ONE)
    fixed(TWO)
    fixed([1.0])

    def reduced(x):
        return x

    relaxed = tf.function(reduced, reduce_retracing=True)
    for length in range(1, 5):
        relaxed(tf.zeros([length]))

    def graphs(x):
        return x

    parents = tf.function(graphs)
    parents(ONE)
    v1_graph(parents)

    def devices(x):
        return x

    on = tf.function(devices)
    on(ONE)
    on_device(on)

    def nested(x):
        return x

    inner = tf.function(nested)
    inner(ONE)
    tf.function(lambda x: inner(x))(ONE)

    def aliases(x, y):
        return x + y

    variables(tf.function(aliases))

    def names(x):
        return x

    named = tf.function(names)
    named.get_concrete_function(tf.TensorSpec([2], tf.float32, name="left"))
    named.get_concrete_function(tf.TensorSpec([2], tf.float32, name="right"))

    def fails_once(x):
        if not failures:
            failures.append(1)
            raise ValueError("not yet")
        return x

    failures = []
    broken = tf.function(fails_once)
    with pytest.raises(ValueError, match="not yet"):
        broken(ONE)
    broken(ONE)

    def again(x):
        return x + 1.0

    for _ in range(3):
        tf.function(again)(ONE)

    for value in (1, 2):
        hold(value)(ONE)

    def mapped(x):
        return x

    for _ in range(2):
        list(tf.data.Dataset.range(1).map(mapped))

    def choose(x, k):
        return x

    closest = tf.function(choose)
    closest(ONE, 1)
    closest(tf.zeros([2, 2]), 2)
    closest(TWO, 1)

    first, second = KEPT[2:]
    first.plain(ONE)
    second.plain(ONE)
    first.build(ONE)
    first.build(TWO)


def hold(k):
    @tf.function
    def held(x):
        return x + k

    return held


@pytest.fixture(scope="module")
def traces():
    """Graph traces of every case, by name of the function."""
    cache_type = tensorflow_names.load().function_cache_type
    function_type = tensorflow_names.load().function_type
    before = vars(cache_type)["lookup"], vars(function_type)["__init__"]
    with pfd.record(gil=False) as recording:
        assert vars(cache_type)["lookup"] is not before[0]
        for name, (calls, _) in PAIRS.items():
            run(name, calls)
        special_cases()
    assert (vars(cache_type)["lookup"], vars(function_type)["__init__"]) == before
    assert not recording.meta["troubles"]
    functions = recording.functions()
    found = collections.defaultdict(list)
    for function in functions:
        found[function.name.rpartition(".")[2]] += functions.traces(function)
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_reason_names_what_differs(traces, name):
    expected = PAIRS[name][1]
    found = traces[f"case_{name}"]
    assert found[0].reason == ()
    if expected is None:
        assert len(found) == 1
        return
    assert len(found) == 2
    assert len(found[1].reason) == len(expected)
    for sentence, beginning in zip(found[1].reason, expected):
        assert sentence.startswith(beginning[:90]) if len(beginning) > 80 else sentence == beginning
    if name != "dead_object":
        assert found[1].closest == found[0].signature


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("keywords", [()]),
        ("more", [(), ("other arguments: `args_1` new",)]),
        ("other_keywords", [(), ("other arguments: `b` new, `a` missing",)]),
        ("signed", [()]),
        ("reduced", [(), ("`x`: shape (2,), was (1,)",)]),
        ("graphs", [(), ("called while another tf.Graph is being built, which has its own",)]),
        ("devices", [()]),
        ("nested", [()]),
        ("aliases", [(), ("`y`: arguments share variables in another way than before",)]),
        ("names", [(), ("`x`: TensorSpec name 'right', was 'left'",)]),
        ("fails_once", [(), ("the graph trace before failed with ValueError and left no graph",)]),
        ("mapped", [(), ("a new dataset: tf.data traces its functions for each one",)]),
        ("plain", [(), ("another object's method: TensorFlow keeps graphs for each object",)]),
        ("build", [(), ("first call created variables, so TensorFlow traces twice",), ("`x`: shape (3,), was (2,)",)]),
        ("choose", [(), ("`x`: shape (2, 2), was (2,)", "`k`: Python value 2, was 1"),
                    ("`x`: shape (3,), was (2,)",)]),
    ],
)  # fmt: skip
def test_reason_of_other_kinds_of_calls(traces, name, reasons):
    assert [trace.reason for trace in traces[name]] == reasons


def test_new_objects_are_told_with_the_line_that_makes_them(traces):
    reasons = [trace.reason for trace in traces["again"]]
    assert reasons[0] == ()
    lines = pathlib.Path(__file__).read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "tf.function(again)(ONE)" in text)
    assert reasons[1:] == [(f"a new tf.function object, made at line {line}: each object has graphs of its own",)] * 2
    assert "once" in traces["again"][1].avoid


@pytest.mark.parametrize(
    ("name", "avoid"),
    [
        ("case_shape", "input_signature=[tf.TensorSpec([None], tf.float32)]"),
        ("case_rank", "input_signature=[tf.TensorSpec(None, tf.float32)]"),
        ("case_int", "always pass `k` as a tensor: tf.constant(2, tf.int32)"),
        ("case_dict_leaf", "input_signature=[{'a': (tf.TensorSpec([None], tf.float32),)}]"),
        ("case_dtype", None),
        ("case_numpy_dtype", "tf.cast `x` to tf.float64 before the call: the results are float64 then"),
        ("case_object", "each object needs its own graph: if they are equal, make one and pass it as `k` each time"),
        ("case_value_to_tensor", "always pass `k` as a tensor: tf.constant(3, tf.int32)"),
        ("case_list_to_tuple", "always pass `x` as a list"),
        ("case_list_length", None),
        ("case_none", None),
        ("fails_once", None),
        ("reduced", "input_signature=[tf.TensorSpec([None], tf.float32)]"),
        ("build", "create the variables before the first call"),
        (
            "held",
            "make the tf.function once, outside the function or loop that calls it, and give it `k` as an argument",
        ),
    ],
)
def test_what_would_have_avoided_it(traces, name, avoid):
    assert traces[name][1].avoid == avoid


def test_advice_against_retraces_works_when_it_is_followed():
    """Generated functions, called twice and then as advised: see tests/truth/retraces.py, which tries hundreds."""
    counts, bad = survey(60, seed_of_a_test(retraces.__file__, 60, "pairs"))
    assert not bad
    assert counts["followed"] >= 10, counts


def reads_the_number(x, k):
    return tf.add_n([x for _ in range(k)])


def reads_the_size(x, k):
    return x * x.shape[0] + k


def calls_something(x, k):
    return np.negative(k) * x


@pytest.mark.parametrize("function", [reads_the_number, reads_the_size, calls_something])
def test_nothing_is_advised_where_the_code_may_need_the_value(function):
    with pfd.record(gil=False) as recording:
        traced = tf.function(function)
        traced(ONE, 1)
        traced(TWO if function is reads_the_size else ONE, 2)
    trace = recording.functions().traces(1)[1]
    assert trace.avoid is None
    assert trace.reason[-1] == "`k`: Python value 2, was 1: each value needs its own graph (2 so far)"


def test_a_number_beside_tensors_of_float64_is_advised_as_one():
    traced = tf.function(lambda x, k: x * k)
    for value in (2, 3_000_000_000):
        traced(tf.constant([1.0], tf.float64), value)
    assert pfd.explain(traced).rows[1].avoid == "always pass `k` as a tensor: tf.constant(3000000000, tf.float64)"


def test_a_number_that_does_not_fit_the_tensors_beside_it_is_not_advised():
    traced = tf.function(lambda x, k: x if k > 5 else x * k)
    for value in (2, 3_000_000_000):
        traced(tf.constant([1]), value)
    assert pfd.explain(traced).rows[1].avoid is None


def test_dtypes_as_arguments_are_said_by_name():
    traced = tf.function(lambda x, k: tf.cast(x, k))
    for value in (tf.float32, tf.float64):
        traced(ONE, value)
    assert pfd.explain(traced).rows[1].reason == (
        "`k`: tf.float64, was tf.float32: each value needs its own graph (2 so far)",
    )


def test_threads_do_not_mix_their_reasons():
    def body(x, k):
        return x

    start = threading.Barrier(4)

    def work(number):
        function = tf.function(body)
        start.wait()
        for value in range(5):
            function(ONE, number * 100 + value)

    with pfd.record(gil=False) as recording:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    by_thread = collections.defaultdict(list)
    for trace in recording.functions().traces(1):
        by_thread[trace.thread].append(trace)
    assert len(by_thread) == 4
    for found in by_thread.values():
        values = [int(trace.signature.rpartition(" ")[2][:-1]) for trace in found]
        for trace, value in zip(found[1:], values[1:]):
            assert trace.reason == (f"`k`: Python value {value}, was {value - 1}",)
