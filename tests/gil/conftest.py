"""Fixtures for the tests of the GIL probe."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from gil_workloads import NATIVE_HERE, Calls


@pytest.fixture(scope="session", autouse=True)
def extension() -> None:
    """Builds the C extension in place when the checkout has none: these tests are about it."""
    folder = Path(__file__).parents[2] / "pyfunc_debug" / "gil"
    if not NATIVE_HERE or list(folder.glob("_native*.so")):
        return
    include = sysconfig.get_path("include")
    command = ["cc", "-O2", "-std=gnu11", "-shared", "-fPIC", f"-I{include}", str(folder / "_native.c")]
    subprocess.run([*command, "-o", str(folder / "_native.abi3.so")], check=True)


@pytest.fixture
def native() -> None:
    """For tests of the native grade, which exists on Linux only."""
    if not NATIVE_HERE:
        pytest.skip("the native grade exists on Linux x86-64 and aarch64 only")


@pytest.fixture
def no_switching() -> Iterator[None]:
    """The interpreter takes the GIL from nobody: bodies run one after the other, whole."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(30)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture
def calls() -> Calls:
    return Calls()
