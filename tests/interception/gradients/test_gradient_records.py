"""What a recording knows of gradients: whose tape, how often, dy and dx by name, and what the doctor says of them."""

import logging
import threading
from pathlib import Path

import pytest

import pyfunc_debug as pfd
from tests.limits import HANG_S


def square(x):
    return x * x


def node(tf, body=square):
    @tf.function
    def f(x):
        return tf.py_function(body, [x], tf.float32)

    return f


def derivative(tf, f, x=3.0):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def line_of(text):
    """`test_gradient_records.py:12`: where this text stands first."""
    lines = Path(__file__).read_text().splitlines()
    return f"{Path(__file__).name}:{next(number for number, line in enumerate(lines, 1) if line.endswith(text))}"


def rules(recording):
    return {finding.rule: finding for finding in recording.findings()}


def said(finding):
    """Message and evidence."""
    return " ".join([finding.message, *finding.evidence])


def interleaved(tf, f):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)  # the call
    f(tf.constant(10.0))  # between
    return float(tape.gradient(y, x))


def test_a_gradient_call_knows_its_forward_call_and_names_its_values(tf):
    with pfd.record(values="full", gil=False) as recording:
        derivative(tf, node(tf))
    forward, gradient = recording.calls()
    assert (forward.kind, forward.gradients) == ("forward", (gradient.id,))
    assert (gradient.kind, gradient.forward, gradient.tape) == ("gradient", forward.id, forward.id)
    assert [value.path for value in gradient.inputs] == ["dout"]
    assert [(value.path, float(value.array())) for value in gradient.outputs] == [("dx", 6.0)]
    assert [value.path for value in forward.outputs] == ["out"]
    (made,) = recording.nodes()
    assert (made.tout, made.paths, made.out_paths) == (("float32",), ("x",), ("out",))


@pytest.mark.parametrize("mode", ["stock", "exact"])
def test_only_the_used_outputs_and_the_differentiable_inputs_have_names(tf, mode):
    def body(n, x):
        return x * 2, x * tf.cast(n, tf.float32)

    @tf.function
    def f(x):
        return tf.py_function(body, [tf.constant(4), x], [tf.float32, tf.float32])[1]

    with pfd.record(values="full", gil=False, gradients=mode) as recording:
        if mode == "exact":
            assert float(derivative(tf, f)) == 4.0
        else:
            with pytest.raises(tf.errors.InvalidArgumentError):
                derivative(tf, f)
    gradient = recording.call(2)
    assert [value.path for value in gradient.inputs] == ["dout[0]", "dout[1]"]
    assert [value.path for value in gradient.outputs] == (["dx"] if mode == "exact" else [])


def test_stock_mode_shows_a_wrong_tape_with_both_values(tf):
    with pfd.record(gil=False) as recording:
        assert interleaved(tf, node(tf)) == 20.0
    gradient = recording.call(3)
    assert (gradient.forward, gradient.tape) == (1, 2)
    finding = rules(recording)["wrong-tape"]
    assert finding.calls == (3, 1, 2)
    assert "gave 20, the true gradient is 6" in said(finding)
    assert "called at test_gradient_records.py:" in finding.message
    assert finding.file == __file__
    first, second = line_of("y = f(x)  # the call"), line_of("f(tf.constant(10.0))  # between")
    assert f"of call #1 of the run started at {first} " in said(finding)
    assert f"the tape of call #2 of the run started at {second}:" in said(finding)
    assert [str(run.site).split("/")[-1] for run in recording.reader.runs()][:2] == [
        f"{first} interleaved", f"{second} interleaved",
    ]  # fmt: skip


def test_each_pair_of_lines_has_a_finding_of_its_own_with_its_values(tf):
    f = node(tf)
    x = tf.constant(3.0)
    with pfd.record(gil=False) as recording:
        for _ in range(30):
            interleaved(tf, f)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)  # elsewhere
        f(tf.constant(5.0))
        assert float(tape.gradient(y, x)) == 10.0
    first, second = [said(finding) for finding in recording.findings() if finding.rule == "wrong-tape"]
    assert "30 times" in first
    assert "once" in second
    assert f"of the run started at {line_of('# elsewhere')}" in second
    assert "gave 10, the true gradient is 6" in second


def test_a_wrong_tape_within_one_run_names_its_line_once(tf):
    f = node(tf)

    @tf.function
    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        f(x + 7.0)
        return tape.gradient(y, x)

    with pfd.record(gil=False) as recording:
        assert float(both(tf.constant(3.0))) == 20.0  # one run
    message = said(rules(recording)["wrong-tape"])
    assert f"of the run started at {line_of('# one run')} used the tape of call #2 of the same run" in message


