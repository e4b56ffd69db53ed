"""What is said at a stop: scripted lines in, the expected dialogue out."""

from __future__ import annotations

import bdb
import contextlib
import os
import re
import sys
import textwrap
import traceback

import pytest

import pyfunc_debug as pfd


def scale(x, k):
    y = x * 2.0
    z = helper(y)
    return z + k


def helper(v):
    w = v + 1.0
    return w


@pytest.fixture
def function(tf):
    """Traced before there is any breakpoint."""
    function = tf.function(lambda x: tf.py_function(scale, [x, tf.constant(1.0)], tf.float32))
    assert float(function(tf.constant(3.0))) == 8.0
    return function


def _plain(text):
    """The dialogue without thread names, paths and line numbers."""
    text = re.sub(r" on (TF-\d+|main)", " on THREAD", text)
    text = re.sub(r"/\S*/test_dialogue\.py\(\d+\)", "test_dialogue.py", text)
    return re.sub(r"#\d+", "#N", text)


def _expect(scripted, expected):
    assert _plain(scripted.text) == textwrap.dedent(expected).lstrip("\n")


def short_names(w, c):
    n = [w.shape, c]
    q = {"b": 2}
    return w + len(n) + len(q)


def test_variables_that_are_called_as_commands_are_variables(tf, script):
    first = short_names.__code__.co_firstlineno
    set_up = [f"tbreak {first + 2}", "commands", "c = 9.0", "w.shape", "end", "c", "n"]
    said = script(*set_up, "q.get('b')", "q['b']", "n[1].ndim", "w=5.0", "p w, c", "b 9999", "c")
    stop = pfd.break_on("short_names")
    given = tf.py_function(short_names, [tf.constant([1.0]), tf.constant(2.0)], tf.float32)
    stop.remove()
    assert float(given) == 8.0
    values = [line for line in said.text.splitlines() if not re.match(r"[(>-]|Breakpoint", line)]
    assert values == ["TensorShape([1])", "2", "2", "0", "End of file"], said.text
    assert ") p w, c\n(5.0, 9.0)\n" in said.text


def test_before_stops_at_the_first_line_with_arguments_bound(tf, function, script):
    said = script("args", "n", "p y", "s", "s", "u", "p y", "d", "r", "c")
    breakpoint_ = pfd.break_on("scale")
    assert float(function(tf.constant(3.0))) == 8.0
    breakpoint_.remove()
    _expect(
        said,
        """
        --- breakpoint NUMBER (before): scale #N on THREAD
        > test_dialogue.pyscale()
        -> y = x * 2.0
        (scale #N) args
        x = <tf.Tensor: shape=(), dtype=float32, numpy=3.0>
        k = <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
        (scale #N) n
        > test_dialogue.pyscale()
        -> z = helper(y)
        (scale #N) p y
        <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
        (scale #N) s
        --Call--
        > test_dialogue.pyhelper()
        -> def helper(v):
        (scale #N) s
        > test_dialogue.pyhelper()
        -> w = v + 1.0
        (scale #N) u
        > test_dialogue.pyscale()
        -> z = helper(y)
        (scale #N) p y
        <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
        (scale #N) d
        > test_dialogue.pyhelper()
        -> w = v + 1.0
        (scale #N) r
        --Return--
        > test_dialogue.pyhelper()-><tf.Tensor: s...32, numpy=7.0>
        -> return w
        (scale #N) c
        """.replace("NUMBER", str(breakpoint_.number)),
    )


def test_after_shows_and_replaces_the_return_value(tf, function, script):
    said = script("outputs", "__return__ = 100.0", "c")
    with pfd.record(gil=False) as recording:
        breakpoint_ = pfd.break_on("scale", when="after", condition="outputs > 5")
        assert float(function(tf.constant(3.0))) == 100.0
        assert float(function(tf.constant(0.0))) == 2.0, "the condition is not met"
        breakpoint_.remove()
    assert "float32[] 8." in said.text
    notices = recording.sql("SELECT rule, call, facts FROM notice WHERE rule != 'held' ORDER BY id")
    assert [(one["rule"], one["call"]) for one in notices] == [("stop", 1), ("changed-by-hand", 1)]
    assert breakpoint_.outcomes == {"stopped": 1}


