"""What other tools get: the same numbers as in the recording, in their own formats."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.cli import main
from pyfunc_debug.report import packets, slices
from tests.report import recordings


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    recorded = pfd.open(recordings.wait_inside(recordings.small(folder / "train.pfrec", steps=6)))
    yield recorded
    recorded.close()


@pytest.fixture(scope="module")
def calls(recording):
    return list(recording.calls())


def test_a_row_of_calls_has_what_one_asks_for(recording, calls):
    frame = recording.to_pandas("calls")
    bodies = {node.id: node.body for node in recording.nodes()}
    assert frame.body.tolist() == [bodies[call.node] for call in calls]
    assert frame.ms.tolist() == pytest.approx([call.duration_ns / 1e6 for call in calls])
    assert frame.wait_ms.tolist() == pytest.approx([call.gil.wait_ns / 1e6 for call in calls])
    assert frame.inputs[0] == "; ".join(f"{value.path} {value.text}" for value in calls[0].inputs)
    clock = recording.meta["clock"]
    wall_ns = calls[0].start_ns - clock["monotonic_ns"] + clock["wall_ns"]
    assert frame.time[0].value == wall_ns
    assert frame.failure_type.dropna().tolist() == [call.failure.type for call in calls if call.failure]


def test_a_chrome_trace_ties_gradients_to_their_calls(recording, calls, tmp_path):
    path = recording.export(tmp_path / "train.trace.json", format="chrome")
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    bodies = [event for event in events if event.get("cat") in ("forward", "gradient") and event["ph"] == "X"]
    found = {event["args"]["call"]: event for event in bodies}
    assert {number: event["dur"] for number, event in found.items()} == {
        call.id: pytest.approx((call.end_ns - call.start_ns) / 1000) for call in calls
    }
    tied = [event for event in events if "bind_id" in event]
    by_call = {}
    for event in tied:
        by_call.setdefault(event["bind_id"], []).append((event["cat"], event["flow_in"], event["flow_out"]))
    differentiated = {call.forward for call in calls if call.forward is not None}
    started = {call.id for call in calls if call.kind == "forward" and call.run is not None}
    assert {int(one, 16) & 0xFFFF_FFFF for one in by_call} == differentiated | started
    assert sorted(by_call.values())[0] == [("graph", False, True), ("forward", True, True), ("gradient", True, False)]
    (asked, *_) = [event for event in tied if event["cat"] == "graph"]
    assert asked["args"]["node made at"] == f"train.py:{recordings.line('loss = tf.py_function')}"
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names == {thread.name for thread in recording.reader.threads()}


def test_the_parts_of_a_call_lie_in_it_one_after_the_other(recording, calls, tmp_path):
    path = recording.export(tmp_path / "train.trace.json", format="chrome")
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    inside, number = {call.id: [] for call in calls}, None
    for event in events:  # a call comes before its parts
        if event.get("cat") in ("forward", "gradient"):
            number = event["args"]["call"]
        elif event.get("cat") == "gil" and "call" not in event.get("args", ()):
            inside[number].append(event)
    for call in calls:
        mine = inside[call.id]
        parts = {"GIL held": call.gil.held_ns, "at a breakpoint": call.stopped_ns,
                 "GIL released": call.gil.released_ns, "GIL wait": call.gil.reacquire_ns}  # fmt: skip
        assert {event["name"]: event["dur"] * 1000 for event in mine} == pytest.approx(
            {k: v for k, v in parts.items() if v}
        )
        assert [event["ts"] + event["dur"] for event in mine] == pytest.approx(
            [*(event["ts"] for event in mine[1:]), call.end_ns / 1000], abs=0.003
        )
        assert all("not recorded" in event.get("args", {}).get("when", "") for event in mine) == (len(mine) > 1)


def test_a_perfetto_trace_begins_and_ends_each_slice(recording, calls, tmp_path):
    trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = trace_pb2.Trace()
    with open(recording.export(tmp_path / "train.perfetto-trace", format="perfetto"), "rb") as file:
        trace.ParseFromString(file.read())
    every = [packet for packet in trace.packet if packet.HasField("track_event")]
    others = (trace_pb2.TrackEvent.TYPE_COUNTER, trace_pb2.TrackEvent.TYPE_INSTANT)
    events = [one for one in every if one.track_event.type not in others]
    kinds = [packet.track_event.type for packet in events]
    assert kinds == [trace_pb2.TrackEvent.TYPE_SLICE_BEGIN, trace_pb2.TrackEvent.TYPE_SLICE_END] * (len(events) // 2)
    spans = {
        begin.track_event.debug_annotations[0].string_value: end.timestamp - begin.timestamp
        for begin, end in zip(events[::2], events[1::2]) if begin.track_event.categories[0] in ("forward", "gradient")
    }  # fmt: skip
    assert spans == {str(call.id): call.end_ns - call.start_ns for call in calls}


def test_counters_are_how_many_bodies_ran_and_waited_at_once(recording, calls, tmp_path):
    path = recording.export(tmp_path / "train.trace.json", format="chrome")
    with open(path, encoding="utf-8") as file:
        counts = [event for event in json.load(file)["traceEvents"] if event["ph"] == "C"]
    found = {name: [event for event in counts if event["name"] == name] for name in {one["name"] for one in counts}}
    waits = [(call.start_ns - call.gil.wait_ns, call.start_ns, 1) for call in calls if call.gil and call.gil.wait_ns]
    inside = [(call.start_ns, call.end_ns, call.gil.reacquire_ns) for call in calls if call.gil.reacquire_ns]
    stretches = {
        "bodies running": [(call.start_ns, call.end_ns, 1) for call in calls], "waiting for the GIL": waits,
        "waiting in bodies (mean)": [(begin, end, ns / (end - begin)) for begin, end, ns in inside],
    }  # fmt: skip
    assert found.keys() == stretches.keys()
    for name, events in found.items():
        for event in events:
            at = event["ts"]
            now = sum(share for begin, end, share in stretches[name] if begin / 1000 <= at < end / 1000)
            assert event["args"]["value"] == pytest.approx(now, abs=1e-6)
        assert events[-1]["args"]["value"] == 0


@pytest.mark.parametrize("kind", ["chrome", "perfetto"])
def test_a_timeline_is_the_same_however_much_is_read_and_written_at_once(recording, tmp_path, monkeypatch, kind):
    monkeypatch.setattr(slices, "_PAGE", 1)
    monkeypatch.setattr(packets, "_AT_ONCE", 1)
    monkeypatch.setattr(packets, "_KEPT", 2)
    by_one = recording.export(tmp_path / "by_one", format=kind)
    monkeypatch.undo()
    whole = recording.export(tmp_path / "whole", format=kind)
    assert Path(by_one).read_bytes() == Path(whole).read_bytes()


@pytest.mark.parametrize("kind", ["chrome", "perfetto", "parquet"])
def test_no_export_is_made_of_a_damaged_recording(recording, tmp_path, kind):
    for table, column in (("call", "thread"), ("gil", "wait_ns"), ("value", "text")):
        path = shutil.copy(recording.path, tmp_path / f"{column}.pfrec")
        with contextlib.closing(sqlite3.connect(path)) as file, file:
            file.execute(f"UPDATE {table} SET {column} = x'ff'")
        with pytest.raises(pfd.BadRecordingError, match=f"damaged: the column {column} of its table {table}"):
            pfd.open(path).export(tmp_path / "out", format=kind)


def test_parquet_is_a_folder_a_table_by_process(recording, calls, tmp_path, capsys):
    pq = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "tables"
    assert main(["export", recording.path, "--format", "parquet", "-o", str(out)]) == 0
    assert capsys.readouterr().out.endswith("tables\n")
    table = pq.read_table(out / "calls")
    assert table["process"].unique().to_pylist() == [recording.meta["pid"]]
    assert table["id"].to_pylist() == [call.id for call in calls]
    assert str(table.schema.field("time").type) == "timestamp[ns, tz=UTC]"
    assert pq.read_table(out / "values").num_rows == sum(len(call.inputs) + len(call.outputs) for call in calls)
    assert str(table.schema.field("tape").type) == "int64"  # although no call has one


def test_a_call_becomes_a_test_in_the_shell(recording, calls, tmp_path, capsys):
    whole = (call for call in calls if call.kind == "forward" and all(one.kept == "full" for one in call.inputs))
    call = next(whole)
    out = tmp_path / "test_it.py"
    assert main(["export", recording.path, "--call", str(call.id), "--format", "pytest", "-o", str(out)]) == 0
    assert f"call_{call.id}" in out.read_text()
    assert main(["export", recording.path, "--format", "pytest"]) == 2
    assert "export FILE --call 17 --format pytest" in capsys.readouterr().err
    with pytest.raises(pfd.BadOptionError, match="format='csv' is not one of parquet, chrome, perfetto"):
        recording.export(out, format="csv")
    with pytest.raises(pfd.CannotWriteError, match="cannot write"):
        recording.export(tmp_path / "missing" / "train.json", format="chrome")
