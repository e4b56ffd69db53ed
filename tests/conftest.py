"""What holds for every test: TensorFlow is as it was before, no import hook is left, nothing records."""

from __future__ import annotations

import compileall
import gc
import os
import random
import shlex
import signal
import sys
import threading
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # quiet, and the same numbers in every process
if len(os.sched_getaffinity(0)) == 1:  # with one thread each stop would hold all graphs, and say so
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", "2")

import pytest

from tests import forked, seeds

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # started in the background by a shell: programs of tests inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
# jsonschema would build 38 parsers for addresses in any alphabet, 1 s of CPU in each process, where it can.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

SLOW = [
    "doctor/test_failures.py", "jupyter_ext/test_from_call.py", "jupyter_ext/test_keys.py",
    "jupyter_ext/test_lab_stops.py", "jupyter_ext/test_lab.py", "jupyter_ext/test_vscode.py",
    "jupyter_ext/test_report_page.py", "notebooks/test_lessons.py", "doctor/test_clean.py", "corpus/test_corpus.py",
    "doctor/test_finite_slopes.py", "interception/gradients/test_gradients.py", "jupyter_ext/test_accessibility.py",
    "stops/test_terminal.py",
    "notebooks/test_lab.py", "test_forked.py", "job/test_record_processes.py", "cli/test_record.py",
    "pfrec/test_files.py", "cli/test_aftermath.py", "doctor/test_ended_children.py", "doctor/test_endless_epochs.py",
    "interception/test_builds.py", "interception/test_no_traces.py",
    "report/test_perfetto_page.py", "stops/test_kernel_debugger.py", "stops/test_hooks.py", "pfrec/test_processes.py",
    "doctor/test_memory.py", "interception/test_saved_programs.py", "job/test_copies.py", "stops/test_debugger.py",
    "doctor/test_placement.py", "pfrec/test_last_moments.py", "interception/gradients/test_gradient_threads.py",
    "interception/test_older.py", "interception/lines/test_graph_lines.py", "job/test_ray.py",
    "report/test_processes.py", "report/test_html.py", "jupyter_ext/test_kernel.py", "faults/test_damaged_files.py",
    "stops/test_notebook.py", "interception/test_counted.py", "api/test_graduate.py",
    "interception/test_random_programs.py", "stops/test_cells.py", "truth/test_gil_parts.py", "faults/test_fuzz.py",
    "test_import.py", "stops/test_surfaces.py", "interception/test_restored.py", "cli/test_lessons.py",
    "stops/test_turns.py", "gil/test_gil_native.py", "interception/lines/test_lines_beside_tools.py",
    "pytest_plugin/test_plugin.py", "job/test_multi_worker.py", "interception/test_asynchronous.py",
    "truth/test_gutter.py", "stops/test_coverage.py", "report/test_answers.py", "job/test_parameter_server.py",
    "interception/test_tracebacks.py", "report/test_pytest_file.py", "job/test_data_service.py", "truth/test_diff.py",
    "cli/test_demo.py", "truth/test_compare.py", "doctor/test_eager_sessions.py", "doctor/test_own_names.py",
    "doctor/test_lost_functions.py", "doctor/test_rebuilt_generators.py", "doctor/test_endless_traces.py",
    "interception/test_end_of_data.py",
]  # fmt: skip
"""Test files that start programs, kernels or browsers, or generate many, the longest first (`benchmarks/suite_cpu.py`
says what each takes): they begin first, so that all processes end together, and carry the marker `slow`."""

LONG = [
    "doctor/test_programs.py", "doctor/test_matrix.py",
    "recorder/test_recorder.py", "doctor/test_needless_python.py", "jupyter_ext/test_magics.py",
    "interception/lines/test_lines.py", "interception/graphs/test_retraces.py", "stops/test_dialogue.py",
    "api/test_record.py", "doctor/test_tried_ops.py", "interception/test_names.py", "job/test_job_query.py",
    "doctor/test_comments.py", "doctor/test_hang.py",
    "doctor/test_indexed_generators.py", "api/test_compare.py",
    "faults/test_rejected.py", "doctor/test_forked.py", "stops/test_elements.py", "cli/test_defaults.py",
    "interception/gradients/test_gradient_records.py",
]  # fmt: skip
"""Of the others those that take longest, which begin before the rest."""

