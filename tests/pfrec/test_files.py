"""The file: what can go wrong with it, and that whoever records goes on all the same."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pyfunc_debug as pfd
from pyfunc_debug.cli import main
from pyfunc_debug.pfrec import SCHEMA_VERSION, Reader
from pyfunc_debug.pfrec.packing import pack
from pyfunc_debug.recorder import Budget, Recorder
from pyfunc_debug.values import Policies
from tests import forked
from tests.limits import HANG_S
from tests.recorder.test_recorder import call, node

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A finished recording of 2,000 calls."""
    path = tmp_path_factory.mktemp("finished") / "done.pfrec"
    recorder = Recorder(str(path), Policies("full"), Budget(64_000_000), {"pid": 1})
    recorder.node_made(node("graph"))
    for index in range(2000):
        call(recorder, "graph", np.full(100, index), result=np.full(100, -index))
    recorder.close({})
    return path


@pytest.fixture
def recorded(finished, tmp_path) -> Path:
    """A copy of it, alone in its folder."""
    return Path(shutil.copy(finished, tmp_path))


def open_files() -> list[str]:
    """What this process has open."""
    folder = "/proc/self/fd"
    return [os.readlink(f"{folder}/{number}") for number in os.listdir(folder) if os.path.lexists(f"{folder}/{number}")]


def message(path) -> str:
    with pytest.raises(pfd.BadRecordingError) as caught:
        list(pfd.open(path).calls())
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("what", ["begin", "end"])
def test_a_kill_between_any_two_steps_leaves_no_file_or_a_valid_one(tmp_path, what):
    """Steps that make and remove files, in their order: see tests/pfrec/steps.py."""
    command = [sys.executable, "-m", "tests.pfrec.steps", what, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S, check=True)
    left = [set(line.split()[1:]) for line in done.stdout.splitlines()]
    ring = {"x.pfrec", "x.pfrec-ring"}
    expected = [set(), {"x.pfrec-new"}, {"x.pfrec", "x.pfrec-new"}, {"x.pfrec"}, {*ring, "x.pfrec-wal", "x.pfrec-shm"}]
    for files in expected if what == "begin" else [expected[-1], ring]:
        assert files in left, "a step that is not killed before"
    for number, files in enumerate(left):
        path = tmp_path / str(number) / "x.pfrec"
        if "x.pfrec" not in files:
            assert files <= {"x.pfrec-new"}
            beside = ": only x.pfrec-new stands there, which nothing can be read from" if files else ""
            assert message(path) == f"no such recording: {path}{beside}"
            if files == left[number - 1]:
                continue
            Recorder(str(path), Policies("none"), Budget(1_000_000), {"pid": os.getpid()}).close({"state": "complete"})
        else:
            if "x.pfrec-journal" in files:  # with the SQLite that Python finds after TensorFlow, which may be newer
                other = shutil.copytree(path.parent, tmp_path / "other")
                assert forked.run("-m", "pyfunc_debug", "pack", other / path.name).returncode == 0
                assert os.listdir(other) == [path.name]
            _, calls, missing = pack(str(path))
            assert (calls, missing) == (0, [])
        assert os.listdir(path.parent) == ["x.pfrec"], (number, files)


def test_a_finished_recording_is_one_file_in_rollback_mode(recorded):
    assert [path.name for path in recorded.parent.iterdir()] == ["done.pfrec"]
    assert recorded.read_bytes()[18:20] == b"\x01\x01", "WAL mode: it cannot be read from a read-only folder"


def test_a_finished_recording_is_one_file_although_it_was_read_while_recording(tmp_path):
    with pfd.record(tmp_path / "live.pfrec") as recording:
        assert recording.nodes() == []
    assert [path.name for path in tmp_path.iterdir()] == ["live.pfrec"]
    assert recording.reader.state() == "complete"
    recording.close()


def test_a_file_that_is_not_there_is_said_to_be(tmp_path):
    assert "no such recording" in message(tmp_path / "none.pfrec")


