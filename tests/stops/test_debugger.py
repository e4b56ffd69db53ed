"""A real DAP client over a real debugpy adapter: the IDE's own line breakpoints, and prompt="debugger"."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap

import pytest

from tests import forked
from tests.limits import HANG_S

PROGRAM = textwrap.dedent(
    """
    import os
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import sys
    import tensorflow as tf
    import pyfunc_debug as pfd
    def body(x):
        y = x * 2
        if sys.argv[1] == "breakpoint":
            breakpoint()
        z = y + 1
        return z
    f = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    if sys.argv[1] == "debugger":
        f(tf.constant(0.0))  # traced before there is a breakpoint
    if sys.argv[1] != "debugger":
        with pfd.record(gil=False):
            result = f(tf.constant(20.0))
    else:
        b = pfd.break_on("body", prompt="debugger")
        result = f(tf.constant(20.0))
        b.remove()
    print("result", float(result), flush=True)
    """
)
TOLD = "DEBUGPY_ADAPTER_ENDPOINTS"
LINE = PROGRAM.splitlines().index("    z = y + 1") + 1


class Client:
    """The Debug Adapter Protocol over a socket: requests, their responses, and events."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=HANG_S)
        self.stream = self.socket.makefile("rb")
        self.seq = 0
        self.events = []
        self.responses = {}

    def send(self, command, **arguments):
        self.seq += 1
        body = json.dumps({"seq": self.seq, "type": "request", "command": command, "arguments": arguments}).encode()
        self.socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return self.seq

    def read(self):
        length = 0
        while True:
            line = self.stream.readline()
            assert line, "the adapter hung up"
            if line == b"\r\n":
                break
            length = int(line.split(b":")[1])
        message = json.loads(self.stream.read(length))
        if message["type"] == "event":
            self.events.append(message)
        elif message["type"] == "response":
            self.responses[message["request_seq"]] = message

    def response(self, seq):
        while seq not in self.responses:
            self.read()
        message = self.responses.pop(seq)
        assert message["success"], message
        return message.get("body") or {}

    def ask(self, command, **arguments):
        return self.response(self.send(command, **arguments))

    def event(self, name):
        while True:
            for one in self.events:
                if one["event"] == name:
                    self.events.remove(one)
                    return one.get("body", {})
            self.read()


