"""A gradient that `gradient_override_map` gives to another op type than the one that a py_function makes."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, indent_of

_TYPES = {"py_function": "EagerPyFunc", "py_func_stateless": "PyFuncStateless"}
_OTHER = "PyFunc"
_MAP = "gradient_override_map"


@dataclass(frozen=True)
class Override:
    """A key of the map that is of another op.

    Attributes:
      key: The key, where it is written.
      given: What it says: `PyFunc`.
      made: The type of the op that is made: `EagerPyFunc`.
    """

    key: ast.Constant
    given: str
    made: str

    def cause(self, what: str) -> str:
        """What is wrong, in a sentence.

        Args:
          what: The call that makes the op: `tf.py_function`.
        """
        return (
            f'gradient_override_map has a gradient for ops of type "{self.given}", but {what} makes one of type '
            f'"{self.made}": the gradient is never used'
        )


def override(source: Source, call: ast.Call, kind: str) -> Override | None:
    """The key of another op in the maps around a call; None where there is none, or one that fits.

    Args:
      source: The file.
      call: The call that makes the node.
      kind: The node's kind.
    """
    made = _TYPES.get(kind, _OTHER)
    keys = [
        key
        for one in source.around(call)
        if isinstance(one, ast.With)
        for item in one.items
        if isinstance(item.context_expr, ast.Call) and ast.unparse(item.context_expr.func).endswith(_MAP)
        for given in item.context_expr.args[:1]
        if isinstance(given, ast.Dict)
        for key in given.keys
    ]
    names = {key.value: key for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
    others = [name for name in (*_TYPES.values(), _OTHER) if name in names]
    if made in names or len(others) != 1 or len(names) != len(keys):
        return None
    return Override(names[others[0]], others[0], made)


def with_custom_gradient(source: Source, call: ast.Call, file: str, tf: str) -> Edit | None:
    """The block of the map as a function with a gradient of its own: that of the function that was registered.

    Args:
      source: The file.
      call: The call that makes the node, in `return tf.py_function(body, inputs, dtypes)`.
      file: Its name.
      tf: How it calls TensorFlow.
    """
    block = next((one for one in source.around(call) if isinstance(one, ast.With)), None)
    inputs = (
        call.args[1] if len(call.args) > 1 else next((one.value for one in call.keywords if one.arg == "inp"), None)
    )
    gradient = _registered(source, block)
    if block is None or inputs is None or gradient is None or len(block.body) != 1 or len(block.items) != 1:
        return None
    statement = block.body[0]
    if not isinstance(statement, (ast.Return, ast.Assign)) or statement.value is not call:
        return None
    blanks = indent_of(source.lines[block.lineno - 1])
    placed = source.replaced({inputs: "list(inputs)"})
    if placed is None or placed[0] < call.lineno:
        return None
    made = ast.unparse(
        ast.Call(
            call.func,
            [ast.Name("list(inputs)") if one is inputs else one for one in call.args],
            [ast.keyword(one.arg, ast.Name("list(inputs)")) if one.value is inputs else one for one in call.keywords],
        )
    )
    head = "return " if isinstance(statement, ast.Return) else f"{', '.join(map(source.text, statement.targets))} = "
    lines = (
        f"{blanks}@{tf}.custom_gradient",
        f"{blanks}def with_gradient(*inputs):",
        f'{blanks}    op = type("Op", (), {{"inputs": inputs}})',
        f"{blanks}    return {made}, lambda *given: {gradient}(op, *given)",
        f"{blanks}{head}with_gradient(*{source.text(inputs)})",
    )
    return Edit(file, block.lineno, block.end_lineno or block.lineno, lines)


def _registered(source: Source, block: ast.With | None) -> str | None:
    """The gradient function that is registered under the name in the map; it asks its op for inputs only."""
    maps = [
        part
        for one in (block.items if block is not None else ())
        for part in ast.walk(one)
        if isinstance(part, ast.Dict)
    ]
    if len(maps) != 1 or len(maps[0].values) != 1:
        return None
    wanted, found = ast.unparse(maps[0].values[0]), list[str]()
    for one in ast.walk(source.tree):
        made = one.func if isinstance(one, ast.Call) and isinstance(one.func, ast.Call) else None
        if made is not None and ast.unparse(made.func).endswith("RegisterGradient") and isinstance(one, ast.Call):
            found += [ast.unparse(one.args[0])] if one.args and list(map(ast.unparse, made.args)) == [wanted] else []
        for part in one.decorator_list if isinstance(one, ast.FunctionDef) else ():
            if isinstance(part, ast.Call) and ast.unparse(part.func).endswith("RegisterGradient"):
                found += [getattr(one, "name", "")] if list(map(ast.unparse, part.args)) == [wanted] else []
    if len(found) != 1:
        return None
    asked = {
        part.attr for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.args.args
        for part in ast.walk(one) if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)
        and part.value.id == one.args.args[0].arg == "op"
    }  # fmt: skip
    return found[0] if asked <= {"inputs"} else None


__all__ = ["Override", "override", "with_custom_gradient"]