def test_where_threads_make_it_uncertain_the_lines_of_all_runs_are_named(tf):
    from pyfunc_debug.doctor.locations import started

    ready = threading.Barrier(2)

    def body(x):
        ready.wait(HANG_S)  # both runs are in flight
        return x * x

    f = node(tf, body)
    f.get_concrete_function(tf.constant(0.0))
    with pfd.record(gil=False) as recording:
        other = threading.Thread(target=lambda: f(tf.constant(1.0)))  # other
        other.start()
        f(tf.constant(2.0))  # this
        other.join()
    (call,) = [one for one in recording.calls() if one.run is None][:1]
    mine, others = line_of("  # this"), line_of("  # other")
    assert started(recording.reader, call.id) == f" of a run started at {' or '.join(sorted([mine, others]))}"


def test_exact_mode_has_nothing_to_say(tf):
    with pfd.record(gil=False, gradients="exact") as recording:
        assert interleaved(tf, node(tf)) == 6.0
    assert (recording.call(3).forward, recording.call(3).tape) == (1, 1)
    assert recording.findings() == []


def test_a_missing_tape_is_said_with_the_true_value(tf):
    f = node(tf)
    with pfd.record(gil=False) as recording, pytest.raises(tf.errors.UnknownError, match="KeyError"):
        derivative(tf, lambda x: f(x) + f(2 * x))
    finding = rules(recording)["missing-tape"]
    assert "the true gradient of square is" in said(finding)
    assert "body-raised" not in rules(recording)


@pytest.mark.parametrize("mode", ["stock", "exact"])
def test_findings_of_silent_traps(tf, mode):
    variable = tf.Variable(2.0, name="kernel")

    def cut(x):
        return float(x.numpy()) ** 2

    def closed(x):
        return x * variable

    with pfd.record(gil=False, gradients=mode) as recording:
        derivative(tf, node(tf, cut))
        derivative(tf, node(tf, closed))
        f = node(tf)
        x = tf.constant(3.0)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            d = inner.gradient(y, x)
        assert outer.gradient(d, x) is None
    found = rules(recording)
    assert "input 'x'" in found["none-gradient"].message
    assert "cut" in found["none-gradient"].message
    assert "kernel" in found["variable-no-input"].message
    assert "square" in found["second-order"].message


def test_plain_programs_have_no_gradient_findings(tf):
    with pfd.record(gil=False) as recording:
        derivative(tf, node(tf))
        derivative(tf, lambda x: tf.py_function(square, [x], tf.float32))
    assert recording.findings() == []


def test_leaked_tapes_are_counted(tf):
    f, x = node(tf), tf.ones([5_000_000])
    with pfd.record(gil=False) as recording, tf.GradientTape() as tape:
        tape.watch(x)
        f(x)
    finding = rules(recording)["leaked-tapes"]
    assert finding.severity == "warning"
    assert "40.0 MB" in finding.message


def test_memory_that_leaked_tapes_share_is_counted_once(tf):
    x = tf.ones([1_000_000])
    with pfd.record(gil=False) as recording:
        for _ in range(3):
            with tf.GradientTape() as tape:
                tape.watch(x)
                node(tf)(x)
    message = rules(recording)["leaked-tapes"].message
    assert "3 tapes" in message
    assert "16.0 MB" in message  # one input, three outputs


def test_nodes_from_before_the_recording_are_linked_where_that_is_certain(tf):
    f = node(tf)
    derivative(tf, f)
    with pfd.record(gil=False) as recording:
        derivative(tf, f)
        interleaved(tf, f)
    pairs = [(call.id, call.forward, call.tape) for call in recording.calls() if call.kind == "gradient"]
    assert pairs == [(2, 1, 1), (5, None, 4)]


def test_a_tape_from_an_earlier_recording_is_not_taken_for_a_call_of_this_one(tf):
    f, x = node(tf), tf.constant(3.0)
    with pfd.record(gil=False, gradients="exact") as first:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        assert first.call(1).kind == "forward"
    with pfd.record(gil=False, gradients="exact") as second:
        assert float(tape.gradient(y, x)) == 6.0
    (gradient,) = second.calls()
    assert (gradient.kind, gradient.forward, gradient.tape) == ("gradient", None, None)


def test_the_ledger_says_that_numpy_functions_have_no_gradient(tf):
    @tf.function
    def f(x):
        return tf.numpy_function(lambda v: v + v, [x], tf.float32) + tf.py_function(square, [x], tf.float32)

    with pfd.record(gil=False) as recording:
        derivative(tf, f)
    rows = [row for function in recording.ledger().rows for row in function.nodes]
    notes = {row.node.kind: row.note for row in rows}
    assert notes["numpy_function"] == "no gradient: this op has none"
    assert notes["py_function"] == ""
    assert {row.node.kind: row.gradients for row in rows} == {"numpy_function": 0, "py_function": 1}
    assert "no gradient: this op has none" in str(recording.ledger())