def test_a_replacement_that_does_not_fit_is_refused(tf, function, script, capsys):
    script("__return__ = 'text'", "c")
    breakpoint_ = pfd.break_on("scale", when="after")
    assert float(function(tf.constant(3.0))) == 8.0
    breakpoint_.remove()
    assert "does not fit" in capsys.readouterr().err


def test_assigning_a_local_changes_the_result(tf, function, script):
    script("x = tf.constant(10.0)", "n", "c")
    breakpoint_ = pfd.break_on("scale")
    globals()["tf"] = tf
    assert float(function(tf.constant(3.0))) == 22.0
    breakpoint_.remove()


def test_error_opens_at_the_line_that_raised(tf, script):
    def bad(x):
        t = x * 5  # noqa: F841 - looked at from the prompt
        raise ValueError("oh no")

    said = script("p t", "n")
    breakpoint_ = pfd.break_on("*bad", when="error")
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.function(lambda x: tf.py_function(bad, [x], tf.float32))(tf.constant(1.0))
    breakpoint_.remove()
    assert "numpy=5.0" in said.text
    assert 'raise ValueError("oh no")' in said.text


def test_quit_ends_the_body_with_an_ordinary_exception(tf, function, script):
    line = helper.__code__.co_firstlineno + 1
    for when, innermost in (("scale", "scale"), (f"test_dialogue.py:{line}", "helper")):
        script("q")
        breakpoint_ = pfd.break_on(when)
        with pytest.raises(tf.errors.UnknownError) as caught:
            function(tf.constant(1.0))
        breakpoint_.remove()
        abort = caught.value.pyfunc_exception
        assert type(abort).__name__ == "Abort"
        assert [frame.f_code.co_name for frame, _ in traceback.walk_tb(abort.__traceback__)][-1] == innermost
        assert "tracer.py" not in caught.value.message
    assert float(function(tf.constant(3.0))) == 8.0


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("node", "body   scale ("),
        ("call", "scale #"),
        ("inputs", "x = float32[] 3."),
        ("outputs", "the body has not returned yet"),
        ("others", "no other call waits"),
        ("trace", "tf.py_function(scale"),
        ("w", "scale()"),
        ("l", "y = x * 2.0"),
        ("ll", "def scale(x, k):"),
        ("whatis x", "EagerTensor"),
        ("pp x", "numpy=3.0"),
        ("source helper", "w = v + 1.0"),
        ("undefined_name", "*** NameError"),
        ("import os; os.path.sep", "'/'"),
        ("1/0", "*** ZeroDivisionError"),
        ("raise KeyboardInterrupt", "*** KeyboardInterrupt"),
        ("exit()", "***"),
        ("run", "cannot be restarted"),
        ("help node", "The node: its body"),
        ("!x.shape", "TensorShape([])"),
        ("[x for _ in range(2)]", "numpy=3.0"),
        ("inputs.nonsense", "NameError: name 'inputs'"),
        ("k.dtype; x.shape", "tf.float32\nTensorShape([])"),
        ("help pdb", "The Python Debugger Pdb"),
    ],
)
def test_each_command_at_the_prompt_says_what_was_asked_for(tf, function, script, command, said):
    scripted = script(command, "c")
    if command == "exit()":  # pdb's exit takes no call: it is the command, and ends the body
        scripted = script("p exit()", "c")
    breakpoint_ = pfd.break_on("scale")
    assert float(tf.function(lambda x: tf.py_function(scale, [x, tf.constant(1.0)], tf.float32))(3.0)) == 8.0
    breakpoint_.remove()
    assert said in scripted.text


def test_clear_takes_away_the_line_breakpoints_made_at_the_prompt_and_asks_nothing(tf, function, script):
    said = script(f"b {scale.__code__.co_firstlineno + 3}", "clear", "c", "p 'stopped again'")
    breakpoint_ = pfd.break_on("scale")
    assert float(function(tf.constant(3.0))) == 8.0
    breakpoint_.remove()
    assert said.left == ["p 'stopped again'"]


def test_until_tbreak_and_a_conditional_line(tf, function, script):
    here = scale.__code__.co_firstlineno
    said = script(f"tbreak {here + 3}", "c", "p z", f"b {helper.__code__.co_firstlineno + 2}, v > 100", "c")
    breakpoint_ = pfd.break_on("scale")
    assert float(function(tf.constant(3.0))) == 8.0
    breakpoint_.remove()
    assert "numpy=7.0" in said.text
    assert bdb.Breakpoint.bplist == {}, "bdb keeps them for the whole process: they end with the call"