def test_a_folder_is_no_recording(tmp_path):
    assert "holds no recording (*.pfrec)" in message(tmp_path)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" + bytes(5000), b"SQLite format 3\x00" + bytes(5000)])
def test_a_file_of_something_else_is_named_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "other.pfrec"
    path.write_bytes(content)
    assert "other.pfrec" in message(path)
    assert path.read_bytes() == content


def test_a_pipe_and_a_name_that_is_not_utf_8_are_one_line(recorded):
    os.mkfifo(recorded.parent / "pipe.pfrec")
    assert "is not a file" in message(recorded.parent / "pipe.pfrec")
    assert "is not a recording" in refused(recorded.parent / "pipe.pfrec", overwrite=True)
    odd = f"{recorded.parent}/\udcff.pfrec"
    assert "no such recording" in message(odd)
    shutil.copy(recorded, odd)
    assert pfd.open(odd).reader.counts()["call"] == 2000
    shown = subprocess.run(
        [sys.executable, "-m", "pyfunc_debug", "show", odd + "x"], cwd=ROOT, capture_output=True, text=True
    )
    assert shown.stderr.endswith("\\udcff.pfrecx\n"), shown.stderr
    for words in ("report", "export --format chrome", "export --format perfetto"):
        made = str(recorded.parent / words.replace(" ", ""))
        assert main([*words.split(), odd, "-o", made]) == 0, words
        assert os.path.exists(made)
    with pfd.record(odd, overwrite=True):
        pass
    assert pfd.open(odd).reader.counts()["call"] == 0


def test_a_lonely_part_says_what_is_missing(recorded):
    (recorded.parent / "lost.pfrec-wal").touch()
    assert message(recorded.parent / "lost.pfrec").endswith(
        "only lost.pfrec-wal stands there, which nothing can be read from"
    )
    assert message(f"{recorded}-ring").endswith(f"is a part of a recording: give {recorded}")


def test_another_sqlite_database_is_no_recording(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE node (id)")
    assert "is not a recording of pyfunc_debug" in message(path)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.99])
def test_a_truncated_recording_is_said_to_be(recorded, share):
    content = recorded.read_bytes()
    recorded.write_bytes(content[: int(len(content) * share)])
    assert "truncated or damaged" in message(recorded) or "is damaged" in message(recorded)


def test_a_file_of_a_newer_pyfunc_debug_is_said_to_be(recorded):
    with sqlite3.connect(recorded) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    assert "newer pyfunc_debug" in message(recorded)


def test_a_file_of_version_1_is_read_and_its_values_are_not_called_equal(recorded, tmp_path):
    older = tmp_path / "older.pfrec"
    shutil.copy(recorded, older)
    with sqlite3.connect(older) as database:
        database.executescript("ALTER TABLE value DROP COLUMN digest; UPDATE value SET kept = '', blob = NULL;")
        database.execute("UPDATE value SET min = 0, max = 1, mean = 0.5, std = 0.5")  # arrays with a spread
        database.execute("PRAGMA user_version = 1")
    recording, same = pfd.open(older), pfd.open(older)
    (value,) = recording.call(7).inputs
    assert value.digest is None
    assert pfd.open(recorded).call(7).inputs[0].digest is not None
    found = recording.diff(same)
    assert dict(found.counts) == {"unknown": 2000}
    assert "equal by summary (order not compared)" in str(found)
    assert len(recording.to_pandas("values")) == 4000


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that others may enter; pytest closes its own to them again whenever another pytest starts."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def as_nobody(folder: Path, imports: str, program: str) -> subprocess.CompletedProcess[str]:
    """Runs a program that may not write into `folder`; as root nothing would be read-only."""
    os.chmod(folder.parent, 0o755)
    os.chmod(folder, 0o555)
    drop = "if os.getuid() == 0:\n    os.setgid(65534)\n    os.setuid(65534)\n"
    try:
        return subprocess.run(
            [sys.executable, "-c", f"import os\n{imports}\n{drop}{textwrap.dedent(program)}"],
            cwd=ROOT, capture_output=True, text=True,
        )  # fmt: skip
    finally:
        os.chmod(folder, 0o755)


