"""What happens around a test that is recorded: from its fixtures to its end, and into its report if it fails."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pyfunc_debug.api.live import LiveRecording
from pyfunc_debug.api.record import record
from pyfunc_debug.errors import BadOptionError, PyfuncDebugError, PyfuncDebugWarning
from pyfunc_debug.pfrec.writer import remove
from pyfunc_debug.pytest_plugin import asks, rules
from pyfunc_debug.pytest_plugin.recorded import Recorded
from pyfunc_debug.pytest_plugin.report import failing_call, found_by, report_text, wanted_rules
from pyfunc_debug.stops.display import chain
from pyfunc_debug.switchboard import board

_LONGEST = 120


class _Watch:
    """The recording of one test.

    Attributes:
      recording: It; None where it could not be made, with `problem` saying why.
      call: Number of the call whose exception ended the test.
      kept: Whether the file stays.
    """

    def __init__(self, path: Path, fail_on: Sequence[str], options: dict[str, Any]) -> None:
        self.fail_on = fail_on
        self.recording: LiveRecording | None = None
        self.problem = ""
        self.call: int | None = None
        self.kept = self.gave_way = False
        beside = path.with_name(f"{path.stem}-{os.getpid()}.pfrec")
        for one in (path, beside):  # another process may be writing the first: two runs of pytest at once
            recording = record(one, **{"gil": False, **options, "overwrite": True})
            recording.gives_way = True
            try:
                self.recording = recording.start()
                return
            except BadOptionError:
                raise
            except PyfuncDebugError as error:
                self.problem = str(error)

    def end(self, errors: Sequence[BaseException]) -> None:
        """Ends the recording; what the exceptions hide is shown by them from now on."""
        recording = self.recording
        if recording is None:
            return
        for one in errors:
            chain(one, board.as_written)  # pytest shows the body's lines, and --pdb opens there
        if recording.state != "recording":
            self.gave_way = True
            return
        if errors:
            self.call = failing_call(errors[-1], board.failures())
            recording.explain_failure(errors[-1], quietly=True)
        recording.note_end(errors[-1] if errors else None)
        try:
            recording.stop()
        except PyfuncDebugWarning as news:  # `filterwarnings = error` is meant for the tests
            self.problem = str(news)

    def finish(self) -> None:
        """Lets go of the recording, and deletes it if it is not kept."""
        if self.recording is not None:
            self.recording.close()
            if not self.kept:
                remove(self.recording.path)


_WATCH = pytest.StashKey[_Watch]()


class Hooks:
    """pytest's hooks, registered once a test asks to be recorded.

    Args:
      config: pytest's.
      everywhere: Whether all tests are recorded, or those that ask.
    """

    def __init__(self, config: pytest.Config, everywhere: bool) -> None:
        self._config = config
        self._everywhere = everywhere
        self._fail_on = self._rules(rules(config))
        self._folder = config.rootpath / str(config.getini("pyfunc_debug_folder"))

    @staticmethod
    def _rules(text: str) -> tuple[str, ...]:
        try:
            return wanted_rules(text)
        except BadOptionError as error:
            raise pytest.UsageError(f"--pyfunc-fail-on: {error}") from None

    def recorded(self, item: pytest.Item) -> Recorded | None:
        """The recording of a test, for its fixture."""
        watch = item.stash.get(_WATCH, None)
        if watch is None:
            return None
        if watch.recording is None:
            pytest.fail(f"this test is not recorded: {watch.problem}", pytrace=False)
        return Recorded(watch.recording)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """The recording begins before the first fixture."""
        if not self._everywhere and not asks(item):
            return (yield)
        marker = item.get_closest_marker("pyfunc_debug")
        options = dict(marker.kwargs) if marker is not None else {}
        fail_on = (*self._fail_on, *self._rules(options.pop("fail_on", "")))
        self._make_folder()
        watch = item.stash[_WATCH] = _Watch(self._folder / _file_name(item.nodeid), fail_on, options)
        try:
            return (yield)
        except BaseException as error:
            watch.end([error])
            raise

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """It ends with the test itself; findings that were asked for fail it."""
        watch = item.stash.get(_WATCH, None)
        if watch is None:
            return (yield)
        try:
            result = yield
        except BaseException as error:
            watch.end([error])
            raise
        # pytest's unittest plugin keeps exceptions for its report instead of raising them (_pytest/unittest.py).
        errors = [one.value for one in getattr(item, "_excinfo", None) or ()]
        watch.end(errors)
        if watch.fail_on and watch.recording is not None and not errors:
            text = found_by(watch.recording, watch.fail_on)
            if text:
                pytest.fail(text, pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """What happened goes into the report of a test that failed; the file of any other is deleted."""
        report = yield
        watch = item.stash.get(_WATCH, None)
        if watch is None:
            return report
        if report.failed and not watch.kept:
            watch.kept = watch.recording is not None
            self._tell(report, watch)
        if call.when == "teardown":
            del item.stash[_WATCH]
            watch.finish()
        return report

    def _tell(self, report: pytest.TestReport, watch: _Watch) -> None:
        if watch.recording is None:
            text = f"not recorded: {watch.problem}"
        else:
            shown = os.path.relpath(watch.recording.path, self._config.invocation_params.dir)
            try:
                text = report_text(watch.recording, watch.call, shown, watch.gave_way)
            except Exception as trouble:  # never in the way of the test's own report
                text = f"recording: {shown}\nit could not be read: {type(trouble).__name__}: {trouble}"
            text += f"\n{watch.problem}" if watch.problem else ""
        add = getattr(report.longrepr, "addsection", None)  # shown with --show-capture=no, too, and by JUnit's XML
        if add is not None:
            add("pyfunc_debug", text)
        else:
            report.sections.append(("pyfunc_debug", text))

    def _make_folder(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            with open(self._folder / ".gitignore", "x", encoding="utf-8") as file:
                file.write("*\n")
        except FileExistsError:
            pass


def _file_name(nodeid: str) -> str:
    """A file name without what a shell takes for its own: `tests.test_a.TestB.test_c.pfrec`."""
    name = re.sub(r"[^\w.-]+", "-", re.sub(r"\.py(?=::)|/|::", lambda one: "" if one[0] == ".py" else ".", nodeid))
    if "[" in nodeid or len(name) > _LONGEST:  # parameters may differ by such signs only
        name = f"{name[:_LONGEST].strip('-')}-{zlib.crc32(nodeid.encode()):08x}"
    return f"{name}.pfrec"
