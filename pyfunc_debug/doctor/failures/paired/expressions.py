"""Expressions of the user's, evaluated beside the same in TensorFlow's ops: each is tried as it is met."""

from __future__ import annotations

import ast
import builtins
import copy
import dataclasses
import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pyfunc_debug.doctor.failures.paired import ops as paired_ops
from pyfunc_debug.doctor.failures.paired.layers import is_layer, is_loss, repeats
from pyfunc_debug.doctor.failures.paired.ops import AS_IT_IS
from pyfunc_debug.doctor.failures.paired.text import Found, Text, filled, of_operator, with_names
from pyfunc_debug.doctor.failures.paired.values import (
    CannotPairError,
    Pair,
    equal,
    is_float,
    is_tensor,
    live_parts,
    plain,
)
from pyfunc_debug.doctor.failures.pastes.slope_bounds import bounded_tree
from pyfunc_debug.doctor.failures.reading.evaluation import computes, evaluated, library
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_keras_variable, is_symbolic, lookup
from pyfunc_debug.program import syntax

BUDGET = 6000
"""Expressions and statements of one run."""
_STEPS = {
    "round", "floor", "ceil", "sign", "argmax", "argmin", "argsort", "rint", "stop_gradient", "heaviside",
    "zeros_like", "ones_like", "full_like",
}  # fmt: skip
_WRITES = {"fill", "put", "resize", "itemset", "setflags", "tofile", "dump", "setfield"}
_IN_PLACE = {"sort", "partition"}
"""Methods of an array that write into it; the functions do not."""
_PACKAGES = ("numpy", "scipy", "math", "tensorflow")

Leaf = Callable[..., Pair | None]