def test_a_recording_that_never_ended_is_read_from_a_read_only_folder(recorded, outside):
    folder = outside / "archive"
    folder.mkdir()
    with sqlite3.connect(recorded) as database:
        database.execute("PRAGMA journal_mode = WAL")
        shutil.copy(recorded, folder / "copy.pfrec")  # as after a crash: WAL mode, and the log is lost
    program = f"print(Reader({str(folder / 'copy.pfrec')!r}).counts()['call'])"
    done = as_nobody(folder, "from pyfunc_debug.pfrec import Reader, checks; checks.tables()", program)
    assert done.stdout == "2000\n", done.stderr


# -- one file of all parts --------------------------------------------------------------------------------------------


def packed(*arguments) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pyfunc_debug", "pack", *arguments], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout + done.stderr


def test_a_killed_recording_is_packed_into_one_whole_file(tmp_path):
    path, copy = tmp_path / "killed.pfrec", tmp_path / "copy.pfrec"
    program = f"""
        import os, signal, numpy as np
        from pyfunc_debug.pfrec.processes import identity
        from pyfunc_debug.recorder import Budget, Recorder
        from pyfunc_debug.values import Policies
        from tests.recorder.test_recorder import call, node
        recorder = Recorder({str(path)!r}, Policies("full"), Budget(64_000_000), {{"pid": os.getpid()}})
        recorder.node_made(node("graph"))
        for index in range(300):
            call(recorder, "graph", np.full(100, index))
            if index == 200:
                recorder.flush()
        for output in ("", " -o {copy}"):
            os.system("{sys.executable} -m pyfunc_debug pack {path}" + output)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=ROOT, capture_output=True, text=True)
    assert "is recording into" in done.stderr
    assert "is one file: " in done.stdout
    assert (tmp_path / "killed.pfrec-wal").exists()
    assert (tmp_path / "killed.pfrec-ring").exists()
    assert pfd.open(copy).reader.state() == "stopped early"
    assert 201 <= pfd.open(copy).reader.counts()["call"] <= 300
    assert f"{path} is one file: 300 calls" in packed(path)
    assert sorted(os.listdir(tmp_path)) == ["copy.pfrec", "killed.pfrec"]
    assert path.read_bytes()[18:20] == b"\x01\x01"
    assert "exists: choose another name" in packed(path, "-o", copy)


# -- where it cannot be written ---------------------------------------------------------------------------------------


def refused(path, error: type[Exception] = pfd.BadOptionError, **options) -> str:
    with pytest.raises(error) as caught:
        pfd.record(path, **options).start()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_folder_of_a_recording_is_made_where_it_is_not_there(tmp_path):
    with pfd.record(tmp_path / "runs" / "today" / "a.pfrec"):
        pass
    assert os.listdir(tmp_path / "runs" / "today") == ["a.pfrec"]
    (tmp_path / "file").touch()
    assert "cannot be made" in refused(tmp_path / "file" / "a.pfrec", pfd.CannotWriteError)


def test_a_recording_in_place_of_a_folder_is_refused(tmp_path):
    assert "is a folder" in refused(tmp_path, pfd.CannotWriteError)


def test_a_recording_that_exists_is_kept_unless_it_may_be_replaced(recorded):
    before = recorded.read_bytes()
    assert "exists" in refused(recorded)
    assert recorded.read_bytes() == before
    with pfd.record(recorded, overwrite=True):
        pass
    assert pfd.open(recorded).reader.counts()["call"] == 0


def test_a_file_that_is_no_recording_is_never_replaced(tmp_path):
    path = tmp_path / "thesis.pfrec"
    path.write_text("years of work")
    assert "is not a recording" in refused(path, overwrite=True)
    assert path.read_text() == "years of work"


def test_a_read_only_folder(outside):
    folder = outside / "closed"
    folder.mkdir()
    program = f"""
        try:
            pyfunc_debug.record({str(folder / "a.pfrec")!r}).start()
        except pyfunc_debug.CannotWriteError as error:
            print(error)
    """
    done = as_nobody(folder, "import email.parser, importlib.metadata, pyfunc_debug.api.record", program)
    assert "cannot be written to: choose another path" in done.stdout, done.stderr


def test_two_recordings_at_once(tmp_path):
    with pfd.record(tmp_path / "one.pfrec"):
        with pytest.raises(pfd.RecordingBusyError, match=r"already recording into .*one\.pfrec"):
            pfd.record(tmp_path / "two.pfrec").start()
        assert not (tmp_path / "two.pfrec").exists()
    with pfd.record(tmp_path / "two.pfrec"):
        pass


def test_a_file_that_another_process_is_recording_into(tmp_path):
    path = tmp_path / "taken.pfrec"
    program = f"""
        import sys
        import pyfunc_debug
        with pyfunc_debug.record({str(path)!r}):
            print("ready", flush=True)
            sys.stdin.readline()
    """
    other = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    try:
        assert other.stdout.readline() == b"ready\n"
        assert f"process {other.pid} is recording" in refused(path, pfd.RecordingBusyError, overwrite=True)
    finally:
        other.communicate(b"\n", timeout=HANG_S)
    assert pfd.open(path).reader.state() == "complete"


@pytest.mark.parametrize("query", [
    "DELETE FROM call", "DROP TABLE call", "INSERT INTO meta VALUES ('a', '1')", "UPDATE call SET status = 'ok'",
    "PRAGMA user_version = 9", "ATTACH 'other.db' AS other", "VACUUM", "CREATE TABLE t (a)", "BEGIN IMMEDIATE",
    "SELECT load_extension('x')", "SELECT 1; DELETE FROM call", "REPLACE INTO meta VALUES ('a', '1')",
    "WITH x AS (SELECT 1) DELETE FROM call", "SELECT * FROM nothing", "nonsense", "SELECT 'a",
])  # fmt: skip
def test_a_bad_query_never_writes_and_gets_one_line(recorded, query, tmp_path):
    before = recorded.read_bytes()
    recording = pfd.open(recorded)
    with pytest.raises(pfd.BadOptionError) as caught:
        recording.sql(query)
    assert "\n" not in str(caught.value)
    recording.close()
    assert recorded.read_bytes() == before
    assert not (tmp_path / "other.db").exists()


def test_two_threads_that_ask_one_recording_do_not_wait_for_each_other(recorded):
    # A panel's thread and a cell's: on one connection each could wait for what the other has, and the kernel hung.
    reader = Reader(recorded)
    answers: list[int] = []
    other = threading.Thread(target=lambda: answers.append(reader.counts()["call"]), daemon=True)

    def ask() -> int:
        """Called in the middle of a query."""
        other.start()
        other.join(HANG_S / 10)
        return len(answers)

    with reader.lent() as connection:
        connection.create_function("ask", 0, ask)
    assert reader.rows("SELECT ask()") == [(1,)]
    assert answers == [2000]
    reader.release()
    assert not [name for name in open_files() if name.startswith(str(recorded))], "each thread's is closed"


def test_an_interrupt_ends_a_long_query_also_where_a_panel_is(recorded, monkeypatch):
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "ipykernel", sys)  # there it once did not, so that the kernel could not hang
    monkeypatch.setattr("pyfunc_debug.pfrec.reader._tick", interrupted)
    reader = Reader(recorded)
    long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9000000) SELECT * FROM n"
    with pytest.raises(KeyboardInterrupt):
        reader.rows(long)
    with pytest.raises(KeyboardInterrupt), reader.lent() as connection:
        connection.execute(long).fetchall()


def test_a_query_gives_rows_by_column(recorded):
    assert pfd.open(recorded).sql("SELECT count(*) AS n, max(id) AS last FROM call") == [{"n": 2000, "last": 2000}]


# -- a full disk ------------------------------------------------------------------------------------------------------


def test_a_disk_that_fills_up_stops_the_recording_and_not_the_program(tmp_path):
    program = f"""
        import json, resource, signal, sys
        import numpy as np
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        from pyfunc_debug.recorder import Budget, Recorder
        from pyfunc_debug.values import Policies
        from tests.recorder.test_recorder import call, node
        recorder = Recorder({str(tmp_path / "full.pfrec")!r}, Policies("full"), Budget(64_000_000), {{"pid": 1}})
        recorder.node_made(node("graph"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        for index in range(3000):
            call(recorder, "graph", np.full(100, index), result=np.full(100, -index))
            if index % 100 == 0:
                recorder.flush()
        print(json.dumps(recorder.close({{}})))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=ROOT, capture_output=True, text=True)
    result = json.loads(done.stdout.splitlines()[-1])
    assert "recording stopped" in result["stopped"], done.stderr
    reader = Reader(tmp_path / "full.pfrec")
    assert 0 < reader.counts()["call"] < 3000
    reader.close()


def test_a_disk_that_is_full_from_the_start_is_one_clear_error(tmp_path):
    program = f"""
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        import pyfunc_debug
        try:
            pyfunc_debug.record({str(tmp_path / "full.pfrec")!r}).start()
        except pyfunc_debug.CannotWriteError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=ROOT, capture_output=True, text=True)
    assert "cannot write the recording" in done.stdout, done.stderr


assert resource.RLIMIT_FSIZE  # Linux: the tests above would pass without a limit


# -- the writer -------------------------------------------------------------------------------------------------------


def test_the_same_contents_are_stored_once_and_other_shapes_are_other_contents(tmp_path):
    recorder = Recorder(str(tmp_path / "a.pfrec"), Policies("full"), Budget(64_000_000), {})
    recorder.node_made(node("graph"))
    data = np.arange(600.0).reshape(10, 10, 2, 3)
    for _ in range(5):
        call(recorder, "graph", data, result=data.reshape(10, 10, 3, 2))
    recorder.close({})
    recording = pfd.open(tmp_path / "a.pfrec")
    assert recording.sql("SELECT count(*) AS n FROM blob") == [{"n": 2}]
    for one in recording.calls():
        np.testing.assert_array_equal(one.inputs[0].array(), data)
        np.testing.assert_array_equal(one.outputs[0].array(), data.reshape(10, 10, 3, 2))


def test_a_kill_at_any_step_of_the_start_leaves_no_file_or_a_whole_one(tmp_path):
    """Forked processes that die at each of the operations that make a recording, over what the last one left."""
    program = """
        import os, sys
        from pyfunc_debug.pfrec import Reader, Writer
        from pyfunc_debug.pfrec.processes import identity

        def die(event, args):
            global left
            left -= event in ("sqlite3.connect", "os.link", "os.remove")
            if left == 0:
                os._exit(1)

        open(sys.argv[1], "w").close()
        for step in range(1, 100):
            left = step
            if not (child := os.fork()):
                sys.addaudithook(die)
                Writer(sys.argv[1], overwrite=True).start({"state": "recording", **identity(), "process": identity()})
                os._exit(0)
            code = os.waitpid(child, 0)[1]
            if os.path.exists(sys.argv[1]) and os.path.getsize(sys.argv[1]):
                assert Reader(sys.argv[1]).state() == "recording"
            if not code:
                break
        print(step)
    """
    path = tmp_path / "begun.pfrec"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), path], cwd=ROOT, capture_output=True, text=True, timeout=HANG_S
    )
    assert 5 < int(done.stdout) < 99, done.stderr
    assert Reader(path).state() == "recording"
    path.write_bytes(b"")
    assert "the empty file" in refused(path)


def test_every_column_of_the_schema_is_explained():
    """Each table has a comment before it that says what its rows are."""
    from pyfunc_debug.pfrec import schema_text

    lines = schema_text().splitlines()
    for place, text in enumerate(lines):
        if text.startswith("CREATE TABLE"):
            assert lines[place - 1].startswith("-- "), f"no comment: {text}"