def test_what_was_set_at_a_prompt_holds_when_another_breakpoint_stops_the_same_call(tf, function, script):
    here = scale.__code__.co_firstlineno
    said = script(f"b {here + 3}", "display y is None", "alias more p y + 100", "c", "c", "more", "c")
    rules = [pfd.break_on("scale"), pfd.break_on(f"test_dialogue.py:{here + 2}")]
    assert float(function(tf.constant(3.0))) == 8.0
    for rule in rules:
        rule.remove()
    stops = [int(line) - here for line in re.findall(r"> \S*test_dialogue.py\((\d+)\)", said.text)]
    assert (stops, said.left) == ([1, 2, 3], []), said.text
    assert "numpy=106.0" in said.text
    assert bdb.Breakpoint.bplist == {}


def test_commands_that_go_on_say_where_they_ran_as_pdb_does(tf, function, script):
    line = scale.__code__.co_firstlineno + 3
    said = script(f"b {line}", "commands", "p 'ran'", "c", "c", "never read")
    breakpoint_ = pfd.break_on("scale")
    assert float(function(tf.constant(3.0))) == 8.0
    breakpoint_.remove()
    assert re.search(rf"'ran'\n> \S*test_dialogue.py\({line}\)scale\(\)\n-> return z \+ k\n$", said.text), said.text
    assert said.left == ["never read"]


def test_display_of_a_tensor_does_not_reach_the_body(tf, function, script):
    """In plain pdb the comparison of old and new value raises in the body."""
    said = script("display y", "display x", "n", "n", "c")
    breakpoint_ = pfd.break_on("scale")
    assert float(function(tf.constant([1.0, 2.0]))[0]) == 4.0
    breakpoint_.remove()
    assert "display y:" in said.text


def test_interact_runs_python_until_exit_and_shows_its_errors_at_the_prompt(tf, function, script):
    said = script("interact", "abc = 7 * 6", "print(abc + 1)", "abc", "1 / 0", "(]", "exit()", "c")
    breakpoint_ = pfd.break_on("scale")
    assert float(function(tf.constant(3.0))) == 8.0
    breakpoint_.remove()
    assert "42" in said.text
    assert "ZeroDivisionError: division by zero" in said.text, "and not on the program's stderr"
    assert "SyntaxError" in said.text


def loud():
    print("the program's")


def test_a_print_at_the_prompt_lands_there_and_one_of_the_program_where_it_always_does(tf, function, script, capsys):
    said = script(
        "print('typed', 6 * 7)", "print('both'); 6 * 9", "for n in (1, 2): print('looped', n)", "print = repr",
        "for n in (1, 2): print('silent')", "p print is repr", "loud()", "c",
    )  # fmt: skip
    breakpoint_ = pfd.break_on("scale")
    assert float(function(tf.constant(3.0))) == 8.0
    breakpoint_.remove()
    assert "\ntyped 42\n" in said.text
    assert "\nboth\n54\n" in said.text
    assert "\nlooped 1\nlooped 2\n" in said.text
    assert "\nTrue\n" in said.text, "a name of the frame's own comes first"
    assert "the program's" not in said.text
    assert capsys.readouterr().out == "the program's\n"


def test_names_are_the_frame_s_and_the_module_s_as_in_pdb(tf, function, script):
    said = script(
        "n", "sorted(locals())", "globals() is scale.__globals__", "(v := 7)", "v + 1", "[k is None for _ in 'ab']",
        "made = [k is None for _ in 'abc']", "made", "[print(n) for n in (5,)]", "c",
    )  # fmt: skip
    breakpoint_ = pfd.break_on("scale")
    assert float(function(tf.constant(3.0))) == 8.0
    breakpoint_.remove()
    answers = ("['k', 'x', 'y']", "True", "7", "8", "[False, False]", "[False, False, False]", "5\n[None]")
    at = 0
    for answer in answers:
        at = said.text.find(f"\n{answer}\n", at)
        assert at >= 0, (answer, said.text)


