"""Code of the user's, run on values beside the same code in TensorFlow's ops.

Only what computes is run: arithmetic, functions of NumPy's, SciPy's, Python's and TensorFlow's, and the user's own
functions statement by statement. What draws random numbers, reads, writes or calls anything else ends it.
"""

from __future__ import annotations

import ast
import copy
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from pyfunc_debug.doctor.code import stored_names
from pyfunc_debug.doctor.failures.paired.expressions import BUDGET, Leaf, PairedExpressions, parts_of
from pyfunc_debug.doctor.failures.paired.ops import AS_IT_IS
from pyfunc_debug.doctor.failures.paired.text import Found, placed
from pyfunc_debug.doctor.failures.paired.values import CannotPairError, Pair, equal, plain
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, is_tape
from pyfunc_debug.doctor.failures.reading.source import names as names_of
from pyfunc_debug.doctor.failures.reading.symbols import alias

_DEEPEST = 5
_ZEROS = {"zeros", "empty", "ones"}
_NOTHING = (ast.Pass, ast.FunctionDef, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.Assert)
_PLAIN = (int, float, bool, dict)
"""Besides arrays, what an environment gives."""
_QUIET = {"print", "append", "info", "debug", "scalar", "update_state"}
"""Calls for their effect that change nothing of the loss."""


class TapedError(Exception):
    """The block of a tape was run to its end: ends the run with the names that it knows."""

    def __init__(self, names: dict[str, Pair]) -> None:
        super().__init__()
        self.names = names


class AsListError(Exception):
    """An array that is written into element by element should be a list: run again."""


class _ReturnedError(Exception):
    def __init__(self, value: Pair) -> None:
        super().__init__()
        self.value = value


