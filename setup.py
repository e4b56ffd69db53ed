"""Builds the three optional C extensions; everything else stands in pyproject.toml.

Without a compiler, or on another system, the install succeeds: then the GIL probe works at a lower grade (docs/gil.md),
and recording costs more (docs/costs.md): the hot path is Python's, and summaries of values are made with NumPy from
copies.
"""

import platform
import sys
import sysconfig

from setuptools import Extension, setup

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
setup(
    ext_modules=[statistics, *([hot] if has_gil and sys.platform == "linux" else []), *([probe] if watchable else [])]
)
