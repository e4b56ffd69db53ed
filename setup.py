"""Builds the optional C extension of the GIL probe; everything else stands in pyproject.toml.

Without a compiler, or on another system, the install succeeds and the probe works at a lower grade (docs/gil.md).
"""

import platform
import sys
import sysconfig

from setuptools import Extension, setup

# On a free-threaded Python there is no GIL to watch, and importing an extension would switch it on.
watchable = (
    sys.platform == "linux"
    and platform.machine() in ("x86_64", "aarch64")
    and sys.implementation.name == "cpython"
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
)
native = Extension(
    "pyfunc_debug.gil._native",
    sources=["pyfunc_debug/gil/_native.c"],
    extra_compile_args=["-O2", "-std=gnu11"],
    py_limited_api=True,
    optional=True,
)
setup(ext_modules=[native] if watchable else [])
