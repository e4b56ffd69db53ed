"""Lines that a paste writes as one: without what only stands between lines."""

import ast
from pathlib import Path

import pytest

from pyfunc_debug.doctor.failures.causes import Edit, Explanation, sound
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


@pytest.mark.parametrize(("line", "kept"), [("x = 1, 2", True), ("x = 1, \\ 2", False), ("    x = 1", False)])
def test_a_paste_that_python_cannot_read_is_not_given(line: str, kept: bool, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("x = 1, \\\n    2\nprint(x)\n")
    edit = Edit(str(path), 1, 2, (line,))
    explanation = Explanation("body-input", str(path), 1, "x is wrong.", edit)
    assert sound(explanation).edit == (edit if kept else None)
    path.write_text("x = = 1\n")  # a file that is not read says nothing about a paste
    assert sound(explanation).edit == edit