class PairedExpressions:
    """Evaluates expressions in both worlds.

    Args:
      spot: A frame of the user's module.
      leaf: Gives for a variable, or a model's result, the tensor that is differentiated in its place.
      found: What has been found before; more is added.
    """

    def __init__(self, spot: Spot, leaf: Leaf, found: Found) -> None:
        self._spot = spot
        self._leaf = leaf
        self.texts = found.texts
        self.statements = found.statements
        self._lists = found.lists
        self._draws = found.draws
        defined = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef)]
        names = Counter(one.name for one in defined)
        self._functions = {one.name: one for one in defined if names[one.name] == 1}
        self._tf = alias(spot, "tensorflow")
        self.left = BUDGET

    def call(self, function: ast.FunctionDef, given: Mapping[str, Pair]) -> Pair:
        """What a function of the user's gives."""
        raise CannotPairError(function.name)

    def spend(self) -> None:
        """Counts an expression or statement."""
        self.left -= 1
        if self.left < 0:
            raise CannotPairError("it is long")

    def expression(self, node: ast.expr, names: dict[str, Pair]) -> Pair:
        """What an expression gives; its text in ops is kept where it differs."""
        self.spend()
        if isinstance(node, ast.Constant):
            return Pair(node.value, node.value)
        if isinstance(node, ast.Name):
            return self.name(node.id, names)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, names)
        if isinstance(node, ast.Call):
            return self._call(node, names)
        if isinstance(node, (ast.List, ast.Tuple)):
            parts = [self.expression(one, names) for one in node.elts]
            kind = list if isinstance(node, ast.List) else tuple
            return Pair(kind(one.old for one in parts), kind(one.new for one in parts), any(one.live for one in parts))
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self._comprehension(node, names)
        if isinstance(node, ast.IfExp):
            chosen = bool(plain(self.expression(node.test, names).old))
            self.expression(node.orelse if chosen else node.body, names)
            return self.expression(node.body if chosen else node.orelse, names)
        if isinstance(node, ast.JoinedStr):
            return Pair("", "")
        if isinstance(node, ast.Slice):
            parts = [
                Pair(None, None) if one is None else self.expression(one, names)
                for one in (node.lower, node.upper, node.step)
            ]
            return Pair(slice(*(plain(one.old) for one in parts)), slice(*(one.new for one in parts)))
        children = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
        if not isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Subscript)):
            raise CannotPairError(type(node).__name__)
        pairs = [self.expression(one, names) for one in children]
        made = with_names(node, children)
        return self._kept(node, children, pairs, made, of_operator(node))

    def name(self, name: str, names: Mapping[str, Pair]) -> Pair:
        if name in names:
            return names[name]
        value = self._spot.module.get(name, self._spot.value(name))
        if value is None and name not in self._spot.module:
            raise CannotPairError(name)
        return self.known(value)

    def known(self, value: Any) -> Pair:
        """A value that is there already."""
        leaf = self._leaf(value)
        if leaf is not None:
            return leaf
        if is_layer(value) or is_loss(value):
            return Pair(value, value)
        if is_symbolic(value) or callable(value):
            raise CannotPairError("a value")
        if isinstance(value, (list, tuple)):
            parts = [self.known(one) for one in value[:1000]]
            kind = type(value) if type(value) in (list, tuple) else list
            return Pair(kind(one.old for one in parts), kind(one.new for one in parts), any(one.live for one in parts))
        ok = is_tensor(value) or type(value).__module__ in ("numpy", "builtins")
        if not ok or type(value).__name__ in ("module", "function", "dict", "set"):
            raise CannotPairError(type(value).__name__)
        return Pair(value, value)

    def _attribute(self, node: ast.Attribute, names: dict[str, Pair]) -> Pair:
        owner = dotted(node).partition(".")[0]
        if owner and owner not in names:
            module = library(self._spot.value(owner), owner)
            if module is not None:
                return Pair(*(evaluated(node, {owner: module}),) * 2)
            found = lookup(node, self._spot)
            if found is not None:
                return self.known(found)
        whole = names[owner].old if owner in names and isinstance(node.value, ast.Name) else None
        if dotted(node.value) == "self" or not (is_tensor(whole) or type(whole).__module__ in ("numpy", "builtins")):
            raise CannotPairError(dotted(node))
        pair = self.expression(node.value, names)
        made = ast.Attribute(ast.Name("_0", ast.Load()), node.attr, ast.Load())
        texts = {"T": (AS_IT_IS, "tf.transpose({0})", "{0}"), "size": (AS_IT_IS, "tf.size({0}).numpy()")}
        return self._kept(node, [node.value], [pair], made, texts.get(node.attr, (AS_IT_IS,)))

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, names: dict[str, Pair]) -> Pair:
        if len(node.generators) != 1 or node.generators[0].ifs:
            raise CannotPairError("a comprehension")
        loop, inside, found = node.generators[0], dict(names), list[Pair]()
        for one in parts_of(self.expression(loop.iter, names)):
            bind(loop.target, one, inside)
            found.append(self.expression(node.elt, inside))
        return Pair([one.old for one in found], [one.new for one in found], any(one.live for one in found))

    def _call(self, node: ast.Call, names: dict[str, Pair]) -> Pair:
        if any(isinstance(one, ast.Starred) for one in node.args) or any(one.arg is None for one in node.keywords):
            raise CannotPairError("a star")
        name = dotted(node.func)
        own = self._functions.get(name.removeprefix("self."))
        root = name.partition(".")[0]
        value = None if root in names and root != "self" else lookup(node.func, self._spot)
        if own is not None and (
            name.startswith("self.")
            or getattr(value, "__module__", "") == self._spot.module.get("__name__")
            or type(value).__name__ == "Function"
        ):
            inputs = parameters(own)
            given = {key: self.expression(one, names) for key, one in zip(inputs, node.args)}
            given |= {str(one.arg): self.expression(one.value, names) for one in node.keywords}
            return self.call(own, given)
        if root in names and name == root and (is_layer(names[root].old) or is_loss(names[root].old)):
            value = names[root].old
        if is_layer(value):
            return self._modelled(value, [self.expression(one, names) for one in node.args])
        if is_loss(value):
            return self._of_loss(value, node, names)
        if node in self._lists:
            size = self.expression(node.args[0], names)
            old = self._old([size], ast.Call(node.func, [ast.Name("_0", ast.Load())], []))
            tree = syntax.expression("[0.0] * _0")
            self.texts[node] = Text("[0.0] * {0}", tree, (node.args[0],))
            return Pair(old, [float(one) for one in old])
        children = [*node.args, *(one.value for one in node.keywords)]
        pairs = [self.expression(one, names) for one in children]
        if root not in names and name.startswith(f"{alias(self._spot, 'numpy')}.random."):
            return self._drawn(node, children, pairs)
        home, rest, function = self._home(node.func, names)
        if home == "builtins" and rest in ("zip", "enumerate") and any(one.live for one in pairs):
            return self._rows(rest, node, pairs)
        if home == "numpy":
            texts = paired_ops.of_numpy(rest)
        elif home == "scipy":
            texts = paired_ops.of_scipy(rest)
        elif home in ("tensorflow", "keras"):
            texts = paired_ops.of_tensorflow(rest.rpartition(".")[2])
        elif home == "math":
            texts = paired_ops.of_math(rest)
        elif home == "builtins":
            texts = paired_ops.of_builtin(rest)
        else:
            assert isinstance(node.func, ast.Attribute)
            owner = self.expression(node.func.value, names)
            if not _only_computes(owner.old):  # a model's `predict` prints, an environment's `step` changes it
                raise CannotPairError(name or "a method")
            children, pairs = [node.func.value, *children], [owner, *pairs]
            texts = paired_ops.of_method(rest)
        made = copy.copy(node)
        count = len(node.args)
        first = 1 if home == "" else 0
        made.args = [ast.Name(f"_{place + first}", ast.Load()) for place in range(count)]
        made.keywords = [
            ast.keyword(one.arg, ast.Name(f"_{place + first + count}", ast.Load()))
            for place, one in enumerate(node.keywords)
        ]
        if home == "":
            made.func = ast.Attribute(ast.Name("_0", ast.Load()), rest, ast.Load())
        elif function is not None:
            made.func = function
        return self._kept(node, children, pairs, made, texts, rest.rpartition(".")[2])

    def _drawn(self, node: ast.Call, children: list[ast.expr], pairs: list[Pair]) -> Pair:
        """A draw of NumPy's, the same in both worlds and each time; it takes the values of tensors."""
        numpy = sys.modules["numpy"]
        if any(one.live for one in pairs) and any(map(is_symbolic, self._spot.variables.values())):
            raise CannotPairError("a draw in a graph")
        given = [plain(one.old) for one in pairs]
        count = len(node.args)
        named = {str(one.arg): value for one, value in zip(node.keywords, given[count:]) if one.arg != "p"}
        try:
            drawn = getattr(numpy.random.RandomState(0), dotted(node.func).rpartition(".")[2])(*given[:count], **named)
        except Exception:
            raise CannotPairError("a draw") from None
        drawn = self._draws.setdefault(node, drawn)
        if any(one.live for one in pairs):
            parts: list[ast.expr] = [ast.Name(f"_{place}", ast.Load()) for place in range(len(pairs))]
            values = [
                ast.Call(ast.Attribute(part, "numpy", ast.Load()), [], []) if one.live and is_tensor(one.new) else part
                for one, part in zip(pairs, parts)
            ]
            words = [ast.keyword(one.arg, value) for one, value in zip(node.keywords, values[count:])]
            self.texts[node] = Text("a draw", ast.Call(node.func, values[:count], words), tuple(children))
        return Pair(drawn, drawn)

    def _modelled(self, layer: Any, given: list[Pair]) -> Pair:
        """What a layer or model gives: of what has a gradient, only if it gives the same whenever it is called."""
        if not any(one.live for one in given):
            result = self._leaf(layer, given)
            if result is None:
                raise CannotPairError("a model")
            return result
        if not repeats(layer) or len(given) != 1:
            raise CannotPairError("a model")
        tensorflow = sys.modules["tensorflow"]
        old, new = (
            tensorflow.identity(layer(tensorflow.convert_to_tensor(one))) for one in (given[0].old, given[0].new)
        )
        return Pair(old, new, True)  # without Keras' logits, past which a loss would have no gradient

    def _of_loss(self, loss: Any, node: ast.Call, names: dict[str, Pair]) -> Pair:
        """What one of Keras' loss objects gives."""
        given = [self.expression(one, names) for one in node.args]
        named = {str(one.arg): self.expression(one.value, names) for one in node.keywords}
        live = any(one.live for one in (*given, *named.values()))
        try:
            old = loss(*(one.old for one in given), **{key: one.old for key, one in named.items()})
            new = loss(*(one.new for one in given), **{key: one.new for key, one in named.items()}) if live else old
        except Exception:
            raise CannotPairError("a loss") from None
        if not equal(old, new):
            raise CannotPairError("a loss")
        return Pair(old, new, live)

    def _home(self, func: ast.expr, names: Mapping[str, Pair]) -> tuple[str, str, ast.expr | None]:
        """The package of a function and its name there; "" and the name for a method of a value."""
        name = dotted(func)
        root, _, rest = name.partition(".")
        if name and root not in names:
            value = self._spot.value(root)
            module = library(value, root)
            if module is not None and rest:
                package = module.__name__.partition(".")[0]
                inner = ".".join([*module.__name__.split(".")[1:], rest])
                if not computes(func) or rest.rpartition(".")[2] in _WRITES:
                    raise CannotPairError(name)
                return package, (inner if package != "scipy" else ".".join(inner.split(".")[1:])), None
            if value is None and not rest and hasattr(builtins, name):
                return "builtins", name, None
            home = _package(value)
            if not rest and callable(value) and home in ("numpy", "scipy", "math", "tensorflow"):
                return home, str(getattr(value, "__name__", name)), None
            if rest and type(value).__module__.startswith("scipy.stats"):
                if name.rpartition(".")[2] == "rvs":
                    raise CannotPairError(name)
                return "scipy", f"{getattr(value, 'name', root)}.{rest}", None
            if isinstance(value, type) or (callable(value) and not rest):
                raise CannotPairError(name)
        if (
            not isinstance(func, ast.Attribute)
            or func.attr in _WRITES | _IN_PLACE
            or func.attr.startswith(("_", "assign"))
        ):
            raise CannotPairError(name)
        return "", func.attr, None

    def _kept(
        self, node: ast.expr, children: list[ast.expr], pairs: list[Pair], made: ast.expr, texts: Sequence[str],
        name: str = "",
    ) -> Pair:  # fmt: skip
        """What an expression of these parts gives; the text that was found for it is kept, and used again."""
        known = self.texts.get(node)
        found, text = self.tried(pairs, made, texts if known is None else (known.template,), name)
        if known is None and text is not None:
            self.texts[node] = dataclasses.replace(text, children=tuple(children))
        return found

    def tried(
        self, pairs: list[Pair], made: ast.expr, texts: Sequence[str], name: str
    ) -> tuple[Pair, Text | None]:  # fmt: skip
        """What the first candidate gives that is the same, and has a gradient to all that it is made of."""
        old = self._old(pairs, made)
        if not any(one.live for one in pairs):
            return Pair(old, old), None
        given = {**self._module, **{f"_{place}": one.new for place, one in enumerate(pairs)}}
        wanted = live_parts(pairs)
        if not is_float(old) and not any(map(is_symbolic, self._spot.variables.values())):
            with suppress(Exception):  # of what has no gradient NumPy may take the value
                if equal(old, new := evaluated(made, given)):
                    return Pair(old, new), None
        steps: tuple[Pair, Text] | None = None
        for template in texts:
            tree = made if template == AS_IT_IS else filled(template, made, self._tf)
            if tree is None:
                continue
            try:
                new, gradients = _differentiated(tree, given, wanted)
                if not equal(old, new):
                    continue
                text = Text(template, tree)
                if not is_float(new):
                    return Pair(old, new), text
                if not _all_finite(gradients):  # the paste has bounds: `finite_slopes`
                    new, gradients = _differentiated(bounded_tree(tree, self._tf), given, wanted)
            except Exception:  # of another rank, dtype or count
                continue
            if not equal(old, new):
                continue
            reached = [any(one[place] is not None for one in gradients) for place in range(len(wanted))]
            if wanted and (all(reached) or (any(reached) and isinstance(made, ast.Subscript))):
                return Pair(old, new, True), text
            if (name in _STEPS or not wanted) and steps is None:
                steps = Pair(old, new), text
        if steps is None:
            raise CannotPairError(name or ast.unparse(made))
        return steps

    def _rows(self, name: str, node: ast.Call, pairs: list[Pair]) -> Pair:
        """What `zip` and `enumerate` give of tensors that have values; in a graph these have no rows."""
        if node.keywords or any(map(is_symbolic, self._spot.variables.values())):
            raise CannotPairError(name)
        every = [list(parts_of(one)) for one in pairs[: 1 if name == "enumerate" else None]]
        if name == "enumerate":
            if len(pairs) > 1:
                raise CannotPairError(name)
            every.insert(0, [Pair(place, place) for place in range(len(every[0]))])
        rows = list(zip(*every))
        return Pair(
            [tuple(one.old for one in row) for row in rows], [tuple(one.new for one in row) for row in rows], True
        )

    def _old(self, pairs: list[Pair], made: ast.expr) -> Any:
        """What the user's expression gives: of its tensors, else of arrays in their place."""
        given = {f"_{place}": one.old for place, one in enumerate(pairs)}
        try:
            return evaluated(made, {**self._module, **given})
        except Exception:
            with suppress(Exception):
                return evaluated(made, {**self._module, **{key: plain(one) for key, one in given.items()}})
        raise CannotPairError(ast.unparse(made))

    @functools.cached_property
    def _module(self) -> dict[str, Any]:
        """The packages and functions of packages that the user's module names."""
        found: dict[str, Any] = {}
        for name, value in self._spot.module.items():
            home = _package(value)
            package = library(value, name)
            if package is not None:
                found[name] = package
            elif type(value).__module__.startswith("scipy.stats") or (callable(value) and home in _PACKAGES):
                found[name] = value
        return {**found, "tf": sys.modules["tensorflow"]}


