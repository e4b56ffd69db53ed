"""`pyfunc-debug learn`: copies the lessons to a folder and says how to open them, or opens JupyterLab there."""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyfunc_debug.cli.lessons import copy_lessons
from pyfunc_debug.errors import NotInstalledError, PyfuncDebugError


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "learn",
        help="lessons as notebooks, in a folder of yours",
        description="Copies the lessons to a folder and says how to open them, or opens JupyterLab there.",
    )
    parser.add_argument("folder", nargs="?", default="pyfunc_debug_lessons", metavar="FOLDER",
                        help="where to put them (default: %(default)s)")  # fmt: skip
    parser.add_argument("--lab", action="store_true", help="start JupyterLab there")
    parser.add_argument("--overwrite", action="store_true", help="replace lessons that are there already")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Copies, and says what to do next."""
    copies, kept = copy_lessons(arguments.folder, arguments.overwrite)
    for copy in copies:
        print(f"{copy}  {_title(copy)}{'  (kept: yours)' if copy in kept else ''}")
    if kept:
        print(f"{len(kept)} were there already and were left as they are (--overwrite replaces them).")
    if not arguments.lab:
        print(f"\nOpen them with:  jupyter lab {copies[0]}\nor in VS Code, each 10 to 15 minutes, in order.")
        return 0
    if importlib.util.find_spec("jupyterlab") is None:
        raise NotInstalledError("JupyterLab is not installed here: pip install 'pyfunc-debug[lab]'")
    code = subprocess.call([sys.executable, "-m", "jupyterlab", copies[0].name], cwd=arguments.folder)
    if code:
        folder = shlex.quote(str(arguments.folder))
        raise PyfuncDebugError(
            f"JupyterLab ended with code {code} and says why above. The lessons are in {arguments.folder}. To start it "
            f"yourself with options (in a container: --allow-root): cd {folder} && jupyter lab {copies[0].name}"
        )
    return 0


def _title(path: Path) -> str:
    """The lesson's first heading."""
    try:
        first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]
    except (OSError, ValueError, LookupError):
        return ""
    line = "".join(first).splitlines()[0]
    return line.lstrip("# ")