class PairedRun(PairedExpressions):
    """Runs statements in both worlds, from a frame or a call to the end of a tape's block."""

    def __init__(self, spot: Spot, leaf: Leaf, found: Found) -> None:
        super().__init__(spot, leaf, found)
        self._arrays: dict[str, ast.Call] = {}
        self._depth = 0
        self._in_block = False

    def block(self, body: Sequence[ast.stmt], names: dict[str, Pair]) -> None:
        """Runs statements in both worlds; raises what a `return` gives."""
        for one in body:
            if self._in_block or self._depth > 1:
                self._statement(one, names)
                continue
            try:
                self._statement(one, names)
            except CannotPairError:  # before the tape, what is not known may not be needed
                if self._in_block:
                    raise
                for name in stored_names(one):
                    names.pop(name, None)

    def _statement(self, node: ast.stmt, names: dict[str, Pair]) -> None:
        self.spend()
        if isinstance(node, ast.Return):
            raise _ReturnedError(Pair(None, None) if node.value is None else self.expression(node.value, names))
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            try:
                value = self.expression(node.value, names)
            except CannotPairError:
                value = self._data(node, names)
            self._assign(node.targets[0], value, names, node)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assign(node.target, self.expression(node.value, names), names, node)
        elif isinstance(node, ast.AugAssign):
            self._augmented(node, names)
        elif isinstance(node, ast.Expr):
            self._effect(node.value, names)
        elif isinstance(node, ast.For) and not node.orelse:
            self._loop(node, names)
        elif isinstance(node, ast.While) and not node.orelse:
            self.block(node.body, names)  # it ran; what it asks may have its last value already
            while bool(plain(self.expression(node.test, names).old)):
                self.block(node.body, names)
        elif isinstance(node, ast.If):
            self._branch(node, names)
        elif isinstance(node, ast.With) and is_tape(node):
            self._in_block = True
            self.block(node.body, names)
            raise TapedError(names)
        elif isinstance(node, _NOTHING):
            return
        else:
            raise CannotPairError(type(node).__name__)

    def _data(self, node: ast.Assign, names: dict[str, Pair]) -> Pair:
        """What the failed frame's names hold, as of random numbers or an environment: nothing differentiates it."""
        target = node.targets[0]
        given = target.elts if isinstance(target, ast.Tuple) else [target]
        values = [self._spot.variables.get(one.id) if isinstance(one, ast.Name) else None for one in given]
        live = any(names[name].live for name in names_of(node.value) if name in names)
        several = isinstance(target, ast.Tuple)
        held = all(type(one).__module__ == "numpy" or (several and type(one) in _PLAIN) for one in values)
        if live or self._depth or not held:
            raise CannotPairError("data")
        return Pair(tuple(values), tuple(values)) if several else self.known(values[0])

    def _assign(self, target: ast.expr, value: Pair, names: dict[str, Pair], node: ast.stmt) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = value
            made = getattr(node, "value", None)
            if isinstance(made, ast.Call) and dotted(made.func).rpartition(".")[2] in _ZEROS:
                self._arrays[target.id] = made
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = list(parts_of(value))
            if len(parts) != len(target.elts):
                raise CannotPairError("another count")
            for one, part in zip(target.elts, parts):
                self._assign(one, part, names, node)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self._written(target, value, names, node)
        else:
            raise CannotPairError("an attribute")

    def _written(self, target: ast.Subscript, value: Pair, names: dict[str, Pair], node: ast.stmt) -> None:
        """`p[p < 0] = 0`: with a mask of what is written."""
        name = getattr(target.value, "id", "")
        whole = self.name(name, names)
        place, old = plain(self.expression(target.slice, names).old), copy.deepcopy(plain(whole.old))
        try:
            old[place] = plain(value.old)
        except Exception:
            raise CannotPairError("a write") from None
        if isinstance(whole.new, list) and isinstance(place, int):
            new = list(whole.new)
            new[place] = value.new
            names[name] = Pair(old, new, whole.live or value.live)
            return
        if not whole.live and not value.live:
            names[name] = Pair(old, old)
            return
        numpy, tensorflow = sys.modules["numpy"], sys.modules["tensorflow"]
        made = self._arrays.get(name)
        if made is not None and made not in self._lists and old.ndim == 1 and type(place) is int and not whole.live:
            self._lists.add(made)
            raise AsListError
        mask = numpy.zeros(old.shape, bool)
        mask[place] = True
        new = tensorflow.where(mask, value.new, whole.new)
        if not equal(old, new) or not isinstance(node, ast.Assign):
            raise CannotPairError("a write")
        names[name] = Pair(old, new, True)
        np, text = alias(self._spot, "numpy"), self._spot.source.text
        new_value = ast.unparse(placed(node.value, self.texts))
        simple = isinstance(target.slice, ast.Compare)
        condition = ast.unparse(placed(target.slice, self.texts)) if simple else "chosen"
        lines = [] if simple else [f"chosen = {np}.zeros({name}.shape, bool)", f"chosen[{text(target.slice)}] = True"]
        new_value = f"{float(new_value)}" if re.fullmatch(r"-?\d+", new_value) else new_value
        self.statements[node] = [*lines, f"{name} = {self._tf}.where({condition}, {new_value}, {name})"]

    def _augmented(self, node: ast.AugAssign, names: dict[str, Pair]) -> None:
        if not isinstance(node.target, ast.Name):
            raise CannotPairError("a part")
        value, before = self.expression(node.value, names), self.name(node.target.id, names)
        made = ast.BinOp(ast.Name("_0", ast.Load()), node.op, ast.Name("_1", ast.Load()))
        names[node.target.id] = self.tried([before, value], made, (AS_IT_IS,), "")[0]

    def _effect(self, node: ast.expr, names: dict[str, Pair]) -> None:
        """A call for its effect: only a list's `append` matters here."""
        if isinstance(node, ast.Constant):
            return
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id in names:
            whole = names[called.value.id]
            if isinstance(whole.old, list) and called.attr == "append" and isinstance(node, ast.Call):
                value = self.expression(node.args[0], names)
                names[called.value.id] = Pair(
                    [*whole.old, value.old], [*whole.new, value.new], whole.live or value.live
                )
                return
        if isinstance(called, ast.Attribute) and called.attr == "watch" and isinstance(node, ast.Call):
            for one in node.args[0].elts if isinstance(node.args[0], (ast.List, ast.Tuple)) else node.args[:1]:
                if isinstance(one, ast.Name):
                    names[one.id] = self._leaf(self.name(one.id, names).new, watched=True) or names[one.id]
            return
        if dotted(called).rpartition(".")[2] in _QUIET:
            return
        raise CannotPairError("an effect")

    def _loop(self, node: ast.For, names: dict[str, Pair]) -> None:
        rounds = list(parts_of(self.expression(node.iter, names)))
        if len(rounds) > BUDGET // 10:
            raise CannotPairError("it is long")
        for one in rounds:
            self._assign(node.target, one, names, node)
            self.block(node.body, names)

    def _branch(self, node: ast.If, names: dict[str, Pair]) -> None:
        chosen = bool(plain(self.expression(node.test, names).old))
        taken, other = (node.body, node.orelse) if chosen else (node.orelse, node.body)
        with suppress(_ReturnedError):
            self.block(other, dict(names))
        self.block(taken, names)

    def call(self, function: ast.FunctionDef, given: Mapping[str, Pair]) -> Pair:
        """What a function of the user's gives."""
        plain_args = function.args
        if plain_args.vararg or plain_args.kwarg or (function.decorator_list and not wrapping.is_graph(function)):
            raise CannotPairError("its arguments")
        names = dict(given)
        defaults = dict(zip(reversed([one.arg for one in plain_args.args]), reversed(plain_args.defaults)))
        defaults |= {one.arg: part for one, part in zip(plain_args.kwonlyargs, plain_args.kw_defaults) if part}
        for name, default in defaults.items():
            if name not in names:
                names[name] = self.expression(default, {})
        if {one.arg for one in (*plain_args.args, *plain_args.kwonlyargs)} - names.keys() - {"self", "cls"}:
            raise CannotPairError("its arguments")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CannotPairError("it is deep")
        try:
            self.block(function.body, names)
        except _ReturnedError as returned:
            return returned.value
        finally:
            self._depth -= 1
        return Pair(None, None)