def test_a_line_in_a_helper(tf, function, script):
    said = script("p w", "c")
    line = helper.__code__.co_firstlineno + 2
    breakpoint_ = pfd.break_on(f"test_dialogue.py:{line}", condition="w > 1")
    assert float(function(tf.constant(3.0))) == 8.0
    breakpoint_.remove()
    assert "numpy=7.0" in said.text
    assert breakpoint_.hits == 1


def test_a_body_without_python_code(tf, script):
    said = script("x = inputs[0] - 1", "w", "c", "inputs[0] = inputs[1] * 2", "c")
    breakpoints = [pfd.break_on("abs"), pfd.break_on("max")]
    result = tf.function(lambda x: tf.numpy_function(abs, [x], tf.float32))(tf.constant(0.0))
    larger = tf.function(lambda x: tf.numpy_function(max, [x, x], tf.float32))(tf.constant(3.0))
    for one in breakpoints:
        one.remove()
    assert (float(result), float(larger)) == (1.0, 6.0)
    assert "abs has no Python code; assign to `x`, or to `__return__`\n> <abs>(1)abs()\n" in said.text
    assert "max has no Python code; assign to `inputs[0]`, or to `inputs[1]`, or to `__return__`\n" in said.text


def test_a_stop_at_a_gradient_sees_what_comes_in_from_above(tf, script):
    said = script("p dy", "c")
    breakpoint_ = pfd.break_on("scale", when="gradient")
    x = tf.constant(3.0)
    function = tf.function(lambda x: tf.py_function(scale, [x, tf.constant(1.0)], tf.float32))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    assert float(tape.gradient(y, x)) == 2.0
    breakpoint_.remove()
    assert "(gradient): ∇ scale #" in said.text
    assert "numpy=1.0" in said.text


def test_breakpoint_and_set_trace_in_a_body(tf, script):
    def body(x):
        a = x + 1
        breakpoint()
        b = a * 2
        import pdb

        pdb.set_trace()
        return b

    said = script("p a", "n", "p b", "c", "p b * 10", "c")
    function = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    with pfd.record(gil=False):
        assert float(function(tf.constant(1.0))) == 4.0
    assert re.findall(r"numpy=([\d.]+)", said.text) == ["2.0", "4.0", "40.0"]


def test_a_hit_is_not_lost_to_another_stop_of_the_same_call(tf, script):
    """`breakpoint()`, steps and `c` in a body with breakpoints at its lines, in its helper, and after it."""

    def body(x):
        a = x + 1
        breakpoint()
        b = a * 2
        c = helper(b)
        return c

    function = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    after = pfd.break_on("*body", when="after")
    with pfd.answers("p a", "c", "outputs", "c") as said:
        assert float(function(tf.constant(1.0))) == 5.0
    assert re.search(r"-> b = a \* 2.*numpy=2.0.*float32\[\] 5\.", str(said), re.S), str(said)
    line, inside = pfd.break_on(_line(body, 4)), pfd.break_on(_line(helper, 2))
    with pfd.answers("n", "n", "p w", "c", "c") as said:  # to line 4, over the helper, which stops, after
        assert float(function(tf.constant(1.0))) == 5.0
    assert said.left == []
    with pfd.answers("n", "n", "r", "r", "r", "c") as said:  # a step to the end of the body is a hit of `after`
        assert float(function(tf.constant(1.0))) == 5.0
    assert [(one.hits, one.outcomes["stopped"]) for one in (after, line, inside)] == [(3, 3), (2, 2), (2, 2)], str(said)

    def nothing(x):
        x.numpy()

    nothing_after = pfd.break_on("*nothing", when="after")
    with pfd.answers("c"):
        tf.py_function(nothing, [1.0], [])
    assert nothing_after.hits == 1, "it returned None"
    for one in (after, line, inside, nothing_after):
        one.remove()


def test_stepping_past_the_end_gives_the_turn_back(tf, script):
    def body(x):
        breakpoint()
        return x

    function = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    with pfd.record(gil=False):
        for _ in range(2):
            script("n", "n", "n", "n")
            assert float(function(tf.constant(1.0))) == 1.0


def test_once_hits_disable_and_list(tf, function, script):
    script(*["c"] * 10)
    once = pfd.break_on("scale", once=True)
    third = pfd.break_on("scale", hits=3)
    off = pfd.break_on("scale")
    off.disable()
    assert pfd.breakpoints() == [once, third, off]
    for _ in range(4):
        function(tf.constant(1.0))
    assert once.outcomes == {"stopped": 1}
    assert third.outcomes["before the wanted hit"] == 2
    assert third.hits == 4
    assert off.hits == 0
    for one in pfd.breakpoints():
        one.remove()
    assert pfd.breakpoints() == []


