"""Builds the optional C extensions, and puts one .pth file beside the packages; the rest is in pyproject.toml.

Without a compiler, or on another system, the install succeeds: then the GIL probe works at a lower grade (docs/gil.md),
and recording costs more (docs/costs.md): the hot path is Python's, and summaries of values are made with NumPy from
copies. On Python 3.10 and 3.11 Ctrl-C then does not stop a running body; nowhere does it end a lock or a sleep that a
prompt evaluates on a thread of TensorFlow's.
"""

import platform
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

STARTUP = (
    'import os; "PYFUNC_DEBUG" in os.environ and __import__("pyfunc_debug.job.waiter", fromlist=["wait"]).wait()\n'
)
"""Python runs this line as it starts: PYFUNC_DEBUG=record:FOLDER and PYFUNC_DEBUG=ide switch a process on."""


class BuildWithStartup(build_py):
    """Adds pyfunc_debug.pth to a wheel. An editable install has none: `record --processes` works there as well."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            (Path(self.build_lib) / "pyfunc_debug.pth").write_text(STARTUP)


# On a free-threaded Python there is no GIL to watch, and importing an extension with the limited API is not possible.
has_gil = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
watchable = has_gil and sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
probe = Extension(
    "pyfunc_debug.gil._native",
    sources=["pyfunc_debug/gil/_native.c"],
    extra_compile_args=["-O2", "-std=gnu11"],
    py_limited_api=True,
    optional=True,
)
statistics = Extension(
    "pyfunc_debug.values._statistics",
    sources=["pyfunc_debug/values/_statistics.c"],
    extra_compile_args=[] if sys.platform == "win32" else ["-O3", "-std=gnu11", "-fopenmp-simd"],
    optional=True,
)
hot = Extension("pyfunc_debug.recorder._hot", sources=["pyfunc_debug/recorder/_hot.c"], optional=True)
internal = [f"{sysconfig.get_path('include')}/{folder}" for folder in ("internal", "internal/mimalloc")]
following = Extension("pyfunc_debug.interception._next", sources=["pyfunc_debug/interception/_next.c"], optional=True)
signals = Extension(
    "pyfunc_debug.stops._signals", sources=["pyfunc_debug/stops/_signals.c"], include_dirs=internal, optional=True
)
pause = Extension("pyfunc_debug.stops._pause", sources=["pyfunc_debug/stops/_pause.c"], optional=True)
setup(
    ext_modules=[
        statistics,
        *([hot, following] if has_gil and sys.platform == "linux" else []),
        *([probe] if watchable else []),
        *([signals] if has_gil and sys.platform != "win32" else []),
        *([pause] if has_gil and sys.version_info < (3, 12) else []),
    ],
    cmdclass={"build_py": BuildWithStartup},
)
