"""`pyfunc-debug check`: what becomes of a model's py_functions when it is saved, compiled or distributed."""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import sys
from typing import Any

from pyfunc_debug.cli import options
from pyfunc_debug.doctor import SEVERITIES
from pyfunc_debug.errors import BadOptionError

_DESCRIPTION = """What becomes of the py_functions in a SavedModel, or in an object of a module (a tf.function, a
Dataset, a Keras model): findings of the rules serialization, xla and distribution, with the line and the fix. The
module is imported, which runs it."""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "check", help="what breaks when a model is saved or compiled", description=_DESCRIPTION
    )
    parser.add_argument("what", metavar="FOLDER|MODULE:OBJECT")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--fail-on", choices=[*SEVERITIES, "never"], default="error", metavar="SEVERITY",
        help="exit with 1 if there is a finding of this severity or a worse one: error (default), warning, note; never",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the findings; 1 if one of them is severe enough."""
    from pyfunc_debug.api.check import check

    findings = check(_object(arguments.what))
    if arguments.json:
        options.show_json([finding.as_dict() for finding in findings])
    else:
        options.show(str(findings))
    bad = () if arguments.fail_on == "never" else SEVERITIES[: SEVERITIES.index(arguments.fail_on) + 1]
    return int(any(finding.severity in bad for finding in findings))


def _object(what: str) -> Any:
    """The folder, or the object of a module."""
    module, colon, path = what.rpartition(":")
    if os.path.isdir(what) or not colon or not path.replace(".", "").isidentifier():
        return what
    sys.path.insert(0, os.getcwd())
    try:
        return functools.reduce(getattr, path.split("."), importlib.import_module(module))
    except ImportError as error:
        raise BadOptionError(f"no such module: {module} ({error})") from error
    except AttributeError as error:
        raise BadOptionError(f"{module} has no {path} ({error})") from error
