"""What holds for every test: TensorFlow is as it was before, no import hook is left, nothing records."""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # quiet, and the same numbers in every process

import pytest

_originals: dict[tuple[str, str], Any] = {}


def _patched_attributes() -> list[tuple[Any, str]]:
    """Owner and name of everything that interception replaces, asked of interception itself."""
    from pyfunc_debug.interception import Interception

    class Deaf:
        def __getattr__(self, name: str) -> Any:
            return lambda *args, **kwargs: None

    from tensorflow.python.ops import gen_script_ops

    wanted = [(patch.owner, patch.name) for patch in Interception(Deaf())._wanted()]  # type: ignore[arg-type]
    return [*wanted, (gen_script_ops, "eager_py_func")]  # the one point of interception.gradients


def _remember() -> None:
    """Notes the original objects: before anything was recorded in this process."""
    for owner, name in _patched_attributes():
        _originals[f"{getattr(owner, '__module__', '')}.{owner.__name__}", name] = (owner, vars(owner)[name])


@pytest.fixture(autouse=True)
def tensorflow_is_left_as_it_was():
    """Every patched attribute is the original object again after each test, by identity."""
    from pyfunc_debug.api.record import current

    if "tensorflow" in sys.modules and not _originals:
        assert current() is None
        _remember()
    finders = list(sys.meta_path)
    yield
    live = current()
    if live is not None:
        live.stop()
    assert live is None, "the test left a recording on"
    ours = [finder for finder in sys.meta_path if type(finder).__module__.startswith("pyfunc_debug")]
    assert not ours, f"the test left import hooks: {ours}"
    assert [finder for finder in finders if finder not in sys.meta_path] == []
    if "tensorflow" in sys.modules and not _originals:
        _remember()
    for (owner_name, name), (owner, original) in _originals.items():
        assert vars(owner)[name] is original, f"{owner_name}.{name} is still replaced"
        module = getattr(vars(owner)[name], "__module__", "tensorflow")
        assert not str(module).startswith("pyfunc_debug"), f"{owner_name}.{name} is ours"


@pytest.fixture(scope="session")
def tf() -> Any:
    """TensorFlow, imported once."""
    import tensorflow

    return tensorflow
