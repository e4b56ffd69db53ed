"""What a body failed with as Ctrl-C ended the process that it had data from is not said; what failed before is."""

from __future__ import annotations

import json

import pytest

from pyfunc_debug.api.recording import Recording
from tests.doctor.recordings import FILE, call, node, written

SECOND = 1_000_000_000
LOST = "pybind11::error_already_set: MISMATCH: ORIGINAL UnknownError REPLACED BY KeyboardInterrupt: <EMPTY MESSAGE>"


@pytest.mark.parametrize(
    ("kind", "error", "message", "start_s", "told"),
    [
        ("EOFError", "RuntimeError", LOST, 99, False),
        ("EOFError", "KeyboardInterrupt", "", 99, False),
        ("BrokenPipeError", "KeyboardInterrupt", "", 99, False),
        ("EOFError", "KeyboardInterrupt", "", 50, True),  # long before
        ("EOFError", "RuntimeError", "no data", 99, True),
        ("EOFError", None, "", 99, True),
        ("ValueError", "KeyboardInterrupt", "", 99, True),
    ],
)
def test_a_pipe_that_ended_by_ctrl_c_is_not_told(tmp_path, kind, error, message, start_s, told):
    failure = {
        "id": 1,
        "type": kind,
        "message": "",
        "traceback": "",
        "frames": json.dumps([[FILE, 2, "bad", "return r.recv()"]]),
    }
    rows = [call(1, start_ns=start_s * SECOND, end_ns=start_s * SECOND + 1, status="error", failure=1)]
    meta = {"end_ns": 100 * SECOND, "ended": {"error": error, "message": message, "body": None, "frames": []}}
    path = written(
        tmp_path / "a.pfrec", "def bad(x):\n    return r.recv()", meta, node=[node()], call=rows, failure=[failure]
    )
    found = Recording(path).findings(select=["body-raised", "doctor-trouble"])
    assert [one.rule for one in found] == ["body-raised"] * told
