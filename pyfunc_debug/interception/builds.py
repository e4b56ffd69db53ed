"""Does interception work on this build of TensorFlow? Nothing is run in the user's program to find out.

A build is recognised by one digest of the texts of all modules whose private names we use (`names.MODULES`). Those in
`KNOWN` passed the tests of interception. Any other is tried out once in a process of its own (selftest.py); the result
is kept on disk, by version and digest.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from pyfunc_debug.interception.known_builds import KNOWN
from pyfunc_debug.interception.names import MODULES
from pyfunc_debug.program.cache import cache_folder

_LONGEST_S = 120
_PROGRAM = "import sys; sys.path[:] = eval(sys.argv[1]); from pyfunc_debug.interception.selftest import main; main()"


@dataclass(frozen=True)
class Verdict:
    """What does not work on a build, in words; what works has an empty text."""

    calls: str = ""
    construction: str = ""
    gradients: str = ""


_lock = threading.Lock()
_here: dict[str, Verdict] = {}  # by TensorFlow's folder: one a process


def verdict(folder: str, version: str) -> Verdict:
    """What works on the installed TensorFlow: milliseconds for a known build, seconds for a new one.

    Args:
      folder: Where TensorFlow is.
      version: Its version.
    """
    with _lock:
        if folder not in _here:
            _here[folder] = _find(folder, version)
        return _here[folder]


def trust(folder: str) -> None:
    """From now on everything counts as working in this process: in the one that tries it out."""
    _here[folder] = Verdict()


def digest(folder: str) -> str | None:
    """The digest of a build; None where its source texts are not there.

    Args:
      folder: The package `tensorflow`, installed or taken out of a wheel.
    """
    found = hashlib.sha256()
    for module in MODULES:
        path = Path(folder, *module.split(".")[1:]).with_suffix(".py")
        try:
            text = path.read_bytes().replace(b"\r\n", b"\n")
        except OSError:
            return None
        found.update(b"%s %d\n" % (module.encode(), len(text)))
        found.update(text)
    return found.hexdigest()[:32]


def _find(folder: str, version: str) -> Verdict:
    build = digest(folder)
    if build in KNOWN:
        return Verdict()
    file = _file(version, build)
    known = _read(file)
    if known is None:
        known = _try_out(version)
        if known is None:
            return Verdict(
                construction="this build is not known, and it could not be tried out in a process of its own",
                gradients="this build is not known, and it could not be tried out in a process of its own",
            )
        _write(file, known)
    return known


def _file(version: str, build: str | None) -> Path | None:
    """Where the verdict on a build is kept; None for one that cannot be distinguished from others."""
    if build is None:
        return None
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return cache_folder() / f"tensorflow-{version}-python-{python}-{build[:16]}-{_ours()}.json"


def _ours() -> str:
    """A digest of our own code: after a change the verdict may differ."""
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        found.update(path.read_bytes())
    try:
        found.update(importlib.metadata.version("numpy").encode())  # ids are handed over through its buffers
    except importlib.metadata.PackageNotFoundError:
        pass
    return found.hexdigest()[:16]


def _read(file: Path | None) -> Verdict | None:
    if file is None:
        return None
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return Verdict(**{field.name: str(found[field.name]) for field in fields(Verdict)})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(file: Path | None, found: Verdict) -> None:
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(asdict(found), stream)
        os.replace(temporary, file)
    except OSError:  # a read-only home: it is tried out again next time
        pass


def _try_out(version: str) -> Verdict | None:
    """What the child process found; None when it could not be started or did not end well."""
    if not sys.executable:
        return None
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYFUNC_DEBUG")}
    environment |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    paths = [os.path.abspath(path) for path in sys.path]
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, repr(paths)], env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=_LONGEST_S, check=False,
        )  # fmt: skip
        lines = done.stdout.splitlines()
        found = json.loads(lines[-1]) if lines else None
        if done.returncode or not isinstance(found, dict) or found.pop("version", None) != version:
            return None
        return Verdict(**found)
    except (OSError, ValueError, TypeError, subprocess.SubprocessError):
        return None
