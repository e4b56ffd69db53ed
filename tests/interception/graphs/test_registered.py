"""What TensorFlow's registry keeps of a recording: its own entries, however many were there before."""

from __future__ import annotations

import functools
import sys
import threading
import weakref

from pyfunc_debug.interception.names import private


class Counted(weakref.WeakValueDictionary):
    """Counts what it is asked for."""

    asked = 0

    def get(self, key, default=None):
        self.asked += 1
        return super().get(key, default)


def test_entries_made_before_are_not_looked_at(tf):
    from tensorflow.python.ops import script_ops

    registry = script_ops.FuncRegistry()
    functions = [functools.partial(int, number) for number in range(1000)]
    tokens = [registry.insert(one) for one in functions]
    registry._funcs = Counted(registry._funcs)
    assert private.registered_since(registry, 990) == [*zip(tokens, functions)][990:]
    assert registry._funcs.asked == 10
    del functions[995]
    assert [token for token, _ in private.registered_since(registry, 994)] == [tokens[994], *tokens[996:]]
    assert private.registered_since(registry, 1000) == []
    assert private.registered_since(script_ops.FuncRegistry(), 0) == []


def test_functions_are_counted_while_other_threads_register_more(tf):
    """Between any two lines of Python that counting runs, another thread may get the GIL and make a node."""
    from tensorflow.python.ops import script_ops

    registry = script_ops.FuncRegistry()
    kept = [lambda value, n=n: value for n in range(3)]
    for function in kept:
        registry.insert(function)

    def make_a_node():
        kept.append(lambda value: value)
        registry.insert(kept[-1])

    def interleave(frame, event, argument):
        if event == "line":
            other = threading.Thread(target=make_a_node)
            other.start()
            other.join()
        return interleave

    before = sys.gettrace()
    sys.settrace(interleave)
    try:
        count = private.entries(registry)
    finally:
        sys.settrace(before)
    assert 3 <= count <= len(kept)
    assert len(kept) > 3  # the other thread did come in between
