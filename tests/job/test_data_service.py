"""The tf.data service: a dispatcher and two workers, in processes of their own and in one process."""

from __future__ import annotations

import pytest

import pyfunc_debug as pfd
from tests.job import clusters

pytestmark = pytest.mark.slow
PROGRAM = """
    import signal, threading

    def dispatch(told):
        import tensorflow as tf

        server = tf.data.experimental.service.DispatchServer()
        told.send(server.target)
        signal.pause()

    def prepare(dispatcher, told):
        import tensorflow as tf

        server = worker(tf, dispatcher)
        told.send("ready")
        signal.pause()

    def worker(tf, dispatcher):
        address = dispatcher.partition("://")[2]
        return tf.data.experimental.service.WorkerServer(
            tf.data.experimental.service.WorkerConfig(dispatcher_address=address)
        )

    def train(dispatcher):
        import tensorflow as tf

        def decode(x):
            return x * 2

        def elements(dispatcher, before, after):
            data = tf.data.Dataset.range(6)
            data = data.map(decoded) if before else data
            data = data.apply(tf.data.experimental.service.distribute("parallel_epochs", dispatcher))
            return sorted(int(one) for one in (data.map(decoded) if after else data))

        def decoded(x):
            return tf.numpy_function(decode, [x], tf.int64)

        print("behind the service", elements(dispatcher, False, True))
        try:
            elements(dispatcher, True, False)
        except tf.errors.OpError as error:
            print("in another process", type(error).__name__)
        here = tf.data.experimental.service.DispatchServer()
        both = [worker(tf, here.target) for _ in range(2)]
        print("in one process", elements(here.target, True, False))

    if __name__ == "__main__":
        ours, theirs = multiprocessing.Pipe()
        servers = [started("dispatcher", dispatch, theirs)]
        dispatcher = ours.recv()
        for number in range(2):
            servers.append(started(f"data-{number}", prepare, dispatcher, theirs))
            ours.recv()
        trainer = started("trainer", train, dispatcher)
        trainer.join()
        for one in servers[:-1]:
            one.terminate()
        servers[-1].kill()
        for one in servers:
            one.join()
        print([trainer.exitcode, *(one.exitcode for one in servers)])
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return clusters.run(tmp_path_factory.mktemp("service"), PROGRAM)


def test_elements_are_those_without_us_and_each_process_has_its_file(job):
    assert job.plain == job.recorded == [
        "[0, -15, -15, -9]",
        "behind the service [0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10]",
        "in another process InvalidArgumentError",
        "in one process [0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10]",
    ]  # fmt: skip
    found = {one.name: (one.state, one.errors == one.calls) for one in pfd.open(str(job.folder)).ledger().processes}
    assert found == {
        "main": ("complete", True), "dispatcher": ("SIGTERM", True), "data-0": ("SIGTERM", True),
        "data-1": ("unfinished", True), "trainer": ("complete", False),
    }  # fmt: skip


def test_calls_are_in_the_process_that_made_the_function_and_the_doctor_says_why_the_others_failed(job):
    rows = {row.body: row for row in pfd.open(str(job.folder)).ledger().rows}
    decode = rows["train.decode"]
    assert (decode.calls, decode.errors, len(decode.by)) == (24, 0, 1)
    (finding,) = [one for one in pfd.open(str(job.folder)).findings() if one.rule == "distribution"]
    assert finding.processes == ("trainer",)
    assert "a worker in another process has no function of its name" in finding.message


def test_of_a_server_that_was_ended_it_is_not_said_that_it_had_no_tensorflow(job):
    assert "empty-recording" not in [one.rule for path in job.folder.glob("*-dispatcher.pfrec")
                                     for one in pfd.open(path).findings()]  # fmt: skip
