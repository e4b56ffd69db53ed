"""The user's files: where they are, and their lines as they are now, read on any thread."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # types is imported where it is needed, too
    from types import CodeType

try:
    _BEGAN_IN = os.getcwd()
except OSError:  # it is there no more
    _BEGAN_IN = ""
# linecache is imported where it is needed: this module is loaded as each process of a recorded job starts.


def absolute(file: str) -> str:
    """The path of a file that code names: a relative one (cProfile, runpy) may be from before an `os.chdir`."""
    here = os.path.abspath(file)
    began = os.path.join(_BEGAN_IN, file)
    return os.path.normpath(began) if not os.path.exists(here) and os.path.exists(began) else here


def current_lines(file: str) -> list[str]:
    """The lines of a file, or of a cell; none where it cannot be read."""
    import linecache

    while True:
        try:
            linecache.checkcache(file)
            return linecache.getlines(file)
        except KeyError as error:
            if not is_dropped(error):
                raise


def definition_lines(code: CodeType) -> tuple[list[str], int]:
    """The lines of a function, and the number of the first.

    As `inspect.getsourcelines` has them, which takes 0.2 s of CPU once TensorFlow is imported: it looks for the module
    among the files of all that are loaded.

    Raises:
      OSError: They cannot be read.
    """
    import inspect

    lines = current_lines(code.co_filename)[code.co_firstlineno - 1 :]
    if not lines:
        raise OSError(f"no line {code.co_firstlineno} in {code.co_filename}")
    return inspect.getblock(lines), code.co_firstlineno


def is_dropped(error: KeyError) -> bool:
    """Whether linecache raised it: it looks a file up that another thread dropped a moment ago, as out of date."""
    import linecache

    return bool(error.args) and isinstance(error.args[0], str) and error.args[0] not in linecache.cache
