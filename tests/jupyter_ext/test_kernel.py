"""A real kernel: cells give the same outputs with the magic as without, and panels are answered while a cell runs."""

# ruff: noqa: E501 - messages read best on one line
from __future__ import annotations

import json
import os
import re
import time
import uuid

import nbformat
import pytest
from nbclient import NotebookClient

from tests.jupyter_ext.lab import ROOT
from tests.limits import HANG_S
from tests.stops.kernels import manager

SETUP = f"""
import asyncio, os, sys
sys.path.insert(0, {str(ROOT)!r})
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
%load_ext pyfunc_debug
import tensorflow as tf
def double(x):
    return x * 2
@tf.function
def step(x):
    return tf.numpy_function(double, [x], tf.float32)
"""

CELLS = {
    "value": "x = step(tf.ones([2])); float(x[0])",
    "no value": "x = step(tf.ones([2]))",
    "semicolon": "3;",
    "none": "None",
    "error": "y = 1\n1/0",
    "error in a body": "def f():\n    raise KeyError('k')\nf()",
    "syntax error": "x = = 1",
    "await": "await asyncio.sleep(0)\n'awaited'",
    "async for": "async def g():\n    yield 1\nasync for i in g():\n    print(i)",
    "nested line magic": "%time 1 + 1;\na = %pwd\nisinstance(a, str)",
    "time inside": "%%time\n7",
    "capture inside": "%%capture out\nprint('x')\n8",
    "interrupt": "raise KeyboardInterrupt",
    "exit code": "try:\n    sys.exit(3)\nexcept SystemExit as e:\n    print('exit', e.code)",
    "display handle": "from IPython.display import display\nh = display('a', display_id='here')\nh.update('b')",
    "html": "from IPython.display import HTML\nHTML('<b>{x}</b>')",
    "generator": "g = (i for i in range(3))\nlist(g)",
    "yield": "def g():\n    yield from range(2)\nfor i in g(): print(i)",
    "unicode": "π = 'żółć 🎈'\nprint(π)\nπ",
    "braces and dollars": "d = {'a': '$HOME'}\nprint('{x} $x {d}')\nd",
    "shell": "!echo $((1+1))",
    "output history": "Out is not None",
    "multi line string": "s = '''%%pyfunc_trace\n  two'''\ns",
    "comment first": "# a comment\n5",
    "decorator last": "@staticmethod\ndef f(): pass",
    "stderr": "print('e', file=sys.stderr)",
}


def execute(cells: list[str]) -> list[list[dict]]:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, allow_errors=True, timeout=int(HANG_S), km=manager()).execute(cleanup_kc=True)
    return [[dict(output) for output in cell.outputs] for cell in notebook.cells]


def essence(output: dict) -> tuple:
    """What a reader sees of an output: neither its number, nor an address, nor a time."""
    data = output.get("data", {})
    text = output.get("text") or json.dumps({kind: data[kind] for kind in sorted(data)}, default=str)
    text = re.sub(r"0x[0-9a-f]+|[\d.]+(e\+\d+)? (ns|μs|µs|us|ms|s)\b|In\[\d+\]|line \d+", "#", text)
    trace = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in output.get("traceback", [])]
    frames = [line for block in trace for line in block.splitlines() if line.lstrip().startswith("---->")]
    frames = [re.sub(r"---->\s*\d+", "---->", line) for line in frames]
    return (output["output_type"], output.get("name"), text, output.get("ename"), output.get("evalue"), tuple(frames))


def joined(outputs: list[dict]) -> list[dict]:
    """Text of one stream that the kernel sent in pieces, as it does on a busy machine, is one output."""
    found: list[dict] = []
    for output in outputs:
        if found and output["output_type"] == "stream" and output["name"] == found[-1].get("name"):
            found[-1] = {**found[-1], "text": found[-1]["text"] + output["text"]}
        else:
            found.append(output)
    return found


@pytest.fixture(scope="module")
def outputs():
    plain = list(CELLS.values())
    traced = [f"%%pyfunc_trace --no-panel\n{cell}" for cell in plain]
    around = ["%%time\n%%pyfunc_trace --no-panel\n6 * 7"]
    found = execute([SETUP, *plain, *traced, *around, "_pyfunc"])
    return found[1 : len(plain) + 1], found[len(plain) + 1 : -2], found[-2]


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_gives_the_same_outputs_with_the_magic(outputs, name):
    place = list(CELLS).index(name)
    plain, traced = outputs[0][place], outputs[1][place]
    # The recording's own output comes last, after everything of the cell's. A cell that does not compile has none.
    ours = [output for output in traced if "pfd-static" in output.get("data", {}).get("text/html", "")]
    assert len(ours) == (0 if name == "syntax error" else 1)
    assert not ours or traced[-1] is ours[0]
    rest = [essence(output) for output in joined(traced) if output not in ours]
    if name == "syntax error":  # line numbers and carets are text here
        assert [output[3] for output in rest] == ["SyntaxError"]
        return
    assert rest == [essence(output) for output in joined(plain)]