@pytest.mark.parametrize(
    "options",
    [
        {"where": ""}, {"where": "x", "when": "befor"}, {"where": "x", "condition": "a ="}, {"where": "x", "hits": 0},
        {"where": "x", "policy": "never"}, {"where": "x", "policy": -1.0}, {"where": "x", "prompt": "emacs"},
        {"where": "x", "condition": 3}, {"where": "x", "hits": "2"}, {"where": "x", "hits": 1.5},
        {"where": "x", "policy": None}, {"where": "x", "policy": True}, {"where": "x", "once": "no"},
        {"where": f"{__file__}:0"}, {"where": f"{__file__}:99999"}, {"where": f"{__file__}:2"},
    ],
)  # fmt: skip
def test_a_breakpoint_that_makes_no_sense_is_refused(options):
    with pytest.raises(pfd.BadOptionError):
        pfd.break_on(options.pop("where"), **options)


def test_nobody_to_answer_records_and_goes_on(tf, function, capsys):
    with pfd.record(gil=False) as recording:
        breakpoint_ = pfd.break_on("scale")
        for _ in range(3):
            assert float(function(tf.constant(3.0))) == 8.0
        breakpoint_.remove()
    assert breakpoint_.outcomes == {"nobody to answer": 3}
    assert capsys.readouterr().err.count("nobody can answer") <= 1
    notices = recording.sql("SELECT facts FROM notice WHERE rule = 'stop-unanswered'")
    assert len(notices) == 3
    assert "x = float32[] 3." in notices[0]["facts"]


def test_a_stop_without_an_answer_is_shown_with_its_call_and_by_the_doctor(tf, function, capsys, tmp_path):
    from pyfunc_debug.cli import main

    path = str(tmp_path / "t.pfrec")
    with pfd.record(path, gil=False) as recording:
        breakpoint_ = pfd.break_on("scale")
        for _ in range(3):
            function(tf.constant(3.0))
        breakpoint_.remove()
    (finding,) = (one for one in recording.findings() if one.rule == "stop-unanswered")
    assert "scale would have stopped 3 times" in finding.message
    assert "The first one was given x = float32[] 3." in finding.message
    assert len(finding.calls) == 3
    capsys.readouterr()
    main(["show", path, "--call", str(finding.calls[1])])
    shown = capsys.readouterr().out
    assert f"hit, but nobody could answer: breakpoint {breakpoint_.number} (before)" in shown
    assert "k = float32[] 1." in shown


def test_a_stop_without_an_answer_is_said_to_be_recorded_only_where_it_is(tf, function, capsys):
    from pyfunc_debug.switchboard import board

    said = []
    breakpoint_ = pfd.break_on("scale")
    for recording in (contextlib.nullcontext(), pfd.record(gil=False)):
        board.observer._reported.clear()
        with recording:
            function(tf.constant(3.0))
        said.append(" ".join(capsys.readouterr().err.split()))
    breakpoint_.remove()
    assert "): going on" in said[0], said
    assert "): recorded, going on" in said[1], said


def test_every_listener_hears_of_every_change_of_the_breakpoints():
    from pyfunc_debug.stops import Rules

    rules, heard = Rules(), []
    rules.listeners += [lambda: heard.append("first"), lambda: heard.append("second")]
    rules.add("body").remove()
    assert heard == ["first", "second"] * 2


def test_the_trace_function_of_others_is_put_back(tf, function, script):
    seen = []

    def mine(frame, event, arg):
        seen.append(event)

    script("n", "c")
    breakpoint_ = pfd.break_on("scale")
    sys.settrace(mine)
    try:
        tf.py_function(scale, [1.0, 1.0], tf.float32)
        assert sys.gettrace() is mine
    finally:
        sys.settrace(None)
    breakpoint_.remove()