def two_inputs(tf, body):
    @tf.function
    def f(x, w):
        return tf.py_function(body, [x, w], tf.float32)

    return f


@pytest.mark.parametrize("mode", ["stock", "exact"])
def test_check_gradient_tells_right_from_wrong(tf, mode):
    @tf.custom_gradient
    def liar(x, w):
        return x * w, lambda dy: (dy * w * 1.1, dy * x)

    with pfd.record(gil=False, values="full", gradients=mode) as recording:
        x, w = tf.constant([1.0, 2.0, 3.0]), tf.constant([4.0, 5.0, 6.0])
        for f in (two_inputs(tf, lambda x, w: tf.sin(x) * w), two_inputs(tf, liar)):
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                y = f(x, w)
            tape.gradient(y, [x, w])
    good, bad = (call for call in recording.calls() if call.kind == "forward")
    checked = good.check_gradient()
    assert checked.ok, str(checked)
    assert [one.path for one in checked.inputs] == ["x", "w"]
    assert checked.inputs[0].tolerance < 0.05
    assert [one.ok for one in bad.check_gradient().inputs] == [False, True]
    assert "BAD" in str(recording.check_gradient(bad.gradients[0]))


@pytest.mark.parametrize("nodes", ["*", "*area"])
@pytest.mark.parametrize("mode", ["stock", "exact"])
def test_the_gradient_of_an_older_graph_that_was_never_differentiated_belongs_to_its_node(tf, mode, nodes):
    def area(x, w):
        return x * w

    f = two_inputs(tf, area)
    x, w = tf.constant([1.0, 2.0]), tf.constant([4.0, 5.0])
    f(x, w)
    with pfd.record(gil=False, values="full", gradients=mode, nodes=nodes) as recording:
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = f(x, w)
        tape.gradient(y, [x, w])
    forward, gradient = recording.calls()
    assert [one.body.rpartition(".")[2] for one in recording.nodes()] == ["area"]
    assert (gradient.node, gradient.forward) == (forward.node, forward.id)
    assert [[value.path for value in values] for values in (gradient.inputs, gradient.outputs)] == [
        ["dout"],
        ["dx", "dw"],
    ]
    assert forward.check_gradient().ok


def test_a_gradient_of_a_call_before_the_recording_leaves_later_ones_their_names(tf):
    f = node(tf)
    x = tf.constant(3.0)
    derivative(tf, f)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    with pfd.record(gil=False, values="full") as recording:
        tape.gradient(y, x)
        derivative(tf, f)
    before, forward, gradient = recording.calls()
    assert (before.kind, before.forward, [value.path for value in before.outputs]) == ("gradient", None, ["dx[0]"])
    assert (gradient.node, gradient.outputs[0].path) == (forward.node, "dx")
    assert forward.check_gradient().ok


def test_check_gradient_says_why_it_cannot(tf, tmp_path):
    variable, x = tf.Variable(1.0), tf.constant(3.0)
    path = tmp_path / "one.pfrec"
    with pfd.record(path, gil=False, values="full") as recording:
        derivative(tf, node(tf, lambda x: x * tf.random.uniform([])))
        derivative(tf, node(tf, lambda x: x * variable))
        node(tf)(x)
        half = tf.constant(2.0, tf.bfloat16)
        with tf.GradientTape() as tape:
            tape.watch(half)
            y = tf.py_function(square, [half], tf.bfloat16)
        tape.gradient(y, half)
    variable.assign(2.0)
    with pytest.raises(pfd.NotDeterministicError, match="not deterministic"):
        recording.call(1).check_gradient()
    with pytest.raises(pfd.NotDeterministicError, match="depends on something other than its inputs"):
        recording.call(3).check_gradient()
    with pytest.raises(pfd.NotKeptError, match="was not differentiated"):
        recording.call(5).check_gradient()
    with pytest.raises(
        pfd.NotKeptError, match="no gradient of a float16, float32 or float64 input to compare: dx is bfloat16"
    ):
        recording.call(6).check_gradient()
    with pytest.raises(pfd.NotKeptError, match="in the process that recorded it"):
        pfd.open(path).call(1).check_gradient()
    with pfd.record(gil=False, values="shape") as without:
        derivative(tf, node(tf))
    with pytest.raises(pfd.NotKeptError, match="values='full'"):
        without.call(1).check_gradient()


def test_autograph_says_nothing_of_an_eager_jacobian():
    """It converts the function of TensorFlow's that calls ours, and takes ours as it takes TensorFlow's."""
    import tensorflow as tf

    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    tf.get_logger().addHandler(handler)
    x = tf.Variable([1.0, 2.0])
    try:
        with pfd.record():
            with tf.GradientTape() as tape:
                y = x * x
            found = tape.jacobian(y, x)
    finally:
        tf.get_logger().removeHandler(handler)
    assert found.numpy().tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert said == []