def _only_computes(value: Any) -> bool:
    """Whether the methods of a value, with the names that are let through, do nothing but compute."""
    home = type(value).__module__.partition(".")[0]
    return home in ("builtins", "numpy", "tensorflow", "scipy", "pandas", "collections") or is_keras_variable(value)


def _package(value: Any) -> str:
    """The package of a function that was imported by its name; a ufunc does not say it."""
    if type(value).__name__ == "ufunc":
        special = getattr(sys.modules.get("scipy.special"), value.__name__, None)
        return "scipy" if special is value else "numpy"
    return str(getattr(value, "__module__", "")).partition(".")[0]


def _differentiated(tree: ast.expr, given: Mapping[str, Any], wanted: list[Any]) -> tuple[Any, list[list[Any]]]:
    """What an expression gives, and the gradients of its tensors."""
    with sys.modules["tensorflow"].GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(wanted)
        new = evaluated(tree, dict(given))
    if not is_float(new):
        return new, []
    parts = [one for one in (new if isinstance(new, (list, tuple)) else [new]) if is_tensor(one)]
    return new, [tape.gradient(one, wanted) for one in parts]


def _all_finite(gradients: list[list[Any]]) -> bool:
    numpy, tensorflow = sys.modules["numpy"], sys.modules["tensorflow"]
    every = [one for each in gradients for one in each if one is not None]
    return all(bool(numpy.isfinite(tensorflow.convert_to_tensor(one).numpy()).all()) for one in every)


def parts_of(pair: Pair) -> Iterator[Pair]:
    """The elements of a value, in both worlds."""
    old, new = pair.old, pair.new
    if isinstance(old, (enumerate, zip, map, reversed, range)):
        old = new = list(old)
    try:
        olds, news = list(old), list(new)
    except TypeError:
        raise CannotPairError("its elements") from None
    if len(olds) != len(news):
        raise CannotPairError("its elements")
    for before, after in zip(olds, news):
        live = pair.live and _may_live(after)
        yield Pair(before, after, live)


def _may_live(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_may_live, value))
    return is_tensor(value) and is_float(value)


def bind(target: ast.expr, value: Pair, names: dict[str, Pair]) -> None:
    """Gives names their values, also those of a tuple."""
    if isinstance(target, ast.Name):
        names[target.id] = value
        return
    parts = list(parts_of(value)) if isinstance(target, (ast.Tuple, ast.List)) else []
    if not isinstance(target, (ast.Tuple, ast.List)) or len(parts) != len(target.elts):
        raise CannotPairError("another count")
    for one, part in zip(target.elts, parts):
        bind(one, part, names)
