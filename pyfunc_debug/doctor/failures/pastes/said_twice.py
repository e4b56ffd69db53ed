"""Pastes that need an expression of the program's twice: it runs once, in a line above, and has a name.

`tf.floor(x + tf.random.uniform(...))` draws once. A text with `x + tf.random.uniform(...)` in it twice would draw two
numbers, and a model that is called twice updates its statistics twice.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of

_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.Load, ast.UnaryOp, ast.USub)
_INNER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_COMPOUND = ("body", "cases")
_PURE = ("tf.", "K.", "ops.", "keras.ops.")


def said_twice(
    file: str, source: Source, place: ast.expr, twice: ast.expr, new: Callable[[str], str], name: str
) -> Edit | None:
    """The lines with a new expression, in which another one of the program's stands more than once.

    Args:
      file: The file.
      source: Its text.
      place: What is replaced.
      twice: The expression that the new text repeats, a part of `place`.
      new: Makes the new text of a name, or of the expression's own text.
      name: What its value is called, if it gets a name.

    Returns:
      The paste; None where it cannot be written, or where the expression must run once and has no place above.
    """
    text = source.text(twice)
    if all(isinstance(one, _PLAIN) for one in ast.walk(twice)):
        return edit_of(file, source.replaced({place: new(text)}))
    statement = source.statement(place.lineno)
    inside = any(isinstance(one, _INNER) for one in source.around(place))
    if inside or statement is None or any(hasattr(statement, one) for one in _COMPOUND):
        again = new(f"({text})") if not isinstance(twice, (ast.Name, ast.Call, ast.Attribute)) else new(text)
        return edit_of(file, source.replaced({place: again})) if _gives_the_same(twice) else None
    name = source.unused_name(name)
    edit, first = edit_of(file, source.replaced({place: new(name)})), source.span(statement)[0]
    if edit is None or edit.first < first:
        return None
    blanks = indent_of(source.lines[statement.lineno - 1])
    kept = source.lines[first - 1 : edit.first - 1]
    return Edit(file, first, edit.last, (f"{blanks}{name} = {text}", *kept, *edit.lines))


def _gives_the_same(node: ast.expr) -> bool:
    """Whether an expression only computes: no draw, no layer or function of the program's."""
    called = [dotted(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)]
    return all(one.startswith(_PURE) and "random" not in one and "dropout" not in one for one in called)