def test_post_mortem_opens_at_the_users_frame(tf, monkeypatch, capsys):
    import io

    def bad(x):
        inside = 41 + 1
        return tf.reshape(x, [inside])  # raises inside of TensorFlow's code

    with pytest.raises(tf.errors.OpError) as caught, pfd.record(gil=False):  # noqa: F841 - holds the exception
        tf.function(lambda x: tf.py_function(bad, [x], tf.float32))(tf.constant(1.0))
    monkeypatch.setattr(sys, "stdin", io.StringIO("p inside\nq\n"))
    pfd.post_mortem()
    assert "42" in capsys.readouterr().out


def test_post_mortem_of_nested_eager_calls_knows_the_callers(tf, monkeypatch, capsys):
    import io

    def inner(x):
        raise ValueError("deep")

    def outer(x):
        secret = 42  # noqa: F841 - looked at
        return tf.py_function(inner, [x], tf.float32)

    def caller():
        return tf.py_function(outer, [1.0], tf.float32)

    monkeypatch.setattr(sys, "stdin", io.StringIO("up\np secret\nw\nq\n"))
    with pfd.record(gil=False):
        try:
            caller()
        except tf.errors.OpError:
            pfd.post_mortem()
    said = capsys.readouterr().out
    assert "42" in said
    assert re.search(r"\)caller\(\)[\s\S]*\)outer\(\)[\s\S]*\)inner\(\)", said), said


def test_prepared_answers_are_given_once_and_then_the_calls_go_on(tf, function):
    from pyfunc_debug.switchboard import board

    fronts = list(board.broker.fronts)
    breakpoint_ = pfd.break_on("scale")
    with pfd.answers("p x", "c", "p x * 100") as dialogue:
        assert [float(function(tf.constant(value))) for value in (3.0, 4.0, 5.0)] == [8.0, 10.0, 12.0]
        assert dialogue.left == []
    breakpoint_.remove()
    assert board.broker.fronts == fronts
    assert re.findall(r"numpy=([\d.]+)", str(dialogue)) == ["3.0", "400.0"]
    assert breakpoint_.outcomes == {"stopped": 2, "nobody to answer": 1}


def test_prepared_answers_that_nobody_asked_for_are_left(tf, function):
    with pfd.answers("p x", "c") as dialogue:
        assert float(function(tf.constant(3.0))) == 8.0
    assert dialogue.left == ["p x", "c"]
    assert str(dialogue) == ""


def test_a_stop_names_its_thread_as_the_recording_does(tf, tmp_path):
    def body(x):
        return x

    @tf.function
    def run(x):
        return tf.numpy_function(body, [x], tf.float32)

    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        breakpoint_ = pfd.break_on("body")
        with pfd.answers("c") as dialogue:
            list(tf.data.Dataset.from_tensors(1.0).map(run))
        breakpoint_.remove()
    (row,) = recording.sql("SELECT name FROM call JOIN thread ON thread.id = call.thread")
    assert re.fullmatch(r"TF-\d+", row["name"])
    assert f" on {row['name']}" in str(dialogue)


def test_stepping_out_of_a_helper_stops_in_the_body_and_a_later_stop_gives_the_turn_back(tf, function, script):
    """The line's stop is still stepping when the other one comes: neither may keep the turn."""
    said = script("n", "n", "n", "c", "outputs", "c")
    line = pfd.break_on(f"test_dialogue.py:{helper.__code__.co_firstlineno + 1}")
    after = pfd.break_on("scale", when="after")
    assert float(function(tf.constant(3.0))) == 8.0
    assert (line.outcomes, after.outcomes) == ({"stopped": 1}, {"stopped": 1})
    assert said.left == []
    assert re.findall(r"-> (.*)", said.text)[3:5] == ["return z + k", "return z + k"], said.text
    script("n", "n", "s")
    assert float(tf.py_function(scale, [3.0, 1.0], tf.float32)) == 8.0
    script("c", "c")
    assert float(function(tf.constant(3.0))) == 8.0, "another thread gets its turn"
    line.remove()
    after.remove()


def test_a_line_breakpoint_of_the_prompt_in_the_calling_body(tf, function, script):
    said = script(f"tbreak {scale.__code__.co_firstlineno + 3}", "c", "p z", "c")
    line = pfd.break_on(f"test_dialogue.py:{helper.__code__.co_firstlineno + 1}")
    assert float(function(tf.constant(3.0))) == 8.0
    line.remove()
    assert "numpy=7.0" in said.text


