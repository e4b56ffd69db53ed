"""Bodies that only rewrite texts, one by one, as ops of tf.strings: these survive saving, and run on all cores."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.records import Node

_ARRAYS = {"constant", "convert_to_tensor", "array", "asarray"}
_PYTHONS = re.compile(r"\(\?(?!:)|\\[1-9AZbB]|[*+?}]\+|(?<!\\)\$")
"""What Python's patterns have and RE2's have not, or have with another meaning."""
_BLANKS = re.compile(r"\\[sSwWdD]")
_ASCII = "of letters, digits and blanks only those of ASCII count"


class _NoOpError(Exception):
    """Something has no op that does it."""


def as_string_ops(facts: Facts, node: Node) -> str:
    """The line that calls a body of texts, with ops in its place; "" where some of it has none."""
    made, function = pastes.call_of(facts, node), facts.function(node)
    tf = pastes.module(facts, made[0], "tensorflow") if made is not None else None
    inputs = pastes.argument(made[1], 1, "inp") if made is not None else None
    names = code.parameters(function) if function is not None else []
    if made is None or function is None or tf is None or node.tout != ("string",) or len(names) != 1:
        return ""
    if not isinstance(inputs, (ast.List, ast.Tuple)) or len(inputs.elts) != 1:
        return ""
    ops, given = _Texts(facts, node, tf), pastes.text_of(facts, made[0], inputs.elts[0])
    given = given if isinstance(inputs.elts[0], (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({given})"
    try:
        text = ops.body(function, names[0], given)
    except _NoOpError:
        return ""
    fix = pastes.written(pastes.replaced(facts, made[0], {made[1]: text}))
    return f"{fix}  # {_ASCII}" if fix and ops.ascii and "\n" in fix else fix


class _Texts:
    """What texts become, as ops on the tensor that holds them."""

    def __init__(self, facts: Facts, node: Node, tf: str) -> None:
        self._facts = facts
        self._tree = facts.tree(node.file)
        self._tf = tf
        self._re = pastes.module(facts, node.file, "re")
        self._known: dict[str, str] = {}
        self.ascii = False

    def body(self, function: Definition, name: str, given: str) -> str:
        """A body as one expression.

        Raises:
          _NoOpError: Some of it has no op.
        """
        self._known[name] = given
        if isinstance(function, ast.Lambda):
            return self._result(function.body)
        block = list(function.body)
        if isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant):
            del block[0]
        listed = ""
        for statement in block[:-1]:
            target = _target(statement)
            if isinstance(statement, ast.For) and listed:
                self._loop(statement, listed)
            elif target and isinstance(statement, ast.Assign) and isinstance(statement.value, ast.List):
                if statement.value.elts or listed:
                    raise _NoOpError
                listed = target
            elif target and isinstance(statement, ast.Assign):
                self._known[target] = self.text(statement.value)
            else:
                raise _NoOpError
        last = block[-1]
        if not isinstance(last, ast.Return) or last.value is None:
            raise _NoOpError
        return self._result(last.value)

    def _loop(self, loop: ast.For, listed: str) -> None:
        """`for t in texts.numpy(): ...; out.append(t)`."""
        if not isinstance(loop.target, ast.Name) or loop.orelse:
            raise _NoOpError
        self._known[loop.target.id] = self._over(loop.iter)
        for statement in loop.body[:-1]:
            target = _target(statement)
            if not target or not isinstance(statement, ast.Assign):
                raise _NoOpError
            self._known[target] = self.text(statement.value)
        last = loop.body[-1].value if isinstance(loop.body[-1], ast.Expr) else None
        if not isinstance(last, ast.Call) or ast.unparse(last.func) != f"{listed}.append" or len(last.args) != 1:
            raise _NoOpError
        self._known[listed] = self.text(last.args[0])

    def _over(self, node: ast.expr) -> str:
        """What a loop goes through: `texts`, `texts.numpy()`, `texts.numpy().tolist()`."""
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in ("numpy", "tolist") or node.args:
                raise _NoOpError
            node = node.func.value
        if not isinstance(node, ast.Name) or node.id not in self._known:
            raise _NoOpError
        return self._known[node.id]

    def _result(self, node: ast.expr) -> str:
        """What a body returns: a text, or a list or an array of texts."""
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _ARRAYS and node.args:
            node = node.args[0]
        if isinstance(node, ast.ListComp) and len(node.generators) == 1:
            loop = node.generators[0]
            if not isinstance(loop.target, ast.Name) or loop.ifs:
                raise _NoOpError
            self._known[loop.target.id] = self._over(loop.iter)
            return self.text(node.elt)
        return self.text(node)

    def text(self, node: ast.expr) -> str:
        """An expression that gives one text.

        Raises:
          _NoOpError: It has no op.
        """
        if isinstance(node, ast.Name) and node.id in self._known:
            return self._known[node.id]
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
            return repr(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return f"{self.text(node.left)} + {self.text(node.right)}"
        if isinstance(node, ast.JoinedStr):
            return self._joined(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
            return self._method(node, node.func)
        raise _NoOpError

    def _joined(self, node: ast.JoinedStr) -> str:
        parts = []
        for one in node.values:
            if isinstance(one, ast.FormattedValue) and (one.format_spec is not None or one.conversion != -1):
                raise _NoOpError
            parts.append(self.text(one.value if isinstance(one, ast.FormattedValue) else one))
        return f"{self._tf}.strings.join([{', '.join(parts)}])"

    def _method(self, node: ast.Call, func: ast.Attribute) -> str:
        name, owner, values = func.attr, func.value, [getattr(one, "value", None) for one in node.args]
        pattern = self._pattern(owner)
        if name == "sub" and self._re is not None and ast.unparse(owner) == self._re and len(values) == 3:
            return self._replaced(self.text(node.args[2]), values[0], values[1])
        if name == "sub" and pattern is not None and len(values) == 2:
            return self._replaced(self.text(node.args[1]), pattern, values[0])
        inner = self.text(owner)
        if name in ("numpy", "item") and not values:
            return inner
        if name in ("decode", "encode") and values in ([], ["utf-8"], ["utf8"]):
            return inner
        if name in ("lower", "upper") and not values:
            encoding = ', encoding="utf-8"' if self._is_decoded(owner) else ""
            return f"{self._tf}.strings.{name}({inner}{encoding})"
        if name == "strip" and not values:
            self.ascii = True
            return f"{self._tf}.strings.strip({inner})"
        if name == "replace" and len(values) == 2 and all(isinstance(one, str) for one in values):
            return self._regex(inner, re.escape(str(values[0])), str(values[1]).replace("\\", "\\\\"))
        raise _NoOpError

    def _is_decoded(self, node: ast.expr) -> bool:
        """Whether a text is Python's, of any letters, and not bytes."""
        read = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        made = [one for one in pastes.walk(self._tree, ast.Assign) if _target(one) in read]
        return any(".decode(" in ast.unparse(one) for one in (node, *made))

    def _pattern(self, node: ast.expr) -> object:
        """The text of a pattern that the file compiles: `CLEAN = re.compile(r"[^a-z]")`."""
        found = [
            one.value for one in pastes.walk(self._tree, ast.Assign)
            if isinstance(node, ast.Name) and _target(one) == node.id
        ]  # fmt: skip
        call = found[0] if len(found) == 1 else None
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != f"{self._re}.compile" or len(call.args) != 1:
            return None
        return getattr(call.args[0], "value", None) if not call.keywords else None

    def _replaced(self, inner: str, pattern: object, new: object) -> str:
        if not isinstance(pattern, str) or not isinstance(new, str) or _PYTHONS.search(pattern):
            raise _NoOpError
        plain = re.sub(r"\\g<([1-9])>", r"\\\1", new)
        if re.search(r"\\(?![1-9])", plain) or _matches_nothing(pattern):
            raise _NoOpError
        self.ascii = self.ascii or _BLANKS.search(pattern) is not None
        return self._regex(inner, pattern, plain)

    def _regex(self, inner: str, pattern: str, new: str) -> str:
        return f"{self._tf}.strings.regex_replace({inner}, {_raw(pattern)}, {_raw(new)})"


def _target(statement: ast.stmt) -> str:
    """The one name that a statement assigns; "" for another statement."""
    one = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    return one.id if isinstance(one, ast.Name) else ""


def _matches_nothing(pattern: str) -> bool:
    """Whether a pattern fits an empty text, which Python and RE2 count differently, or is none."""
    try:
        return re.fullmatch(pattern, "") is not None
    except re.error:
        return True


def _raw(text: str) -> str:
    """A text as one writes a pattern."""
    if '"' in text or "'" in text or not text.isprintable() or text.endswith("\\"):
        return repr(text)
    return f'r"{text}"' if "\\" in text else f'"{text}"'
