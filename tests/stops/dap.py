"""A client of debugpy's adapter, for programs that it is attached to and for those that it launches."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys

from tests import forked
from tests.limits import HANG_S

TOLD = "DEBUGPY_ADAPTER_ENDPOINTS"


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

    def begin(self, request, filters=(), lines=None, **arguments):
        """Attaches or launches; `lines`, by file, are breakpoints. What became of these."""
        self.ask("initialize", adapterID="test", clientID="test", linesStartAt1=True, pathFormat="path")
        begun = self.send(request, **arguments)
        self.event("initialized")
        found = []
        for path, breakpoints in (lines or {}).items():
            found += self.ask("setBreakpoints", source={"path": str(path)}, breakpoints=breakpoints)["breakpoints"]
        self.ask("setExceptionBreakpoints", filters=[*filters])
        self.ask("configurationDone")
        self.response(begun)
        return found

    def stop(self):
        """The next stop: its thread, why, and its frames, innermost first."""
        stopped = self.event("stopped")
        frames = self.ask("stackTrace", threadId=stopped["threadId"])["stackFrames"]
        return stopped["threadId"], stopped["reason"], frames

    def variables(self, frame):
        """The locals of a frame, as text."""
        scopes = self.ask("scopes", frameId=frame["id"])["scopes"]
        found = self.ask("variables", variablesReference=scopes[0]["variablesReference"])["variables"]
        return {one["name"]: one["value"] for one in found}

    def end(self):
        """Waits for the program's end; what it printed, if it was launched."""
        self.event("terminated")
        self.send("disconnect")
        self.socket.close()
        return "".join(one["body"]["output"] for one in self.events if one["event"] == "output")


@contextlib.contextmanager
def waiting(folder, *arguments):
    """A program that waits for its IDE: the client, and what the program prints. Its exit code is to be 0."""
    told, (printed, output) = folder / "endpoints.json", os.pipe()
    with open(os.devnull, "r+") as nothing, open(output, "w") as theirs:
        process = forked.Program(
            ["-m", "debugpy", "--listen", "127.0.0.1:0", "--wait-for-client", *map(str, arguments)],
            stdin=nothing.fileno(), stdout=theirs.fileno(), stderr=nothing.fileno(),
            env={**os.environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1", TOLD: str(told)},
        )  # fmt: skip
    stdout = os.fdopen(printed)
    try:
        yield _connect(told, process), stdout
        assert process.wait(HANG_S) == 0
    finally:
        process.kill()
        process.wait()
        stdout.close()


@contextlib.contextmanager
def adapter(folder):
    """The client of an adapter that launches what it is asked to, as an IDE's does."""
    told = folder / "endpoints.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "debugpy.adapter", "--host", "127.0.0.1", "--port", "0"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, TOLD: str(told)},
    )  # fmt: skip
    try:
        yield _connect(told, process)
        process.wait(HANG_S)
    finally:
        process.kill()
        process.wait()


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
