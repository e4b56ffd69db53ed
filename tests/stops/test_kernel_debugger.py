"""The debugger of JupyterLab and VS Code, by the messages that they send: a red dot in a cell's body stops."""

from __future__ import annotations

from tests.limits import HANG_S
from tests.stops.kernels import Kernel

SETUP = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
%load_ext pyfunc_debug
"""
CELL = """def body(x):
    y = x * 2
    return y + 1
data = tf.data.Dataset.range(4).map(lambda x: tf.numpy_function(body, [x], tf.int64), num_parallel_calls=2)
print(sorted(int(value) for value in data))
"""


OURS = """from pyfunc_debug import break_on
stop = break_on("body", prompt="debugger")
data = tf.data.Dataset.range(4).map(lambda x: tf.numpy_function(body, [x], tf.int64))
print(stop.hits, [int(value) for value in data], stop.hits)
"""


class Debugger:
    """Requests on the control channel, events on the channel that everybody hears (Jupyter's debugger protocol)."""

    def __init__(self, kernel: Kernel) -> None:
        self.client = kernel.client
        self.seq = 0

    def ask(self, command, **arguments):
        self.seq += 1
        content = {"type": "request", "seq": self.seq, "command": command, "arguments": arguments}
        message = self.client.session.msg("debug_request", content)
        self.client.control_channel.send(message)
        while True:
            reply = self.client.get_control_msg(timeout=HANG_S)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                assert reply["content"].get("success"), reply["content"]
                return reply["content"].get("body") or {}

    def heard(self, cell):
        """What is told next of this cell's run: a stop's body, a line that it printed, or None at its end.

        A kernel sends a line in pieces where it flushes its stream in between, as it does on a busy machine.
        """
        printed = ""
        while True:
            message = self.client.get_iopub_msg(timeout=HANG_S)
            kind, content = message["msg_type"], message["content"]
            if kind == "debug_event" and content["event"] == "stopped":
                return content["body"]
            if message["parent_header"].get("msg_id") == cell:
                if kind == "stream":
                    printed += content["text"]
                    if printed.endswith("\n"):
                        return printed
                assert kind != "error", content
                if kind == "status" and content["execution_state"] == "idle":
                    return None


def test_a_red_dot_in_a_cells_body_stops_after_load_ext():
    with Kernel(fresh=True) as kernel:
        text, error, _ = kernel.run(SETUP)
        assert not error, text
        debugger = Debugger(kernel)
        debugger.ask("initialize", clientID="test", adapterID="", pathFormat="path", linesStartAt1=True)
        debugger.ask("attach")
        source = debugger.ask("dumpCell", code=CELL)["sourcePath"]
        line = CELL.splitlines().index("    return y + 1") + 1
        debugger.ask("setBreakpoints", source={"path": source}, breakpoints=[{"line": line, "condition": "x == 3"}])
        debugger.ask("configurationDone")
        cell = kernel.client.execute(CELL)
        stop = debugger.heard(cell)
        assert isinstance(stop, dict), stop
        frame = debugger.ask("stackTrace", threadId=stop["threadId"])["stackFrames"][0]
        assert (frame["name"], frame["line"], frame["source"]["path"]) == ("body", line, source)
        scope = debugger.ask("scopes", frameId=frame["id"])["scopes"][0]["variablesReference"]
        values = {one["name"]: one["value"] for one in debugger.ask("variables", variablesReference=scope)["variables"]}
        assert "6" in values["y"]
        debugger.ask("continue", threadId=stop["threadId"])
        assert debugger.heard(cell) == "[1, 3, 5, 7]\n"
        assert debugger.heard(cell) is None, "the cell ended"
        debugger.ask("setBreakpoints", source={"path": source}, breakpoints=[])
        cell = kernel.client.execute(OURS)
        for x in range(4):
            stop = debugger.heard(cell)
            assert isinstance(stop, dict), (x, stop)
            frame = debugger.ask("stackTrace", threadId=stop["threadId"])["stackFrames"][0]
            assert (frame["name"], frame["line"], frame["source"]["path"]) == ("body", line - 1, source), "the first"
            debugger.ask("continue", threadId=stop["threadId"])
        assert debugger.heard(cell) == "0 [1, 3, 5, 7] 4\n", "none is lost"
        debugger.ask("disconnect")
        assert debugger.heard(cell) is None
