"""The C extensions under AddressSanitizer and UBSan: they are built for that in a copy, and tests run there.

    python -m tests.faults sanitizers [PYTEST ARGUMENT]...

Needs gcc with libasan. Without arguments the tests of what is in C run. A fault ends the run with its report.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = [
    "tests/values", "tests/recorder", "tests/pfrec/test_last_moments.py", "tests/gil/test_gil_native.py",
    "tests/api/test_sampled.py", "tests/interception/graphs/test_next.py",
    "tests/stops/test_terminal.py::test_ctrl_c_stops_a_body_that_runs_and_ends_an_evaluation_also_in_c",
    "tests/stops/test_terminal.py::test_ctrl_c_ends_a_condition_or_a_log_that_never_returns_and_stops_there",
]  # fmt: skip
EXTENSIONS = ("_hot", "_native", "_next", "_pause", "_signals", "_statistics")
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1"


def run(arguments: list[str]) -> int:
    """Builds and tests.

    Args:
      arguments: For pytest.

    Returns:
      The exit code: that of pytest, or of the build.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        skip = shutil.ignore_patterns("*.so", "node_modules", "static", "__pycache__")
        for name in ("pyfunc_debug", "jupyter_ext", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=skip)
        for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, copy / name)
        bounds = copy / "pyfunc_debug" / "cli" / "bounds.py"  # AddressSanitizer takes terabytes of addresses
        bounds.write_text(bounds.read_text().replace("_MEMORY_BYTES = 8 << 30", "_MEMORY_BYTES = 1 << 60"))
        (copy / "notebooks").mkdir()
        build = subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=copy, env={**os.environ, "CFLAGS": FLAGS}
        )
        built = sorted(one.name for one in (copy / "pyfunc_debug").rglob("*.so"))
        if build.returncode or not all(any(one.startswith(name) for one in built) for name in EXTENSIONS):
            print(f"not all extensions were built for the sanitizers: {built}", file=sys.stderr)
            return build.returncode or 1
        # TensorFlow throws: AddressSanitizer looks for libstdc++ when it is loaded, and has to find it.
        libraries = " ".join(
            subprocess.run(
                ["gcc", f"-print-file-name={one}"], capture_output=True, text=True, check=True
            ).stdout.strip()
            for one in ("libasan.so", "libstdc++.so")
        )
        environment = {
            **os.environ, "PYTHONPATH": str(copy), "LD_PRELOAD": libraries, "PYTHONMALLOC": "malloc",
            # Python and TensorFlow free little at their end; their own SIGSEGV tests must die as they would without.
            "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:handle_abort=0:exitcode=66:log_path=" + f"{folder}/report",
            "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={folder}/report",
        }  # fmt: skip
        command = [sys.executable, "-m", "pytest", "-n", "0", "-q", *(arguments or TESTS)]
        code = subprocess.run(command, cwd=copy, env=environment).returncode
        reports = sorted(Path(folder).glob("report*"))  # of the processes that tests started, too
        for report in reports:
            print(report.read_text())
        print(f"{', '.join(built)}: pytest ended with {code}, {len(reports)} reports of a sanitizer")
        return code or int(bool(reports))
