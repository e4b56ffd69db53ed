"""A real kernel with a client that answers input requests."""

from __future__ import annotations

import contextlib
import queue
import time

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from tests import forked
from tests.limits import HANG_S


def manager() -> KernelManager:
    """A manager of a kernel that has TensorFlow imported."""
    return KernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[forked.kernels()]))


class Kernel:
    """Runs cells; `run` returns what the cell printed and its error.

    Args:
      timeout_s: A watchdog for each cell.
      fresh: As `python -m ipykernel` starts it, with TensorFlow to be imported. To its debugger each module that was
        imported before is internal: it compares each function that runs with the patterns of all, 15 s of CPU in a
        kernel that begins with TensorFlow.
    """

    def __init__(self, timeout_s: float = HANG_S, fresh: bool = False) -> None:
        self.timeout_s = timeout_s
        self.manager = KernelManager(kernel_name="python3") if fresh else manager()

    def __enter__(self):
        self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=HANG_S)
        return self

    def __exit__(self, *exc):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def run(self, code, answers=(), allow_stdin=True, on_input=None, on_text=None):
        answers, on_text = list(answers), dict(on_text or {})
        prompts = []
        message = self.client.execute(code, allow_stdin=allow_stdin)
        end = time.monotonic() + self.timeout_s
        text, error, idle = "", "", False
        while not idle:
            assert time.monotonic() < end, f"the cell hangs: {text}"
            with contextlib.suppress(queue.Empty):
                request = self.client.get_stdin_msg(timeout=0.02)
                prompts.append(request["content"]["prompt"])
                if on_input is not None and not answers:
                    on_input()
                    on_input = None
                else:
                    self.client.input(answers.pop(0))
            with contextlib.suppress(queue.Empty):
                while True:
                    got = self.client.get_iopub_msg(timeout=0.02)
                    if got["parent_header"].get("msg_id") != message:
                        continue
                    kind, content = got["msg_type"], got["content"]
                    if kind == "stream":
                        text += content["text"]
                        for word in [one for one in on_text if one in text]:
                            on_text.pop(word)()
                    elif kind == "error":
                        error = f"{content['ename']}: {content['evalue']}"
                        text += "\n".join(content["traceback"])
                    elif kind == "execute_result":
                        text += content["data"]["text/plain"]
                    elif kind == "status" and content["execution_state"] == "idle":
                        idle = True
                        break
        assert not answers, f"not asked: {answers}; {text}"
        return text, error, prompts