def _line(function, offset):
    return f"{os.path.basename(__file__)}:{function.__code__.co_firstlineno + offset}"


def raises(x):
    y = x * 2.0
    return deeper(y)


def deeper(y):
    raise ValueError("deep down")


@pytest.mark.parametrize("place", [(raises, 0), (raises, 1), (deeper, 1)])
def test_error_at_a_line_means_the_body_or_a_line_that_the_error_passed(tf, script, place):
    said = script("p __exception__", "u", "p y", "c")
    breakpoint_ = pfd.break_on(_line(*place), when="error")
    elsewhere = pfd.break_on(_line(helper, 1), when="error")
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.function(lambda x: tf.py_function(raises, [x], tf.float32))(tf.constant(1.0))
    breakpoint_.remove()
    elsewhere.remove()
    assert (breakpoint_.hits, elsewhere.hits) == (1, 0)
    assert "ValueError('deep down')" in said.text
    assert "numpy=2.0" in said.text


def test_after_at_a_line_of_the_body_is_after_the_body(tf, function, script):
    said = script("outputs", "c")
    breakpoint_ = pfd.break_on(_line(scale, 1), when="after")
    assert float(function(tf.constant(3.0))) == 8.0
    breakpoint_.remove()
    assert "float32[] 8." in said.text


def test_what_a_gradient_gets_can_be_asked_for_and_changed(tf, script):
    said = script("inputs", "node", "p dy", "dy = np.float32(10)", "c")
    x = tf.constant(3.0)
    function = tf.function(lambda x: tf.py_function(scale, [x, tf.constant(1.0)], tf.float32))
    with pfd.record(gil=False) as recording:
        breakpoint_ = pfd.break_on(_line(scale, 1), when="gradient", condition="dy == 1 and call.kind == 'gradient'")
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        assert float(tape.gradient(y, x)) == 20.0
        breakpoint_.remove()
    assert "dy = float32[] 1." in said.text
    assert "gradient of scale (" in said.text
    (finding,) = [one for one in recording.findings() if one.rule == "changed-by-hand"]
    assert "changed dy at a stop in scale" in finding.message


def test_an_input_of_a_body_without_python_code_is_changed_or_refused(tf, script, capsys):
    function = tf.function(lambda x: tf.numpy_function(abs, [x], tf.float32))
    breakpoint_ = pfd.break_on("abs")
    for line, result in (("x = np.float32(-1.0)", 1.0), ("inputs[0] = np.float32(-2.0)", 2.0)):
        script(line, "c")
        assert float(function(tf.constant(0.0))) == result
    assert capsys.readouterr().err.count("cannot be used") == 0
    script("x = 'text'", "c")
    assert float(function(tf.constant(0.0))) == 0.0
    breakpoint_.remove()
    assert "the input that you gave abs cannot be used (ValueError" in capsys.readouterr().err


def test_what_a_body_without_python_code_returns_is_replaced_or_refused(tf, script, capsys):
    import numpy as np

    function = tf.function(lambda x: tf.numpy_function(np.sin, [x], tf.float32))
    for when, before in (("before", "'there' in vars()"), ("after", "outputs == 0 == __return__")):
        breakpoint_ = pfd.break_on("sin", when=when)
        said = script(f"p {before}", "__return__ = 7.0", "outputs", "c")
        with pfd.record(gil=False) as recording:
            assert float(function(tf.constant(0.0))) == 7.0
        assert "7.0" in said.text
        assert any("the return value" in one.message for one in recording.findings() if one.rule == "changed-by-hand")
        assert ("True" in said.text) is (when == "after")
        script("__return__ = 'text'", "c")
        assert float(function(tf.constant(0.0))) == 0.0
        breakpoint_.remove()
        assert "the return value that you gave sin does not fit" in capsys.readouterr().err


def test_a_step_from_a_gradient_s_stop_enters_the_user_s_gradient(tf, script):
    @tf.custom_gradient
    def double(x):
        def gradient(dy):
            mine = dy * 3
            return mine

        return x * 2, gradient

    said = script("s", "n", "n", "p mine", "c")
    breakpoint_ = pfd.break_on("*doubled", when="gradient")

    def doubled(x):
        return double(x)

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.function(lambda x: tf.py_function(doubled, [x], tf.float32))(x)
    assert float(tape.gradient(y, x)) == 3.0
    breakpoint_.remove()
    assert re.search(r"--Call--\n> .*test_dialogue.py\(\d+\)gradient\(\)", said.text), said.text
    assert "numpy=3.0" in said.text


