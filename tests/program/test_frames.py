"""Finding the user's line on a stack."""

import functools
import sys
import threading

import tensorflow as tf

from pyfunc_debug.program.frames import RepeatedCaller, caller, user_frames


def here():
    return sys._getframe(1).f_lineno


def test_a_repeated_caller_says_what_a_walk_says_wherever_it_is_asked_from():
    ask = RepeatedCaller()

    def deeper(depth):
        return deeper(depth - 1) if depth else (ask("f"), caller())

    for _ in range(3):
        assert ask("f")[1:] == (here(), sys._getframe().f_code.co_name)
        assert ask("f")[1:] == (here(), sys._getframe().f_code.co_name)
        for depth in (5, 0, 2):
            found, walked = deeper(depth)
            assert found == walked
        # frames that are not the user's lie between: functools is the standard library's
        assert functools.reduce(lambda _, __: ask("f"), [0, 0])[2] == "<lambda>"
        assert ask("g")[1] == here()


def test_two_functions_of_the_same_instructions_are_told_apart():
    ask = RepeatedCaller()

    def first():
        return ask("f")[2]

    def second():
        return ask("f")[2]

    assert [first(), second(), first()] == ["first", "second", "first"]


def test_a_repeated_caller_finds_nothing_where_no_frame_is_the_users():
    ask, found = RepeatedCaller(), []
    assert ask("f") is not None
    ask._known["f"] = (1000, *ask._known["f"][1:])  # as if it had been called through very many frames
    thread = threading.Thread(target=found.extend, args=(map(ask, ["f"]),))  # only the standard library's frames
    thread.start()
    thread.join()
    assert found == [None]


def test_a_lambda_that_autograph_converts_is_one_frame_and_one_that_calls_itself_is_several():
    seen = []

    def note(x):
        seen.append(x.op.traceback)
        return x

    def again(x, n):
        return note(tf.identity(x)) if n == 0 else again(x, n - 1)

    first = again.__code__.co_firstlineno
    tf.data.Dataset.range(1).map(lambda x: note(tf.identity(x)))
    tf.function(lambda x: again(x, 2), autograph=False)(tf.constant(1))
    converted, plain = ([(one.line - first, one.function) for one in user_frames(stack)] for stack in seen)
    assert converted.count((4, "<lambda>")) == 1
    assert plain[-4:] == [(5, "<lambda>"), (1, "again"), (1, "again"), (1, "again")]