def test_time_outside_times_and_returns(outputs):
    kinds = [output["output_type"] for output in outputs[2]]
    assert kinds == ["stream", "execute_result", "display_data"]
    assert outputs[2][1]["data"]["text/plain"] == "42"


# -- the channel --------------------------------------------------------------------------------------------------------


class Page:
    """Plays a panel's page: opens its comm as a front end does and asks over the control channel."""

    def __init__(self, client):
        self.client = client
        self.comm = None
        self.panel_id = None
        self.messages: list[dict] = []

    def pump(self, until, timeout=HANG_S):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            try:
                message = self.client.get_iopub_msg(timeout=0.5)
            except Exception:  # queue.Empty
                continue
            content = message["content"]
            if message["msg_type"] == "comm_open":
                state = content["data"].get("state", {})
                if "panel_id" in state:
                    self.comm, self.panel_id = content["comm_id"], state["panel_id"]
            if message["msg_type"] == "comm_msg" and content.get("comm_id") == self.comm:
                data = content["data"]
                if data.get("method") == "custom":
                    self.messages.append({**data["content"], "buffers": message["buffers"]})
            if until(message):
                return message
        raise AssertionError("the kernel did not send what was waited for")

    def ask(self, *queries, channel="control"):
        number = uuid.uuid4().hex
        content = {
            "type": "request",
            "id": number,
            "widget": self.panel_id,
            "queries": [{"method": m, "params": p} for m, p in queries],
        }
        session = self.client.session
        if channel == "control":
            self.client.control_channel.send(session.msg("pyfunc_debug_request", content))
        else:
            data = {"comm_id": self.comm, "data": {"method": "custom", "content": content}}
            self.client.shell_channel.send(session.msg("comm_msg", data))

        def answered(_):
            return any(r["id"] == number for m in self.messages for r in m.get("replies", ()))

        self.pump(answered)
        return next(r["answers"] for m in self.messages for r in m.get("replies", ()) if r["id"] == number)


@pytest.fixture(scope="module")
def client():
    kernel = manager()
    kernel.start_kernel(env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"})
    client = kernel.client()
    client.start_channels()
    client.wait_for_ready(timeout=HANG_S)
    try:
        client.execute_interactive(SETUP, timeout=HANG_S, output_hook=lambda message: None)
        yield client
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)


def idle(message_id):
    return lambda m: (
        m["msg_type"] == "status"
        and m["content"]["execution_state"] == "idle"
        and m["parent_header"].get("msg_id") == message_id
    )


def test_a_panel_is_answered_while_its_cell_runs(client, tmp_path):
    page = Page(client)
    go = tmp_path / "go"
    code = (
        "%%pyfunc_trace\nimport pathlib, time\n"
        f"for i in range(1500):\n    step(tf.ones([2]))\nwhile not pathlib.Path({str(go)!r}).exists():\n    step(tf.ones([2])); time.sleep(.01)"
    )
    running = client.execute(code)
    page.pump(lambda _: page.comm is not None)
    try:
        page.pump(lambda _: any(row["calls"] for row in page.ask(("ledger", {}))[0]["result"]["rows"]))
        answers = page.ask(
            ("overview", {}), ("ledger", {}), ("timeline", {"start_ns": 0, "end_ns": 1e10}), ("nonsense", {})
        )
        assert answers[0]["result"]["state"] == "recording"
        assert answers[1]["result"]["rows"][0]["name"] == "step"
        assert "id" in answers[2]["arrays"]
        assert "nonsense" in answers[3]["error"]
        page.pump(lambda _: any(m["type"] == "revision" for m in page.messages))
    finally:
        go.write_text("")
    page.pump(idle(running))
    assert page.ask(("overview", {}))[0]["result"]["state"] == "complete"
    assert page.ask(("call", {"id": 1}), channel="comm")[0]["result"]["name"] == "double", "and over the comm when idle"


def test_an_unknown_panel_is_refused(client):
    client.execute_interactive("%%pyfunc_trace\nstep(tf.ones([2]))", timeout=HANG_S, output_hook=lambda message: None)
    content = {"type": "request", "id": "1", "widget": "none of ours", "queries": []}
    message = client.session.msg("pyfunc_debug_request", content)
    client.control_channel.send(message)
    while True:
        reply = client.get_control_msg(timeout=HANG_S)
        if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
            break
    assert reply["content"]["status"] == "unknown"


def test_unloading_takes_the_handler_and_the_thread_away(client):
    found = {}

    def hook(message):
        if message["msg_type"] == "stream":
            found["text"] = found.get("text", "") + message["content"]["text"]

    code = (
        "%unload_ext pyfunc_debug\nimport threading\n"
        "print('pyfunc_debug_request' in get_ipython().kernel.control_handlers,"
        " [t.name for t in threading.enumerate() if 'pyfunc' in t.name])\n%load_ext pyfunc_debug"
    )
    client.execute_interactive(code, timeout=HANG_S, output_hook=hook)
    assert found["text"].strip() == "False []"
