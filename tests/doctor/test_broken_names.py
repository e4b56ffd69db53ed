"""Pastes of a program that was read as a script: what they bind, and names that they may not break."""

from pyfunc_debug.doctor.failures.pastes.bound_fields import as_parameters
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.pastes.unbound import breaks_names

_TEXT = """\
class Log:
    def on_end(self):
        print(self.model)

class Job:
    def __init__(self):
        self.x = 1

def main():
    data = 2
    print(data)
"""
_PROGRAM = _TEXT.splitlines()


def test_a_parameter_that_is_an_attribute_gets_its_own_name() -> None:
    edit = Edit("a.py", 1, 1, ("    self.y = Lambda(lambda self.x: f(self.x, 'ä', self.n))(self.x)",))
    assert as_parameters(edit).lines == ("    self.y = Lambda(lambda x: f(x, 'ä', self.n))(self.x)",)


def test_a_function_that_is_an_attribute_is_kept_in_it() -> None:
    edit = Edit("a.py", 1, 1, ("    def self.f(x):", "        return x"))
    assert as_parameters(edit).lines == ("    def f(x):", "        return x", "    self.f = f")


def test_a_parameter_keeps_its_name_where_another_has_the_short_one() -> None:
    edit = Edit("a.py", 1, 1, ("lambda self.x: self.x + x",))
    assert as_parameters(edit).lines == edit.lines


def test_a_paste_may_not_break_names() -> None:
    assert breaks_names(Edit("a.py", 3, 3, ("        print(data)",)), _PROGRAM)
    assert breaks_names(Edit("a.py", 3, 3, ("        print(self.x)",)), _PROGRAM)
    assert breaks_names(Edit("a.py", 11, 11, ("    print(self.x)",)), _PROGRAM)
    assert breaks_names(Edit("a.py", 9, 10, ("data = 2",)), _PROGRAM)
    assert not breaks_names(Edit("a.py", 11, 11, ("    print(data + 1)",)), _PROGRAM)
    assert not breaks_names(Edit("a.py", 3, 3, ("        self.x = 3", "        print(self.x)")), _PROGRAM)