@pytest.mark.parametrize("mode", ["lines", "debugger", "breakpoint"])
def test_an_attached_ide_stops_in_bodies(tmp_path, mode):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    told = tmp_path / "endpoints.json"
    printed, output = os.pipe()
    with open(os.devnull, "r+") as nothing, open(output, "w") as theirs:
        process = forked.Program(
            ["-m", "debugpy", "--listen", "127.0.0.1:0", "--wait-for-client", str(program), mode],
            stdin=nothing.fileno(), stdout=theirs.fileno(), stderr=nothing.fileno(),
            env={**os.environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1", TOLD: str(told)},
        )  # fmt: skip
    stdout = os.fdopen(printed)
    try:
        client = _connect(told, process)
        client.ask("initialize", adapterID="test", clientID="test", linesStartAt1=True, pathFormat="path")
        attach = client.send("attach", justMyCode=True)
        client.event("initialized")
        if mode == "lines":
            client.ask("setBreakpoints", source={"path": str(program)}, breakpoints=[{"line": LINE}])
        client.ask("configurationDone")
        client.response(attach)
        stopped = client.event("stopped")
        frames = client.ask("stackTrace", threadId=stopped["threadId"])["stackFrames"]
        assert frames[0]["name"] == "body"
        scopes = client.ask("scopes", frameId=frames[0]["id"])["scopes"]
        found = client.ask("variables", variablesReference=scopes[0]["variablesReference"])["variables"]
        names = {one["name"]: one["value"] for one in found}
        assert "numpy=20.0" in names["x"]
        assert ("y" in names) is (mode != "debugger")
        client.ask("continue", threadId=stopped["threadId"])
        assert stdout.readline() == "result 41.0\n"
        client.event("terminated")
        client.send("disconnect")
        client.socket.close()
        assert process.wait(HANG_S) == 0
    finally:
        process.kill()
        process.wait()
        stdout.close()


def _connect(told, process):
    """A client of the adapter, which listens at a free port of its choice and writes that into a file."""
    for _ in range(int(HANG_S / 0.1)):
        try:
            return Client(json.loads(told.read_text())["client"]["port"])
        except (OSError, ValueError):  # not there, or not whole yet
            assert process.poll() is None
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
    raise AssertionError("the adapter does not listen")


PIPELINE = textwrap.dedent(
    """
    import os
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    def double(x):
        return x * 2
    def body(x):
        y = double(x)
        if x == 7:
            raise ValueError("seven")
        return y
    for part in ([0, 1, 2, 3, 4], [7]):
        data = tf.data.Dataset.from_tensor_slices(part)
        try:
            for value in data.map(lambda n: tf.py_function(body, [n], tf.int32), num_parallel_calls=2):
                print(f"value {int(value)}\\n", end="", flush=True)  # in one piece: logpoints write meanwhile
        except tf.errors.InvalidArgumentError:
            print("it failed", flush=True)
    """
)


def test_an_ide_launches_a_program_that_knows_nothing_of_us(tmp_path):
    """Conditional breakpoint, logpoint, evaluate, step into, and "user uncaught" exceptions, on tf.data's threads."""
    program = tmp_path / "pipeline.py"
    program.write_text(PIPELINE)
    line = {text.strip(): number for number, text in enumerate(PIPELINE.splitlines(), 1)}
    told = tmp_path / "endpoints.json"
    adapter = subprocess.Popen(
        [sys.executable, "-m", "debugpy.adapter", "--host", "127.0.0.1", "--port", "0"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, TOLD: str(told)},
    )  # fmt: skip
    try:
        client = _connect(told, adapter)
        client.ask("initialize", adapterID="test", clientID="test", linesStartAt1=True, pathFormat="path")
        launch = client.send(
            "launch", module="pyfunc_debug", args=["ide", str(program)], python=[sys.executable], cwd=str(tmp_path),
            console="internalConsole", justMyCode=True, subProcess=False,
        )  # fmt: skip
        client.event("initialized")
        found = client.ask("setBreakpoints", source={"path": str(program)}, breakpoints=[
            {"line": line["return x * 2"], "logMessage": "doubles {int(x)}"},
            {"line": line["y = double(x)"], "condition": "int(x) == 3"},
        ])["breakpoints"]  # fmt: skip
        assert all(one["verified"] for one in found)
        client.ask("setExceptionBreakpoints", filters=["userUnhandled"])
        client.ask("configurationDone")
        client.response(launch)

        def top():
            stopped = client.event("stopped")
            frames = client.ask("stackTrace", threadId=stopped["threadId"])["stackFrames"]
            return stopped["threadId"], stopped["reason"], frames[0]

        thread, reason, frame = top()
        assert (reason, frame["name"], frame["line"]) == ("breakpoint", "body", line["y = double(x)"])
        assert client.ask("evaluate", expression="int(x) + 100", frameId=frame["id"])["result"] == "103"
        client.ask("stepIn", threadId=thread)
        thread, reason, frame = top()
        assert (reason, frame["name"]) == ("step", "double")
        client.ask("continue", threadId=thread)
        thread, reason, frame = top()
        assert (reason, frame["name"].split()[0]) == ("exception", "body")
        client.ask("continue", threadId=thread)
        client.event("terminated")
        printed = "".join(one["body"]["output"] for one in client.events if one["event"] == "output")
        assert [f"doubles {n}" in printed for n in (0, 1, 2, 3, 4, 7)] == [True] * 6
        assert [f"value {n}" in printed for n in (0, 2, 4, 6, 8)] == [True] * 5, printed
        assert "it failed" in printed
        client.send("disconnect")
        client.socket.close()
        adapter.wait(HANG_S)
    finally:
        adapter.kill()
        adapter.wait()


def test_an_imported_debugpy_that_nobody_uses_stays_asleep():
    """Asking it whether an IDE is attached imports its server, which replaces sys.breakpointhook for good."""
    program = (
        "import sys, debugpy, tensorflow as tf, pyfunc_debug as pfd\n"
        "one = pfd.break_on('body')\none.remove()\n"
        "print(sys.breakpointhook is sys.__breakpointhook__, 'debugpy.server.api' in sys.modules)"
    )
    done = forked.run("-c", program)
    assert done.stdout == "True False\n"
