"""Lines that a paste writes as one: without what only stands between lines."""

import ast

import pytest

from pyfunc_debug.doctor.failures.reading.source import parsed

ONE_LINE = [
    ("y = f(x), \\\n    g(z)", "y = f(a), g(z)"),
    ("y = f(x,  # one\n      # two\n\n      'b # c',  # three\n      d)", "y = f(a, 'b # c', d)"),
    ("y = 'a \\\n  b' + \\\n  x", "y = 'a \\\n  b' + a"),
    ('y = f("""a\n  # b\n""", \\\n      x)', 'y = f("""a\n  # b\n""", a)'),
    ("y = f'''{z}\n  b''', \\\n  x", "y = f'''{z}\n  b''', a"),
    ("y = '\\\\' + \\\n    x", "y = '\\\\' + a"),
    ("y = x \\\n  .map(f) \\\n  .batch(2)  # all  ", "y = a.map(f).batch(2)  # all  "),
]


@pytest.mark.parametrize(("text", "wanted"), ONE_LINE)
def test_backslashes_and_comments_are_dropped_but_not_in_strings(text: str, wanted: str) -> None:
    source = parsed(text)
    statement = source.tree.body[0]
    assert isinstance(statement, ast.Assign)
    names = [one for one in ast.walk(statement) if isinstance(one, ast.Name) and one.id == "x"]
    placed = source.replaced({statement.value: source.text_with(statement.value, {names[0]: "a"})})
    assert placed is not None
    assert placed[2] == wanted
    assert ast.dump(ast.parse(wanted)) == ast.dump(ast.parse(text.replace("x", "a")))
