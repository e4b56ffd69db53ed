"""Programs whose nodes are put on other devices: each in a recording of its own, its findings as a line of JSON.

Run as a program, because logical devices and clusters stay as long as the process: see test_placement.py.
"""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import tensorflow as tf

import pyfunc_debug as pfd

RULES = ["devices", "distribution", "eager-switch", "doctor-trouble"]
CPUS = ["CPU:0", "CPU:1"]


def double(x):
    return x * 2


def doubled(x):
    return np.sort(x) * 2


def in_replicas(function, devices):
    strategy = tf.distribute.MirroredStrategy(devices)
    given = strategy.experimental_distribute_values_from_function(lambda _: tf.constant([1.0, 2.0]))
    step = tf.function(lambda x: strategy.run(function, args=(x,)))
    step(given)


def a_node_in_each_replica():
    in_replicas(lambda x: tf.py_function(double, [x], tf.float32), CPUS)


def numpy_in_each_replica():
    in_replicas(lambda x: tf.numpy_function(doubled, [x], tf.float32), CPUS)


def replicas_without_python():
    in_replicas(lambda x: x * 2, CPUS)


def one_replica():
    in_replicas(lambda x: tf.py_function(double, [x], tf.float32), CPUS[:1])


def python_in_the_input_of_replicas():
    strategy = tf.distribute.MirroredStrategy(CPUS)
    data = tf.data.Dataset.range(4).map(lambda i: tf.py_function(double, [i], tf.int64)).batch(2, drop_remainder=True)
    step = tf.function(lambda x: strategy.run(lambda y: y + 1, args=(x,)))
    for x in strategy.experimental_distribute_dataset(data):
        step(x)


WORKER = "/job:worker/task:0/device:CPU:0"
"""Where ClusterCoordinator.schedule would run a function: it uses tf.device, too."""


def on_a_worker(function):
    step = tf.function(function)
    with tf.device(WORKER):
        step(tf.ones([2])).numpy()  # waits for it


def a_step_for_a_worker():
    def step(x):
        return tf.py_function(double, [x], tf.float32) + 1

    on_a_worker(step)


def numpy_for_a_worker():
    on_a_worker(lambda x: tf.numpy_function(doubled, [x], tf.float32) + 1)


def a_node_in_a_function_that_a_worker_runs():
    inner = tf.function(lambda x: tf.py_function(double, [x], tf.float32))
    on_a_worker(lambda x: inner(x) + 1)


def a_step_without_python_for_a_worker():
    on_a_worker(lambda x: x + 1)


def python_beside_the_worker():
    x = tf.function(lambda x: tf.py_function(double, [x], tf.float32))(tf.ones([2]))
    on_a_worker(lambda y: y + tf.reduce_sum(x))


def between(first, own, last, side=600, function=doubled):
    """Three calls of a node: what it gets is made on one device, what it gives used on another."""

    @tf.function
    def step(x):
        with tf.device(first):
            made = x + 1
        with tf.device(own):
            made = tf.numpy_function(function, [made], tf.float32)
        with tf.device(last):
            return made + 1

    for _ in range(3):
        step(tf.ones([side, side]))


def an_input_from_another_device():
    between(*CPUS, None)


def an_output_to_another_device():
    between("CPU:0", *CPUS)


def there_and_back():
    between("CPU:1", "CPU:0", "CPU:1", side=400)


def one_device():
    between("CPU:1", "CPU:1", "CPU:1")


def little_from_another_device():
    between(*CPUS, None, side=10)


def a_device_that_is_not_there():
    between("GPU:0", "CPU:0", "GPU:0")


def eagerly(build):
    tf.config.run_functions_eagerly(True)
    list(build())
    tf.config.run_functions_eagerly(False)


def a_map_that_stays_a_graph():
    eagerly(lambda: tf.data.Dataset.range(3).map(double))


def a_filter_that_stays_a_graph():
    eagerly(lambda: tf.data.Dataset.range(3).filter(lambda x: x > 1))


def a_map_with_python_that_stays_a_graph():
    eagerly(lambda: tf.data.Dataset.range(3).map(lambda x: tf.py_function(double, [x], tf.int64)))


def a_dataset_without_functions():
    eagerly(lambda: tf.data.Dataset.range(3).batch(2))


def a_dataset_without_the_switch():
    list(tf.data.Dataset.range(3).map(double))


def a_dataset_in_debug_mode():
    tf.data.experimental.enable_debug_mode()
    eagerly(lambda: tf.data.Dataset.range(3).map(double))


LOCAL = [
    a_node_in_each_replica, numpy_in_each_replica, replicas_without_python, one_replica,
    python_in_the_input_of_replicas, an_input_from_another_device, an_output_to_another_device, there_and_back,
    one_device, little_from_another_device, a_device_that_is_not_there, a_map_that_stays_a_graph,
    a_filter_that_stays_a_graph, a_map_with_python_that_stays_a_graph, a_dataset_without_functions,
    a_dataset_without_the_switch, a_dataset_in_debug_mode,
]  # fmt: skip
REMOTE = [
    a_step_for_a_worker, numpy_for_a_worker, a_node_in_a_function_that_a_worker_runs,
    a_step_without_python_for_a_worker, python_beside_the_worker,
]  # fmt: skip


def main():
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    for program in LOCAL:
        tell(program)
    server = tf.distribute.Server.create_local_server()  # in this process; the system chooses its port
    tf.config.experimental_connect_to_host(server.target)
    for program in REMOTE:
        tell(program)
    sys.stdout.flush()
    os._exit(0)  # a server does not end


def tell(program):
    with pfd.record(gil=False) as recording:
        program()
    found = [(one.rule, one.severity, one.line, one.message, one.fix) for one in recording.findings(select=RULES)]
    recording.close()
    print(json.dumps([program.__name__, found]), flush=True)


if __name__ == "__main__":
    main()
