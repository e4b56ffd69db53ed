"""Tab in a shell: commands, options, recordings, and the names that a recording has (the extra `completion`).

Once: `eval "$(register-python-argcomplete pyfunc-debug)"` in ~/.bashrc or ~/.zshrc.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.cli.options import newest_here
from pyfunc_debug.cli.parser import Parser
from pyfunc_debug.errors import PyfuncDebugError


def complete(parser: Parser, **where: Any) -> None:
    """Answers the shell and ends the process.

    Args:
      parser: The command line's.
      where: Of `argcomplete.autocomplete`: `output_stream`, `exit_method`.
    """
    import argcomplete

    for command, one in parser.commands.items():
        for name, values in (("node", _bodies), ("nodes", _bodies), ("function", _functions), ("source", _functions)):
            if name in one.options and command not in ("record", "ide"):
                one.options[name].completer = _of_recording(values)  # type: ignore[attr-defined]
        if "file" in one.options:
            files = argcomplete.FilesCompleter(allowednames=["pfrec"])
            one.options["file"].completer = files  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, **where)


def _of_recording(values: Callable[[Recording], Iterable[str]]) -> Callable[..., list[str]]:
    """Completes with names of the recording that the line has so far, or of the newest here."""

    def completer(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
        given = getattr(parsed_args, "file", None)
        path = (given[0] if given else None) if isinstance(given, list) else given
        path = path or newest_here()
        if path is None:
            return []
        try:
            return sorted(set(values(Recording(path))))
        except PyfuncDebugError:
            return []

    return completer


def _bodies(recording: Recording) -> Iterable[str]:
    return (node.body for node in recording.nodes())


def _functions(recording: Recording) -> Iterable[str]:
    return (function.name for function in recording.functions() if function.origin == "user")
