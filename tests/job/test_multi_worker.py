"""MultiWorkerMirroredStrategy with two processes: who is slow, and whose value is no longer that of the other."""

from __future__ import annotations

import re

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.cli import main
from tests.job import clusters

pytestmark = pytest.mark.slow
PROGRAM = """
    import time
    import numpy as np

    STEPS = 6

    def work(worker, others=None):
        import tensorflow as tf

        resolver = others and tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(others), task_type="worker", task_id=worker, rpc_layer="grpc"
        )
        strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)
        with strategy.scope():
            weight = tf.Variable(1.0)

        def scale(x):
            time.sleep(0.25 * worker)
            return x * 2

        def rounded(total, step):
            return total + np.float32(worker and step >= 3)

        @tf.function
        def train(iterator):
            def replica(item):
                step, x = item
                y = tf.ensure_shape(tf.numpy_function(scale, [x], tf.float32), [2])
                total = tf.distribute.get_replica_context().all_reduce("SUM", tf.reduce_sum(y) * weight)
                return tf.numpy_function(rounded, [total, step], tf.float32)

            return strategy.run(replica, args=(next(iterator),))

        data = tf.data.Dataset.range(STEPS).map(lambda step: (step, tf.cast([step, worker], tf.float32)))
        iterator = iter(strategy.distribute_datasets_from_function(lambda context: data))
        line = f"{worker} {[float(train(iterator)) for _ in range(STEPS)]}"
        os.write(1, line.encode() + bytes([10]))  # in one piece: both write into one pipe

    if __name__ == "__main__":
        cluster = {"worker": addresses(2)}
        workers = [
            started("worker-0", work, 0, cluster=cluster),
            started("second", work, 1, cluster),  # without TF_CONFIG: a resolver says what it is
        ]
        for one in workers:
            one.join()
            assert one.exitcode == 0
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return clusters.run(tmp_path_factory.mktemp("workers"), PROGRAM)


def test_the_job_computes_what_it_computes_without_us_and_each_worker_has_its_file(job):
    assert job.plain == job.recorded == [
        "0 [2.0, 6.0, 10.0, 14.0, 18.0, 22.0]", "1 [2.0, 6.0, 10.0, 15.0, 19.0, 23.0]",
    ]  # fmt: skip
    found = {one.meta["role"]: (one.meta["rank"], one.meta["state"]) for one in pfd.open(str(job.folder))}
    assert found == {"main": (None, "complete"), "worker-0": (0, "complete"), "worker-1": (1, "complete")}


def test_the_ledger_of_the_folder_says_in_words_which_worker_is_slow(job):
    ledger = pfd.open(str(job.folder)).ledger()
    assert sorted((row.body, row.calls, len(row.by)) for row in ledger.rows) == [
        ("work.rounded", 12, 2), ("work.scale", 12, 2),
    ]  # fmt: skip
    (remark,) = [one for one in ledger.remarks if "work.scale" in one]
    said = re.match(r"worker-1 is the straggler in work\.scale: (\d+) ms a call, .* times worker-0's", remark)
    assert said, remark
    assert int(said[1]) >= 250, "it sleeps so long"
    assert remark in " ".join(job.errors.split())


def test_the_value_that_is_no_longer_equal_is_named_with_the_worker_and_the_step(job, capsys):
    differences = {(one.body, one.role, one.path): one for one in pfd.open(str(job.folder)).differences().values}
    total = next(one for (body, role, _), one in differences.items() if (body, role) == ("work.rounded", "output"))
    assert (total.diverged, total.equal, total.first, total.steps) == (True, 3, 4, 6)
    assert total.groups == (("worker-0",), ("worker-1",))
    (finding,) = pfd.open(str(job.folder)).findings(select=["diverged-replicas"], ignore=[])
    assert finding.message == (
        f"output {total.path} of work.rounded was equal in all processes and is not from step 4 on: worker-0, worker-1 "
        "differ, though the inputs are equal: the body reads something else"
    )
    assert finding.evidence[:2] == ("worker-0: float32[] 14.0", "worker-1: float32[] 15.0")
    assert finding.processes == ("worker-0", "worker-1")
    assert main(["diff", str(job.folder)]) == 1
    assert "equal in 3 of 6 steps, first different in step 4" in capsys.readouterr().out
