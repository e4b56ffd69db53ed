"""Running somebody's program as `python` would: __main__, sys.argv, sys.path, exit code, tracebacks, signals."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import io
import os
import sys
import types
from dataclasses import dataclass

from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.program.shadowed import give_way


@dataclass
class Program:
    """A program ready to run.

    Attributes:
      name: What to name its recording after.
      argv: Its sys.argv.
      code: Its compiled main module; None if compiling failed, with `error` saying how.
    """

    name: str
    argv: list[str]
    folder: str
    module: types.ModuleType
    code: types.CodeType | None
    error: BaseException | None = None

    def run(self) -> None:
        """Runs it as `__main__`. What it raises passes through, without our frames on top.

        A module beside it that is called as one of ours imports (`code.py`) is the program's, as with `python`.
        """
        sys.argv[:] = self.argv
        taken = {}
        if not getattr(sys.flags, "safe_path", False):
            sys.path[0] = self.folder
            taken = give_way(self.folder)
        sys.modules["__main__"] = self.module
        if self.error is not None:
            raise self.error.with_traceback(None)
        assert self.code is not None
        try:
            exec(self.code, self.module.__dict__)
        finally:
            sys.modules.update(taken)


def from_script(path: str, arguments: list[str]) -> Program:
    """The program `python PATH ARGUMENTS`.

    Raises:
      BadOptionError: there is no such script.
    """
    file, folder = path, os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        file, folder = os.path.join(path, "__main__.py"), os.path.realpath(path)
    if not os.path.isfile(file):
        what = f"the folder {path} has no __main__.py" if os.path.isdir(path) else f"no such script: {path}"
        raise BadOptionError(what)
    file = os.path.abspath(file)  # as python does since 3.9; sys.argv[0] stays as it was given
    module = types.ModuleType("__main__")
    module.__file__ = file
    module.__dict__.update(__builtins__=__builtins__, __cached__=None)
    module.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)
    try:
        with io.open_code(file) as source:
            code, error = compile(source.read(), file, "exec", dont_inherit=True), None
    except (SyntaxError, ValueError) as raised:
        code, error = None, raised
    name = os.path.splitext(os.path.basename(os.path.abspath(path)))[0]
    return Program(name, [path, *arguments], folder, module, code, error)


def from_module(name: str, arguments: list[str]) -> Program:
    """The program `python -m NAME ARGUMENTS`.

    Raises:
      BadOptionError: there is no such module, or it is a package without `__main__`.
    """
    sys.path[0] = os.getcwd()
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
            if spec is None:
                raise BadOptionError(f"the package {name} has no __main__ and cannot be run")
    except (ImportError, AttributeError, ValueError) as error:
        raise BadOptionError(f"no such module: {name} ({error})") from error
    if spec is None or spec.loader is None:
        raise BadOptionError(f"no such module: {name}")
    code = getattr(spec.loader, "get_code", lambda _: None)(spec.name)
    if code is None:
        raise BadOptionError(f"the module {name} has no Python code to run")
    module = types.ModuleType("__main__")
    module.__dict__.update(
        __builtins__=__builtins__, __cached__=spec.cached, __file__=spec.origin, __loader__=spec.loader,
        __package__=spec.parent, __spec__=spec,
    )  # fmt: skip
    return Program(name.rpartition(".")[2], [spec.origin or name, *arguments], os.getcwd(), module, code)
