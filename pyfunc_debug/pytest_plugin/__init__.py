"""The pytest plugin: what pytest loads of it in every run. Nothing happens, nor is imported, until a test asks for it.

Asked for by `--pyfunc-debug`, by `pyfunc_debug = true` in pytest's configuration, by the marker `pyfunc_debug`, or by
the fixture `pyfunc_recording`; then `pyfunc_debug.pytest_plugin.hooks` is loaded (docs/pytest.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyfunc_debug.pytest_plugin.recorded import Recorded

_NAME = "pyfunc_debug_hooks"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("pyfunc_debug", "Python inside TensorFlow graphs (pyfunc_debug)")
    group.addoption(
        "--pyfunc-debug", action="store_true",
        help="record every test, keep the recordings of those that fail, and add to their reports what happened",
    )  # fmt: skip
    group.addoption(
        "--pyfunc-fail-on", metavar="RULES",
        help="fail tests with these findings: rules of the doctor, globs, or error, warning, note; with commas between",
    )  # fmt: skip
    parser.addini("pyfunc_debug", "as --pyfunc-debug", type="bool", default=False)
    parser.addini("pyfunc_fail_on", "as --pyfunc-fail-on", default="")
    parser.addini("pyfunc_debug_folder", "where recordings are kept, from the root folder", default=".pyfunc_debug")


def pytest_configure(config: pytest.Config) -> None:
    """Switches it on for all tests if that was asked for.

    Raises:
      pytest.UsageError: there is no such rule.
    """
    config.addinivalue_line(
        "markers",
        "pyfunc_debug(fail_on='RULES', **options): record this test; the options are those of pyfunc_debug.record",
    )
    if config.getoption("--pyfunc-debug") or config.getini("pyfunc_debug") or rules(config):
        _switch_on(config, everywhere=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Switches it on for the tests that ask for it."""
    if not config.pluginmanager.has_plugin(_NAME) and any(map(asks, items)):
        _switch_on(config, everywhere=False)


def asks(item: pytest.Item) -> bool:
    """Whether a test has the marker or the fixture."""
    return (
        "pyfunc_recording" in getattr(item, "fixturenames", ()) or item.get_closest_marker("pyfunc_debug") is not None
    )


def rules(config: pytest.Config) -> str:
    """The findings that fail any test, as they were written."""
    return config.getoption("--pyfunc-fail-on") or str(config.getini("pyfunc_fail_on"))


def _switch_on(config: pytest.Config, everywhere: bool) -> None:
    from pyfunc_debug.pytest_plugin.hooks import Hooks

    config.pluginmanager.register(Hooks(config, everywhere), _NAME)


@pytest.fixture
def pyfunc_recording(request: pytest.FixtureRequest) -> Recorded:
    """The recording of this test, with assertions: `pyfunc_recording.calls("augment").ok()`."""
    hooks = request.config.pluginmanager.get_plugin(_NAME)
    found = None if hooks is None else hooks.recorded(request.node)
    if found is None:
        pytest.fail("pyfunc_recording: name it among the arguments of the test or of its fixtures", pytrace=False)
    return found  # type: ignore[no-any-return]  # a plugin is Any
