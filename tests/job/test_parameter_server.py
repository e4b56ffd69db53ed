"""ParameterServerStrategy with a coordinator, a server and two workers, one of which is killed."""

from __future__ import annotations

import pytest

import pyfunc_debug as pfd
from tests.job import clusters

pytestmark = pytest.mark.slow
PROGRAM = """
    import signal

    def serve():
        import tensorflow as tf

        me = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        tf.distribute.Server(me.cluster_spec(), job_name=me.task_type, task_index=me.task_id, protocol="grpc").join()

    def coordinate(victim):
        import tensorflow as tf

        strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        with strategy.scope():
            total = tf.Variable(0.0)

        def decode(x):
            return x * 2

        def elements():
            data = tf.data.Dataset.from_tensors(1.0).repeat()
            return data.map(lambda x: tf.numpy_function(decode, [x], tf.float32))

        iterator = iter(coordinator.create_per_worker_dataset(elements))

        @tf.function
        def step(iterator):
            total.assign_add(tf.ensure_shape(next(iterator), []))

        for _ in range(4):
            coordinator.schedule(step, args=(iterator,))
        coordinator.join()
        print("before", float(total.read_value()))
        os.kill(victim, signal.SIGKILL)
        add = tf.function(lambda x: total.assign(x))
        for one in range(4):
            coordinator.schedule(add, args=(tf.constant(5.0),))
        coordinator.join()
        print("after", float(total.read_value()))

    if __name__ == "__main__":
        *workers, ps, chief = addresses(4)
        cluster = {"worker": workers, "ps": [ps], "chief": [chief]}
        servers = [started(name, serve, cluster=cluster) for name in ("ps-0", "worker-0", "worker-1")]
        chief = started("chief-0", coordinate, servers[-1].pid, cluster=cluster)
        chief.join()
        for one in servers:
            one.terminate()
            one.join()
        print([chief.exitcode, *(one.exitcode for one in servers)])
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return clusters.run(tmp_path_factory.mktemp("servers"), PROGRAM)


def test_the_job_goes_on_without_the_worker_as_it_does_without_us_and_each_process_has_its_file(job):
    assert job.plain == job.recorded == ["[0, -15, -15, -9]", "after 5.0", "before 8.0"]
    found = {one.meta["role"]: one for one in pfd.open(str(job.folder))}
    assert {name: one.meta["rank"] for name, one in found.items()} == {
        "main": None, "chief-0": 0, "ps-0": 0, "worker-0": 0, "worker-1": 1,
    }  # fmt: skip
    states = {one.name: one.state for one in pfd.open(str(job.folder)).ledger().processes}
    assert states == {
        "main": "complete", "chief-0": "complete", "ps-0": "SIGTERM", "worker-0": "SIGTERM", "worker-1": "unfinished",
    }  # fmt: skip


def test_py_functions_run_in_the_coordinator_and_the_doctor_says_that_they_do(job):
    (row,) = pfd.open(str(job.folder)).ledger().rows
    (calls,) = row.by.values()
    assert (row.body, calls.errors) == ("coordinate.decode", 0)
    assert calls.calls >= 4
    (finding,) = [one for one in pfd.open(str(job.folder)).findings() if one.rule == "distribution"]
    assert finding.processes == ("chief-0",)
    assert "runs in this process (/job:chief/task:0)" in finding.message