FIRST = [
    "doctor/test_failures.py", "doctor/test_programs.py", "jupyter_ext/test_from_call.py", "jupyter_ext/test_keys.py",
]  # fmt: skip
"""The longest of all, which begin before the others: one of them at the end would keep the others waiting."""

IN_PARTS = tuple(FIRST[:2])
"""They take most of the CPU of all: in one process each would outlast the others, where it begins late above all."""

PACKAGES = ("pyfunc_debug", "jupyter_ext")
MOST_PROCESSES = 6
"""The longest file takes a fifth of the time of all on four."""
PROCESS_BYTES = 2_500_000_000
"""One of them with its browser, kernels and programs."""
TESTS = Path(__file__).parent
ROOT = TESTS.parent
SLOW_FILES = {TESTS / name for name in SLOW}
_originals: dict[tuple[str, str], Any] = {}


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """The processes of the whole suite have one process with TensorFlow between them."""
    node.workerinput["forked"] = forked.shared()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--programs", choices=["some", "more", "all"],
        help="of the doctor's programs, and of what repeats: a share (with nothing named to run), the rest, or all",
    )  # fmt: skip
    parser.addoption(
        "--part", default="1/1", metavar="N/M", help="of `--programs more`: the Nth of M parts of about the same size",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Where Python is told to write no bytecode, each program of a test would compile us anew: 0.4 s of CPU."""
    _keep_as_written(config)
    if config.option.programs is None:  # the processes of a suite are given what is chosen here
        config.option.programs = "some" if config.args_source is pytest.Config.ArgsSource.TESTPATHS else "all"
    if with_tensorflow := getattr(config, "workerinput", {}).get("forked"):
        forked.join(*with_tensorflow)
    if hasattr(config, "workerinput"):
        return
    if sys.dont_write_bytecode:
        for package in PACKAGES:
            compileall.compile_dir(ROOT / package, quiet=2)
    if {*config.option.tx} == {"popen"}:  # one import of TensorFlow for all processes, 3 s of CPU each
        config.option.tx = [f"popen//python={shlex.join(forked.python())}"] * len(config.option.tx)


def _keep_as_written(config: pytest.Config) -> None:
    """pytest rewrites the asserts of a plugin's whole distribution, no test among them: 2 s of CPU a process."""
    hook = config.pluginmanager.rewrite_hook
    if hasattr(hook, "_must_rewrite"):  # with --assert=plain nothing is rewritten
        hook._must_rewrite -= {name for name in hook._must_rewrite if name.partition(".")[0] in PACKAGES}
        hook._marked_for_rewrite_cache.clear()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Searches for garbage took a quarter of the CPU of tests that trace functions: each walked through all modules of
    TensorFlow, again and again. What is imported by now stays, and a search comes after more new objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(20_000, 10, 10)


@pytest.fixture(autouse=True)
def _nobody_types() -> Iterator[None]:
    """A shell of IPython leaves sys.ps1 behind, by which we know that a person types and may ask for what failed."""
    yield
    for name in ("ps1", "ps2", "ps3"):
        vars(sys).pop(name, None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """The whole suite runs on several processes, what is named on the command line in this one (`-n` says otherwise).

    It waits for pages, kernels and programs nearly half of its time: two for each core, as the memory allows. The tests
    of the quick line wait for nothing.
    """
    cores = len(os.sched_getaffinity(0))
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS and cores > 1:
        available = next(line for line in Path("/proc/meminfo").read_text().splitlines() if "MemAvailable" in line)
        room = int(available.split()[1]) * 1024 // PROCESS_BYTES
        return max(2, min(cores if _quick(config) else 2 * cores, MOST_PROCESSES, room))
    config.option.dist = "no"
    return 0


def _quick(config: pytest.Config) -> bool:
    return bool(config.option.markexpr == "not slow")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Files go to processes whole, but for the longest: programs go by the file, or the rule, that they stand for."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            part = nodeid.rpartition("[")[2].partition("-")[0] if file.endswith(IN_PARTS) and "[" in nodeid else ""
            return f"{file} {part}".rstrip()

    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick line does not read the files that it would leave out: what they import takes a second or two."""
    return True if _quick(config) and collection_path in SLOW_FILES else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files first, and marked. With PFD_TESTS_SEED: files in random order, and the tests in each."""
    places = {TESTS / name: place for place, name in enumerate(dict.fromkeys([*FIRST, *SLOW, *LONG]))}
    seed = os.environ.get("PFD_TESTS_SEED")
    if seed is None:
        items.sort(key=lambda item: places.get(item.path, len(places)))
    else:
        order = random.Random(int(seed))
        items.sort(key=lambda item: item.nodeid)  # all processes must agree
        order.shuffle(items)
        files = {path: place for place, path in enumerate(dict.fromkeys(item.path for item in items))}
        items.sort(key=lambda item: files[item.path])
    for item in items:
        if item.path in SLOW_FILES:
            item.add_marker(pytest.mark.slow)
    _leave_out(config, items)


def _leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is not asked for of the doctor's programs, and of what repeats in another front end, theme or size."""
    wanted = config.option.programs
    if wanted == "all":
        return
    kept = {
        more: [item for item in items if (item.get_closest_marker("more") is not None) is more]
        for more in (False, True)
    }
    chosen = kept[wanted == "more"]
    if wanted == "more":
        part, parts = map(int, config.option.part.split("/"))
        chosen = [item for item in chosen if zlib.crc32(item.nodeid.encode()) % parts == part - 1]
    taken = {*chosen}
    config.hook.pytest_deselected(items=[item for item in items if item not in taken])
    items[:] = chosen


def pytest_report_header(config: pytest.Config) -> str:
    return {
        "some": "a share of the doctor's programs, and nothing that repeats; --programs all: all",
        "more": f"part {config.option.part} of what the whole suite leaves out: most of the doctor's programs",
        "all": "all that is asked for",
    }[config.option.programs]


def _patched_attributes() -> list[tuple[Any, str]]:
    """Owner and name of everything that interception replaces, asked of interception itself."""
    from pyfunc_debug.interception import Interception
    from pyfunc_debug.interception.gradients.hub import hub

    class Deaf:
        def __getattr__(self, name: str) -> Any:
            return lambda *args, **kwargs: None

    patches = [*Interception(Deaf())._wanted(), *hub()._wanted()]  # type: ignore[arg-type]
    return [(patch.owner, patch.name) for patch in patches]


def _named(owner: Any) -> Any:
    return owner if isinstance(owner, dict) else vars(owner)  # TensorFlow's registry of gradients is a dict


def _remember() -> None:
    """Notes the original objects: before anything was recorded in this process."""
    for owner, name in _patched_attributes():
        holder = f"{getattr(owner, '__module__', '')}.{getattr(owner, '__name__', 'registry')}"
        _originals[holder, name] = (owner, _named(owner)[name])


@pytest.fixture(autouse=True)
def tensorflow_is_left_as_it_was():
    """Every patched attribute is the original object again after each test, by identity."""
    from pyfunc_debug.api.live import current

    if "tensorflow" in sys.modules and not _originals:
        assert current() is None
        _remember()
    finders = list(sys.meta_path)
    seeds.begin()
    yield
    live = current()
    if live is not None:
        live.stop()
    assert live is None, "the test left a recording on"
    looking = [one for one in threading.enumerate() if one.name in ("pyfunc_debug hang", "pyfunc_debug lines")]
    for thread in looking:  # stop() waits 5 s for a look that is under way; a machine may stand still for longer
        thread.join(60.0)
    left = [one.name for one in looking if one.is_alive()]
    assert not left, "the test left a thread that looks at calls"
    ours = [finder for finder in sys.meta_path if type(finder).__module__.startswith("pyfunc_debug")]
    assert not ours, f"the test left import hooks: {ours}"
    assert [finder for finder in finders if finder not in sys.meta_path] == []
    if "tensorflow" in sys.modules and not _originals:
        _remember()
    for (owner_name, name), (owner, original) in _originals.items():
        assert _named(owner)[name] is original, f"{owner_name}.{name} is still replaced"
        module = getattr(_named(owner)[name], "__module__", "tensorflow")
        assert not str(module).startswith("pyfunc_debug"), f"{owner_name}.{name} is ours"


@pytest.fixture(scope="module", autouse=True)
def browser_ends_with_its_module():
    """The tests of a module share one browser."""
    yield
    if "tests.jupyter_ext.lab" in sys.modules:
        sys.modules["tests.jupyter_ext.lab"].close_browser()


@pytest.fixture(scope="module", autouse=True)
def garbage_of_other_modules_is_not_searched() -> Iterator[None]:
    """What the tests of a module leave alive, much in TensorFlow's caches, no later search walks through: after 76
    programs of another file, tests that trace graphs took three times their CPU."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def tf() -> Any:
    """TensorFlow, imported once."""
    import tensorflow

    return tensorflow