def test_call_in_a_condition(tf, function, script):
    script("c", "c")
    condition = "call.node == 'scale' and call.kind == 'forward' and call.thread.startswith('TF-') and call.id >= 1"
    breakpoint_ = pfd.break_on("scale", condition=condition + " and float(call.inputs[0]) == 3")
    function(tf.constant(3.0))
    function(tf.constant(4.0))
    breakpoint_.remove()
    assert (breakpoint_.hits, breakpoint_.error) == (1, "")


def test_an_unknown_name_in_a_condition_is_answered_with_the_known_ones(tf, function, script, capsys):
    breakpoint_ = pfd.break_on("scale", condition="outputs > 1")
    function(tf.constant(3.0))
    breakpoint_.remove()
    assert "NameError: name 'outputs' is not defined (there are call, inputs, k, np, tf, x)" in capsys.readouterr().err


def test_a_breakpoint_that_nothing_fits_says_what_there_is(tf, function, script):
    breakpoint_ = pfd.break_on("sclae")
    function(tf.constant(3.0))
    assert "0 hits because no node of that name was called since it was set (there are scale" in repr(breakpoint_)
    breakpoint_.remove()
    breakpoint_.enable()
    assert repr(breakpoint_) == f"<breakpoint {breakpoint_.number}: before sclae, 0 hits, removed>"


def test_eager_calls_are_counted_on_and_show_who_called(tf, script):
    said = script("up", "p local", "c", "call", "c")
    breakpoint_ = pfd.break_on("scale")
    local = 4711
    for _ in range(2):
        tf.py_function(scale, [3.0, 1.0], tf.float32)
    breakpoint_.remove()
    assert str(local) in said.text
    first, second = re.findall(r"\(before\): scale #(\d+)", said.text)
    assert int(second) == int(first) + 1


def calls_scale(x):
    return sys.modules["tensorflow"].py_function(scale, [x, 1.0], x.dtype)  # in calls_scale


def test_trace_of_a_call_without_a_graph_shows_who_called_it(tf, script):
    said = script("trace", "c", "trace", "c")
    breakpoint_ = pfd.break_on("scale")
    tf.py_function(scale, [3.0, 1.0], tf.float32)  # by this line
    tf.function(lambda x: tf.py_function(calls_scale, [x], tf.float32))(tf.constant(1.0))
    breakpoint_.remove()
    first, second = said.text.split("it runs eagerly, in no graph; called by\n")[1:]
    assert "in test_trace_of_a_call_without_a_graph_shows_who_called_it\n" in first
    assert re.findall(r"# by this line|# in calls_scale", first + second) == ["# by this line", "# in calls_scale"]
    breakpoint_ = pfd.break_on(f"test_dialogue.py:{helper.__code__.co_firstlineno + 1}")  # below the body
    said = script("trace", "c")
    tf.numpy_function(scale, [3.0, 1.0], tf.float64)
    breakpoint_.remove()
    assert said.text.split("called by\n")[1].rstrip().count("tf.float64)") == 1
    assert "z = helper(y)" not in said.text.split("called by\n")[1]
    breakpoint_ = pfd.break_on("scale", when="gradient")
    said = script("trace", "c")
    with tf.GradientTape() as tape:
        x = tf.constant(2.0)
        tape.watch(x)
        y = tf.py_function(scale, [x, 1.0], tf.float32)
    tape.gradient(y, x)  # asks
    breakpoint_.remove()
    assert "tape.gradient(y, x)  # asks\n" in said.text.split("called by\n")[1]


def test_trace_of_elements_that_keras_takes_shows_who_asked_for_them(tf, script):
    class Pairs(tf.keras.utils.PyDataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            return tf.ones((2, 1)), tf.ones((2, 1))

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(loss="mse")
    said = script(*["trace", "c"] * 5)
    breakpoint_ = pfd.break_on("*__getitem__")
    model.fit(Pairs(), verbose=0)  # fits
    breakpoint_.remove()
    assert "not known" not in said.text
    assert "Keras takes the elements itself, in no graph; called by" in said.text
    assert "model.fit(Pairs(), verbose=0)  # fits" in said.text
