"""More programs that do not fail: as `programs_silent`, after threads of users that were written down one by one."""
# ruff: noqa: B023

from __future__ import annotations

import math
import random
import threading
import time
import uuid

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, tried, triggers

# -- trace-only: what Python keeps ------------------------------------------------------------------------------------


@triggers("trace-only", says="tf.py_function(lambda loss: self.history.append(loss), [loss], [])", pastes=True)
def a_history_of_an_object():
    class Tracker:
        def __init__(self):
            self.history = []

        @tf.function
        def step(self, x):
            loss = x * 2
            self.history.append(loss)
            return loss

    tracker = Tracker()
    for _ in range(5):
        tracker.step(tf.constant(1.0))
    tf.stack(tracker.history[1:])


@triggers("trace-only", says="[loss, scale], [])", pastes=True)
def a_history_by_names():
    class Tracker:
        def __init__(self):
            self.history = {"train": []}

        @tf.function
        def step(self, x, name):
            loss, scale = x * 2, x + 1
            self.history[name].append((loss, scale))
            return loss

    tracker = Tracker()
    for _ in range(5):
        tracker.step(tf.constant(1.0), "train")
    assert all(len(pair) == 2 for pair in tracker.history["train"])


@triggers("trace-only", says='print("step", stats.steps.numpy(), "of", stats.seen.numpy())', pastes=True)
def two_counters_of_an_object_side_by_side():
    class Stats:
        def __init__(self):
            self.steps = 0
            self.seen = 0

    stats = Stats()

    @tf.function
    def step(x, stats):
        stats.steps += 1
        stats.seen += 16
        return x * 2

    for _ in range(5):
        step(tf.constant(1.0), stats)
    print("step", stats.steps, "of", stats.seen)
    assert "4" not in str(stats.seen) or stats.seen == 80


@triggers("trace-only", says="change Python's 'self.steps' and 'self.last'. They ran once", pastes=True)
def two_numbers_of_self_that_are_printed_with_a_format():
    class Trainer:
        def __init__(self):
            self.steps = 0
            self.last = 0.0

        @tf.function
        def step(self, x):
            self.steps += 1
            self.last = x * 2
            return x

    trainer = Trainer()
    for _ in range(5):
        trainer.step(tf.constant(1.0))
    if isinstance(trainer.last, tf.Variable):
        print(f"{trainer.steps:d} steps")


@triggers("trace-only", says="It ran once, when TensorFlow traced the function")
def a_list_beside_a_counter():
    class Run:
        steps = 0

    losses, run = [], Run()

    @tf.function
    def step(x):
        losses.append(x * 2)
        run.steps += 1
        return x

    for _ in range(5):
        step(tf.constant(1.0))


@triggers("trace-only", says="return from step what line")
def a_history_of_dicts():
    history = []

    @tf.function
    def step(x):
        kept = {"loss": x * 2, "x": x}
        history.append(kept)
        return kept["loss"]

    for _ in range(5):
        step(tf.constant(1.0))


@near("trace-only")
def a_history_that_the_caller_keeps():
    class Tracker:
        def __init__(self):
            self.history = []

        @tf.function
        def step(self, x):
            return x * 2

    tracker = Tracker()
    for _ in range(5):
        tracker.history.append(tracker.step(tf.constant(1.0)))


@near("trace-only")
def a_history_that_a_body_keeps():
    class Tracker:
        def __init__(self):
            self.history = []

        @tf.function
        def step(self, x):
            loss = x * 2
            tf.py_function(lambda loss: self.history.append(loss), [loss], [])
            return loss

    tracker = Tracker()
    for _ in range(5):
        tracker.step(tf.constant(1.0))


# -- none-gradient: of another op type --------------------------------------------------------------------------------


def registered(slope):
    """A gradient under a name of its own: TensorFlow's registry has no way to take one back."""
    name = f"Slope{uuid.uuid4().hex}"
    tf.RegisterGradient(name)(slope)
    return name


@triggers("none-gradient", says='{"EagerPyFunc": slope}', pastes=True)
def a_gradient_of_another_op_in_a_session():
    slope = registered(lambda op, dy: dy * 20 * op.inputs[0])
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [2])
        with graph.gradient_override_map({"PyFunc": slope}):
            y = tf.py_function(lambda x: tf.square(x), [x], tf.float32)
        (gradient,) = tf.gradients(y, x)
        with tf.compat.v1.Session() as session:
            session.run(gradient, {x: [1.0, 2.0]})


@triggers("none-gradient", says='{"PyFunc": slope}', pastes=True)
def a_gradient_of_an_eager_op_for_numpy():
    slope = registered(lambda op, dy: dy * 2 * op.inputs[0])

    @tf.function
    def step(x):
        with tf.compat.v1.get_default_graph().gradient_override_map({"EagerPyFunc": slope}):
            y = tf.numpy_function(lambda x: x * x, [x], tf.float32)
        (gradient,) = tf.gradients(y, x)
        return x if gradient is None else gradient

    step(tf.constant(3.0))


@triggers("none-gradient", says='"PyFuncStateless"', pastes=True)
def a_gradient_of_a_stateful_op():
    slope = registered(lambda op, dy: dy * 2 * op.inputs[0])

    def own(body, x):
        graph = tf.compat.v1.get_default_graph()
        with graph.gradient_override_map({"PyFunc": slope, "Square": slope}):
            return tf.compat.v1.py_func(body, [x], tf.float32, stateful=False)

    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [])
        y = own(lambda x: x * x, x)
        with tf.compat.v1.Session() as session:
            session.run(y, {x: 2.0})


@near("none-gradient")
def a_gradient_of_the_op_itself():
    slope = registered(lambda op, dy: dy * 20 * op.inputs[0])
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [2])
        with graph.gradient_override_map({"EagerPyFunc": slope}):
            y = tf.py_function(lambda x: tf.constant(np.square(x.numpy())), [x], tf.float32)
        (gradient,) = tf.gradients(y, x)
        with tf.compat.v1.Session() as session:
            session.run(gradient, {x: [1.0, 2.0]})


@near("none-gradient")
def a_gradient_of_an_op_beside_it():
    slope = registered(lambda op, dy: dy * 20 * op.inputs[0])
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [2])
        with graph.gradient_override_map({"Square": slope}):
            y = tf.square(tf.py_function(lambda x: 2 * x, [x], tf.float32))
        (gradient,) = tf.gradients(y, x)
        with tf.compat.v1.Session() as session:
            session.run(gradient, {x: [1.0, 2.0]})


@near("none-gradient")
def a_gradient_for_both_kinds_of_ops():
    slope = registered(lambda op, dy: dy * 20 * op.inputs[0])
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [2])
        with graph.gradient_override_map({"PyFunc": slope, "EagerPyFunc": slope}):
            y = tf.py_function(lambda x: tf.constant(np.square(x.numpy())), [x], tf.float32)
        (gradient,) = tf.gradients(y, x)
        with tf.compat.v1.Session() as session:
            session.run(gradient, {x: [1.0, 2.0]})


# -- function-in-loop: that reads what is around it -------------------------------------------------------------------


@triggers("function-in-loop", says="def train_step(x, y):", pastes=True)
def a_step_defined_for_each_batch():
    w = tf.Variable(1.0)

    def train_on(x, y):
        @tf.function
        def train_step():
            loss = tf.reduce_mean((w * x - y) ** 2)
            w.assign_sub(0.01 * loss)
            return loss

        return train_step()

    for _ in range(8):
        x = np.random.rand(4).astype("float32")
        train_on(x, 2 * x)


@triggers("function-in-loop", says="def score(scale: float, batch) -> tf.Tensor:", pastes=True)
def a_step_defined_in_the_loop():
    for number in range(8):
        batch = tf.random.uniform([3])

        @tf.function(reduce_retracing=True)
        def score(scale: float) -> tf.Tensor:
            return tf.reduce_sum(batch) * scale

        score(tf.constant(float(number)))


@triggers("function-in-loop", says="define run once, outside of predict, with model as its arguments")
def a_step_that_reads_an_object():
    def predict(model, x):
        @tf.function
        def run(x):
            return model.scale * x

        return run(x)

    class Model:
        def __init__(self):
            self.scale = tf.Variable(2.0)

    model = Model()
    for _ in range(8):
        predict(model, tf.constant(1.0))


@near("function-in-loop")
def a_step_that_gets_what_it_needs():
    w = tf.Variable(1.0)

    @tf.function
    def train_step(x, y):
        loss = tf.reduce_mean((w * x - y) ** 2)
        w.assign_sub(0.01 * loss)
        return loss

    def train_on(x, y):
        return train_step(x, y)

    for _ in range(8):
        x = np.random.rand(4).astype("float32")
        train_on(x, 2 * x)


@near("function-in-loop")
def a_step_defined_for_each_of_two_models():
    def trained(scale):
        @tf.function
        def step(x):
            return scale * x

        for _ in range(8):
            step(tf.constant(1.0))

    for scale in (tf.constant(1.0), tf.constant(2.0)):
        trained(scale)


# -- retrace: another object in each call -----------------------------------------------------------------------------


@triggers("retrace", says="g.reset_from_seed(step)", pastes=True)
def a_random_generator_for_each_step():
    @tf.function
    def sample(gen, mean):
        return mean + gen.normal([8])

    drawn = []
    for step in range(8):
        g = tf.random.Generator.from_seed(step)
        drawn.append(float(sample(g, tf.zeros([8]))[0]))
    alone = tf.random.Generator.from_seed(7).normal([8])
    assert drawn[7] == float(alone[0])


@triggers("retrace", says="from_seed(0, alg='philox')", pastes=True)
def a_random_generator_passed_by_name():
    @tf.function
    def sample(size, gen):
        return gen.uniform([size])

    for epoch in range(2):
        for step in range(4):
            rng = tf.random.Generator.from_seed(10 * epoch + step, alg="philox")
            sample(3, gen=rng)


@triggers("retrace", says="makes another Net in each round: make one above the loop in line")
def a_model_for_each_step():
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(2.0)

    @tf.function
    def apply(net, x):
        return net.w * x

    kept = []
    for step in range(8):
        net = Net()
        kept.append(net)
        apply(net, tf.constant(float(step)))


@near("retrace")
def a_random_generator_for_all_steps():
    @tf.function
    def sample(gen, mean):
        return mean + gen.normal([8])

    g = tf.random.Generator.from_seed(0)
    for step in range(8):
        g.reset_from_seed(step)
        sample(g, tf.zeros([8]))


@near("retrace")
def a_model_for_each_of_two_runs():
    @tf.function
    def apply(scale, x):
        return scale * x

    for _ in range(2):
        scale = tf.Variable(2.0)
        for step in range(8):
            apply(scale, tf.constant(float(step)))


# -- epoch-end --------------------------------------------------------------------------------------------------------


def spec():
    return tf.TensorSpec((None, 1), tf.float32)


@triggers("epoch-end", says="gen.on_epoch_end()", pastes=True)
def a_sequence_that_a_generator_reads():
    class Arrays(keras.utils.PyDataset):
        def __init__(self):
            super().__init__()
            self.indices = list(range(12))
            self.rng = random.Random(3)

        def __len__(self):
            return 3

        def __getitem__(self, at):
            return np.array(self.indices[4 * at : 4 * at + 4], np.float32)[:, None]

        def on_epoch_end(self):
            self.rng.shuffle(self.indices)

    gen = Arrays()

    def batches():
        for i in range(len(gen)):
            yield gen[i]

    data = tf.data.Dataset.from_generator(batches, output_signature=spec()).prefetch(1)
    for _ in range(3):
        list(data)


@triggers("epoch-end", says="is a method of Arrays", pastes=True)
def a_sequence_that_is_called():
    class Arrays:
        def __init__(self, shuffle=True):
            self.shuffle = shuffle
            self.indices = np.arange(12)
            self.rng = np.random.default_rng(3)

        def __getitem__(self, at):
            return self.indices[4 * at : 4 * at + 4].astype(np.float32)[:, None]

        def __call__(self):
            for i in range(3):
                yield self[i]

        def on_epoch_end(self):
            if self.shuffle:
                self.rng.shuffle(self.indices)

    data = tf.data.Dataset.from_generator(Arrays(), output_signature=spec())
    for _ in range(3):
        list(data)


@triggers("epoch-end", says="loader.on_epoch_end()", pastes=True)
def a_sequence_in_fit_by_a_generator():
    class Loader(keras.utils.Sequence):
        def __init__(self, size):
            super().__init__()
            self.order = np.random.permutation(4 * size)

        def __len__(self):
            return len(self.order) // 4

        def __getitem__(self, at):
            x = self.order[4 * at : 4 * at + 4].astype(np.float32)[:, None]
            return x, 2 * x

        def on_epoch_end(self):
            self.order = np.random.permutation(self.order)

    loader = Loader(4)

    def pairs():
        for number in range(len(loader)):
            x, y = loader[number]
            yield x, y

    data = tf.data.Dataset.from_generator(pairs, output_signature=(spec(), spec()))
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, epochs=3, verbose=0)


@near("epoch-end")
def a_sequence_that_ends_its_epochs():
    class Arrays(keras.utils.PyDataset):
        def __init__(self):
            super().__init__()
            self.indices = np.arange(12)

        def __getitem__(self, at):
            return self.indices[4 * at : 4 * at + 4].astype(np.float32)[:, None]

        def on_epoch_end(self):
            np.random.shuffle(self.indices)

    gen = Arrays()

    def batches():
        for i in range(3):
            yield gen[i]
        gen.on_epoch_end()

    data = tf.data.Dataset.from_generator(batches, output_signature=spec())
    for _ in range(3):
        list(data)


@near("epoch-end")
def a_sequence_that_is_not_shuffled():
    class Arrays:
        def __init__(self, size, shuffle=True):
            self.shuffle = shuffle
            self.indices = np.arange(4 * size)

        def __getitem__(self, at):
            return self.indices[4 * at : 4 * at + 4].astype(np.float32)[:, None]

        def on_epoch_end(self):
            if self.shuffle:
                np.random.shuffle(self.indices)

    validation = Arrays(3, shuffle=False)

    def batches():
        for i in range(3):
            yield validation[i]

    data = tf.data.Dataset.from_generator(batches, output_signature=spec())
    for _ in range(3):
        list(data)


@near("epoch-end")
def a_sequence_that_shuffles_when_it_begins():
    class Arrays:
        def __init__(self):
            self.indices = np.arange(12)

        def __getitem__(self, at):
            return self.indices[4 * at : 4 * at + 4].astype(np.float32)[:, None]

        def on_epoch_end(self):
            pass

    gen = Arrays()

    def batches():
        np.random.shuffle(gen.indices)
        for i in range(3):
            yield gen[i]

    data = tf.data.Dataset.from_generator(batches, output_signature=spec())
    for _ in range(3):
        list(data)


@triggers("function-in-loop", says="cut(start, signal, size)", pastes=True)
def a_slice_of_a_size_that_is_a_number_by_default():
    def windows(signal, size=2):
        @tf.function
        def cut(start):
            return signal[start : start + size]

        return [cut(start) for start in tf.range(0, 6, size)]

    for number in range(6):
        windows(tf.range(6) + number)


@triggers("function-in-loop", says="def chain(w, self, size)", pastes=True)
def a_step_defined_in_a_method():
    class Sampler:
        def __init__(self, x):
            self.x = tf.constant(x)

        def likelihood(self, w):
            return tf.reduce_sum((self.x - w) ** 2)

        def sampling(self, start, size):
            @tf.function
            def chain(w):
                return w + size * self.likelihood(w)

            return chain(start)

    sampler = Sampler([1.0, 2.0])
    for _ in range(6):
        sampler.sampling(tf.zeros([2]), 0.5)


@triggers("function-in-loop", says="define scaled once, outside of step, with self as its arguments")
def a_step_defined_in_a_method_of_what_changes():
    class Scaler:
        def __init__(self):
            self.scale = 1.0

        def step(self, x):
            @tf.function
            def scaled(x):
                return x * self.scale

            self.scale += 1.0
            return scaled(x)

    scaler = Scaler()
    for _ in range(6):
        scaler.step(tf.constant(1.0))


@near("trace-only")
def a_learning_rate_that_keras_sets_in_the_graph():
    optimizer = keras.optimizers.SGD(0.1)
    w = tf.Variable([1.0])

    @tf.function
    def train_step(rate):
        optimizer.learning_rate = rate
        optimizer.apply_gradients([(tf.ones([1]), w)])

    for _ in range(3):
        train_step(tf.constant(0.5))


@triggers("none-gradient", says="gradient_override_map is for ops that its graph makes")
def a_gradient_map_of_a_graph_around_eager_code():
    def clipped(x):
        return np.clip(x.numpy(), 0.0, 1.0)

    name = f"ClippedGrad{uuid.uuid4().hex}"
    tf.RegisterGradient(name)(lambda op, grad: grad)
    w = tf.Variable([0.5, 2.0])
    with tf.GradientTape() as tape:
        with tf.Graph().gradient_override_map({"PyFunc": name}):
            y = tf.py_function(clipped, [w * 1.0], tf.float32)
        loss = tf.reduce_sum(y)
    tape.gradient(loss, w)


class Memory:
    """What an agent has seen."""

    def __init__(self):
        self.items = [(np.full(3, i, np.float32), i) for i in range(30)]

    def sample(self, count):
        """Some of it."""
        states, numbers = zip(*random.sample(self.items, count))
        return np.array(states), np.array(numbers, np.float32)

    def last(self):
        """The newest."""
        return np.array([state for state, _ in self.items[-2:]])


@triggers("trace-only", says="total = train(*memory.sample(4))", pastes=True)
def a_batch_of_a_memory_that_is_drawn_at_trace():
    memory, w = Memory(), tf.Variable(tf.ones([3]))

    @tf.function
    def train():
        states, numbers = memory.sample(4)
        w.assign_sub(0.1 * tf.reduce_mean(states, 0))
        return tf.reduce_sum(numbers)

    for _ in range(3):
        total = train()
    print(float(total))


@triggers("trace-only", says="agent.learn(tf.constant(0.1), *agent.memory.sample(4))", pastes=True)
def a_batch_of_an_agents_memory_that_is_drawn_at_trace():
    class Agent:
        def __init__(self):
            self.memory = Memory()
            self.w = tf.Variable(tf.ones([3]))

        @tf.function
        def learn(self, rate):
            states, numbers = self.memory.sample(4)
            self.w.assign_sub(rate * tf.reduce_mean(states, 0))
            return tf.reduce_sum(numbers)

    agent = Agent()
    for _ in range(3):
        agent.learn(tf.constant(0.1))


@triggers("trace-only", says="step(tf.constant(0.1), drawn(4))", pastes=True)
def a_batch_that_a_function_draws_at_trace():
    data = [np.full(3, i, np.float32) for i in range(30)]

    def drawn(count):
        return np.stack(random.sample(data, count))

    @tf.function
    def step(rate):
        batch = drawn(4)
        return rate * tf.reduce_mean(batch, 0)

    for _ in range(3):
        step(tf.constant(0.1))


@near("trace-only")
def a_batch_of_a_memory_that_is_given():
    memory, w = Memory(), tf.Variable(tf.ones([3]))

    @tf.function
    def train(states, numbers):
        w.assign_sub(0.1 * tf.reduce_mean(states, 0))
        return tf.reduce_sum(numbers)

    for _ in range(3):
        train(*memory.sample(4))


@near("trace-only")
def what_a_memory_holds_without_a_draw():
    memory, w = Memory(), tf.Variable(tf.ones([3]))

    @tf.function
    def train():
        w.assign_sub(0.1 * tf.reduce_mean(memory.last(), 0))

    for _ in range(3):
        train()


@triggers("trace-only", says="return tf.cast(tf.random.uniform([], 0, 2, tf.int32), tf.int64)", pastes=True)
def a_constant_of_a_draw():
    @tf.function
    def act(state):
        if tf.reduce_sum(state) < 0:
            return tf.argmax(state)
        return tf.constant(np.random.randint(2), tf.int64)

    for _ in range(3):
        act(tf.constant([0.1, 0.2]))


@triggers("trace-only", says="self.steps = tf.Variable(0, dtype=tf.float32)", pastes=True)
def a_count_that_is_added_to_fractions():
    class Sampler(tf.Module):
        def __init__(self):
            super().__init__()
            self.steps = 0

        @tf.function
        def shifted(self, x):
            self.steps += 1
            return x + self.steps

    sampler = Sampler()
    for _ in range(3):
        sampler.shifted(tf.constant(1.0))


@triggers("trace-only", says="self.steps = tf.Variable(0)", pastes=True)
def a_count_that_is_added_to_whole_numbers():
    class Sampler(tf.Module):
        def __init__(self):
            super().__init__()
            self.steps = 0

        @tf.function
        def shifted(self, x):
            self.steps += 1
            return x + self.steps

    sampler = Sampler()
    for _ in range(3):
        sampler.shifted(tf.constant(1))


@triggers("stale-closure", says="rate=tf.constant(agent.rate, tf.float32)", pastes=True)
def a_rate_that_gets_smaller_in_each_step():
    class Agent:
        def __init__(self):
            self.rate = 1.0

        @tf.function
        def learn(self, x):
            return x * self.rate

    agent = Agent()
    for _ in range(4):
        agent.learn(tf.constant(2.0))
        agent.rate *= 0.5


@triggers("empty-epochs", says="from_generator(lambda: (x for x in data), output_signature", pastes=True)
def epochs_of_one_generator_expression():
    data = np.random.rand(5)
    numbers = (x for x in data)
    ds = tf.data.Dataset.from_generator(lambda: numbers, output_signature=tf.TensorSpec((), tf.float64))
    for _ in range(3):
        list(ds)


@triggers("trace-only", says="return x + tf.random.normal(x.shape[1:], 0, 0.1)", pastes=True)
def noise_of_a_layer_as_wide_as_an_example():
    class Noise(keras.layers.Layer):
        def call(self, x, training=None):
            if training:
                return x + np.random.normal(0, 0.1, size=x.shape[1:])
            return x

    model = keras.Sequential([keras.layers.Input((3,)), Noise(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((32, 3)), np.ones((32, 1)), epochs=2, batch_size=8, verbose=0)


@triggers("stale-closure", severity="error", says="step = tf.function(step.python_function)", pastes=True)
def layers_that_are_thawed_between_the_calls_of_a_step():
    base = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(4)])
    model = keras.Sequential([base, keras.layers.Dense(1)])
    opt = keras.optimizers.SGD(0.1)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    x, y = tf.ones([8, 3]), tf.ones([8, 1])
    base.trainable = False
    step(x, y)
    base.trainable = True
    for _ in range(3):
        step(x, y)


@near("stale-closure")
def layers_that_are_frozen_before_the_first_call_of_a_step():
    base = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(4)])
    model = keras.Sequential([base, keras.layers.Dense(1)])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        return tape.gradient(loss, model.trainable_variables)

    x, y = tf.ones([8, 3]), tf.ones([8, 1])
    base.trainable = False
    step(x, y)
    for _ in range(3):
        step(x, y)


@triggers("retrace", says="@tf.function(reduce_retracing=True)", pastes=True)
def sizes_and_a_name_that_change():
    @tf.function
    def scaled(name, x):
        return tf.nn.relu(x) if name == "relu" else x

    for name in ("relu", "none"):
        for size in range(1, 8):
            scaled(name, tf.ones([size]))


@near("retrace")
def open_sizes_and_a_name_that_changes():
    @tf.function(reduce_retracing=True)
    def scaled(name, x):
        return tf.nn.relu(x) if name == "relu" else x

    for name in ("relu", "none"):
        for size in range(1, 8):
            scaled(name, tf.ones([size]))


@near("cached-random")
def files_that_are_read_and_then_changed_by_chance():
    def read_image(path):
        image = np.full((4, 4, 3), len(path), np.float32)
        return image / np.float32(255)

    def augment(image):
        image = tf.image.random_flip_left_right(image)
        return tf.image.random_brightness(image, 0.1)

    data = tf.data.Dataset.from_tensor_slices(["a", "bb", "ccc"])
    data = data.map(lambda path: tf.ensure_shape(tf.numpy_function(read_image, [path], tf.float32), [4, 4, 3]))
    data = data.cache().map(augment)
    for _ in range(3):
        list(data)


@near("cached-random")
def a_flip_that_is_always_the_same():
    def augment(image):
        return np.fliplr(image)

    data = tf.data.Dataset.from_tensor_slices(np.ones([4, 2, 2], np.float32))
    data = data.map(lambda x: tf.numpy_function(augment, [x], tf.float32)).cache()
    for _ in range(3):
        list(data)


@triggers("empty-epochs", says="from_generator(drawn, output_signature", pastes=True)
def epochs_of_keras_over_one_generator():
    def drawn():
        for number in range(8):
            yield np.full(2, number, np.float32), np.ones(1, np.float32)

    kept = drawn()
    signature = (tf.TensorSpec((2,)), tf.TensorSpec((1,)))
    data = tf.data.Dataset.from_generator(lambda: kept, output_signature=signature).batch(4)
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, epochs=3, verbose=0)


@triggers("stale-closure", says="read(x, mask=mask)", pastes=True)
def an_array_that_is_changed_in_place():
    mask = np.zeros(4, np.float32)

    @tf.function
    def read(x):
        return x * mask

    x = tf.ones(4)
    read(x)
    mask[1] = 1.0
    for _ in range(2):
        read(x)


@near("stale-closure")
def an_array_that_a_body_changes_in_place():
    counts = np.zeros(4)

    def count(x):
        counts[0] += 1
        return np.float32(counts[0]) + x

    @tf.function
    def step(x):
        return tf.numpy_function(count, [x], tf.float32)

    for _ in range(4):
        step(tf.constant(1.0))


@triggers("trace-only", says="# no tf.function: accumulate goes on with what Python keeps", pastes=True)
def a_list_that_is_added_to_and_read():
    history = []

    @tf.function
    def accumulate(x):
        history.append(x)
        return tf.add_n(history)

    for number in (1.0, 2.0, 3.0):
        accumulate(tf.constant(number))


@triggers("retrace", says="chosen(agent, state, tf.constant(epsilon, tf.float32))", pastes=True)
def a_number_that_changes_beside_the_key_of_a_dict():
    weights = {"first": tf.ones([2]), "second": tf.zeros([2])}

    @tf.function
    def chosen(agent, state, epsilon):
        return tf.where(tf.random.uniform([2]) < epsilon, state, weights[agent])

    state, epsilon = tf.ones([2]), 1.0
    for _ in range(8):
        epsilon *= 0.9
        for agent in weights:
            chosen(agent, state, epsilon)


@triggers("untaped", says="y = tf.reduce_mean(x2, axis=0)", pastes=True)
def a_mean_of_numpys_under_a_tape():
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        x2 = x**2
        y = np.mean(x2, axis=0)
        y = tf.reduce_mean(y, axis=0)
    print(tape.gradient(y, x))


@triggers("untaped", says="s = tf.reduce_sum(y)", pastes=True)
def a_number_of_pythons_under_a_tape():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = w * 2.0
        s = float(tf.reduce_sum(y))
        loss = tf.constant(s)
    print(tape.gradient(loss, w))


@near("untaped")
def a_number_for_the_screen_under_a_tape():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(w * 2.0)
        print(float(y))
    print(tape.gradient(y, w))


@triggers("trace-only", says="drawn = tf.function(drawn.python_function)", pastes=True)
def a_seed_that_is_set_between_the_calls():
    @tf.function
    def drawn():
        return tf.random.uniform([])

    tf.random.set_seed(42)
    first = [float(drawn()) for _ in range(2)]
    tf.random.set_seed(43)
    assert len({*first, *(float(drawn()) for _ in range(2))}) > 1


@near("trace-only")
def a_seed_that_is_set_before_the_first_call():
    @tf.function
    def drawn():
        return tf.random.uniform([])

    tf.random.set_seed(42)
    for _ in range(3):
        drawn()
    drawn()


@near("trace-only")
def a_seed_beside_draws_without_a_state():
    @tf.function
    def drawn(seed):
        return tf.random.stateless_uniform([], seed)

    drawn(tf.constant([1, 2]))
    tf.random.set_seed(43)
    drawn(tf.constant([1, 3]))


@near("stale-closure")
def an_array_with_numbers_that_are_missing():
    table = np.array([1.0, np.nan, 3.0], np.float32)

    @tf.function
    def read(x):
        return x + table

    for _ in range(4):
        read(tf.ones(3))


@triggers("trace-only", says="make the tf.function of drawn again")
def a_seed_that_is_set_between_the_calls_of_a_method():
    class Source:
        @tf.function
        def drawn(self):
            return tf.random.uniform([])

    source = Source()
    source.drawn()
    tf.random.set_seed(43)
    source.drawn()


@triggers("trace-only", says="drawn = tf.function(reduce_retracing=True)(drawn.python_function)", pastes=True)
def a_seed_that_is_set_between_the_calls_of_a_function_with_options():
    @tf.function(reduce_retracing=True)
    def drawn():
        return tf.random.uniform([])

    drawn()
    tf.random.set_seed(43)
    drawn()


@triggers("unknown-shape", says="shows <unknown>", pastes=True)
def a_lambda_of_several_lines_that_makes_a_tuple():
    def load(path, label):
        return np.zeros((2, 8), np.float32), np.zeros((3,), np.float32)

    ds = tf.data.Dataset.from_tensor_slices((["a", "b"], ["c", "d"]))
    pairs = ds.map(
        lambda path, label: tuple(
            tf.py_function(load, [path, label], [tf.float32, tf.float32])
        )
    )  # fmt: skip
    print(pairs)
    for first, second in pairs:
        print(first.shape, second.shape)


@triggers("untaped", says="runs above the tape", pastes=True)
def a_square_above_the_tape():
    v = tf.Variable(2.0)
    y = v * v
    with tf.GradientTape() as tape:
        z = y + 1.0
        grads = tape.gradient(z, [v])
    print(grads)


@near("untaped")
def a_square_above_a_tape_that_reads_its_variable():
    v = tf.Variable(2.0)
    y = v * v
    with tf.GradientTape() as tape:
        z = v + y
        grads = tape.gradient(z, [v])
    print(grads)


@triggers("nan-loss", says="what tf.where leaves out", pastes=True)
def a_choice_whose_other_side_overflows():
    a = tf.Variable(10.0)
    optimizer = keras.optimizers.SGD(0.1)
    for _ in range(3):
        with tf.GradientTape() as tape:
            out = tf.where(a < 15.0, a, tf.math.pow(10.0, tf.math.exp(a)))
        grads = tape.gradient(out, a)
        optimizer.apply_gradients([(grads, a)])


@triggers("nan-loss", says="in step 2, after 0", pastes=True)
def a_root_at_zero_in_a_compiled_step():
    w = tf.Variable([0.0, 0.0])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.sqrt(tf.reduce_sum(w**2))
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    for _ in range(3):
        step()


@triggers("nan-loss", says="a logarithm of 0 is infinite", pastes=True)
def a_cross_entropy_of_ones_own():
    def my_loss(y_true, y_pred):
        return -tf.reduce_mean(y_true * tf.math.log(y_pred) + (1 - y_true) * tf.math.log(1 - y_pred))

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", my_loss)
    model.set_weights([np.ones((2, 1), np.float32), np.zeros(1, np.float32)])
    x = np.array([[500.0, 500.0], [-500.0, -500.0]], np.float32)
    model.fit(x, np.array([[1.0], [0.0]], np.float32), verbose=0)


@triggers("nan-loss", says="x holds NaN in 1 of 8 rows", pastes=True)
def rows_with_nan():
    x = np.ones((8, 3), np.float32)
    y = np.ones((8, 1), np.float32)
    x[5, 1] = np.nan
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, batch_size=4, verbose=0)


@triggers("nan-loss", says="clipnorm=1.0", pastes=True)
def steps_that_lead_away():
    x = np.full((8, 1), 100.0, np.float32)
    w = tf.Variable(tf.zeros([1, 1]))
    opt = keras.optimizers.SGD(0.01)
    for _ in range(40):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w - x) ** 2)
        opt.apply_gradients(zip(tape.gradient(loss, [w]), [w]))


@triggers("nan-loss", says="enable_check_numerics()")
def a_loss_of_unknown_nan():
    w = tf.Variable(1.0)
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = w * (tf.constant(np.inf) - tf.constant(np.inf))
        tape.gradient(loss, w)


@near("nan-loss")
def a_mean_of_nothing_that_is_not_trained():
    @tf.function
    def mean_of(x):
        return tf.reduce_mean(tf.boolean_mask(x, x > 5.0))

    for _ in range(3):
        mean_of(tf.constant([1.0, 2.0]))


@triggers("nan-loss", says="precision is NaN in step 1", pastes=True)
def a_metric_that_is_nan_beside_a_finite_loss():
    def precision(y_true, y_pred):
        return tf.reduce_sum(y_true * tf.round(y_pred * 0.0)) / tf.reduce_sum(tf.round(y_pred * 0.0))

    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[precision])
    model.fit(np.ones((4, 3), np.float32), np.ones((4, 1), np.float32), verbose=0)


@near("nan-loss")
def rows_with_nan_that_are_masked():
    x = np.array([1.0, np.nan, 3.0], np.float32)
    w = tf.Variable(1.0)
    for _ in range(3):
        with tf.GradientTape() as tape:
            known = tf.constant(x[~np.isnan(x)])
            loss = tf.reduce_mean((known * w - 2.0) ** 2)
        w.assign_sub(0.01 * tape.gradient(loss, w))


@triggers("retrace", says="pad `state` to few sizes")
def sizes_beside_objects_and_a_flag():
    class Agent:
        @tf.function
        def act(self, state, test):
            return tf.reduce_sum(state) if test else state[0, 0]

    for agent in [Agent() for _ in range(3)]:
        for n in range(4):
            agent.act(tf.ones([n + 1, 3]), n % 2 == 0)


@triggers("retrace", says="reduce_retracing=True", pastes=True)
def many_sizes_of_one_object():
    class Agent:
        @tf.function
        def act(self, state, test):
            return tf.reduce_sum(state) if test else state[0, 0]

    agent = Agent()
    for n in range(12):
        agent.act(tf.ones([n + 1, 3]), n % 2 == 0)


class Enough(keras.callbacks.Callback):
    """Ends what would go on for ever."""

    def on_train_batch_end(self, batch, logs=None):
        if batch == 150:
            raise LookupError("enough")

    def on_test_batch_end(self, batch, logs=None):
        if batch == 150:
            raise LookupError("enough")


@triggers("endless-epoch", ends_with=LookupError, says="batches yields for ever", pastes=True)
def a_generator_without_end():
    def batches():
        while True:
            yield np.ones((4, 3), np.float32), np.ones((4, 1), np.float32)

    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(batches(), epochs=2, verbose=0, callbacks=[Enough()])


@triggers("endless-epoch", ends_with=LookupError, says="steps_per_epoch=100", pastes=True)
def a_dataset_of_a_generator_without_end():
    def rows():
        while True:
            yield np.ones(3, np.float32), np.ones(1, np.float32)

    spec = tf.TensorSpec([3]), tf.TensorSpec([1])
    ds = tf.data.Dataset.from_generator(rows, output_signature=spec).batch(4).prefetch(2)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(ds, verbose=0, callbacks=[Enough()])


@triggers("endless-epoch", ends_with=LookupError, says="validation_steps=100", pastes=True)
def validation_without_end():
    def batches():
        while True:
            yield np.ones((4, 3), np.float32), np.ones((4, 1), np.float32)

    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.ones((8, 3), np.float32), np.ones((8, 1), np.float32)
    model.fit(x, y, validation_data=batches(), verbose=0, callbacks=[Enough()])


@near("endless-epoch")
def a_generator_without_end_and_its_steps():
    def batches():
        while True:
            yield np.ones((4, 3), np.float32), np.ones((4, 1), np.float32)

    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(batches(), steps_per_epoch=8, verbose=0)


@near("endless-epoch")
def a_part_of_a_generator_without_end():
    def rows():
        while True:
            yield np.ones(3, np.float32), np.ones(1, np.float32)

    spec = tf.TensorSpec([3]), tf.TensorSpec([1])
    ds = tf.data.Dataset.from_generator(rows, output_signature=spec).take(32).batch(4)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(ds, verbose=0)


@near("endless-epoch")
def a_generator_that_is_left():
    def batches():
        count = 0
        while True:
            count += 1
            if count > 8:
                return
            yield np.ones((4, 3), np.float32), np.ones((4, 1), np.float32)

    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(batches(), verbose=0)


@triggers("shuffled-apart", says="each goes through it on its own", pastes=True)
def a_shuffled_dataset_zipped_with_its_map():
    def double(mask):
        return mask * 2

    images = tf.data.Dataset.range(10).shuffle(10)
    masks = images.map(double)
    pairs = tf.data.Dataset.zip((images, masks))
    for image, mask in pairs:
        print(int(image), int(mask))


@near("shuffled-apart")
def two_orders_of_one_dataset_on_purpose():
    data = tf.data.Dataset.range(10)
    pairs = tf.data.Dataset.zip((data.shuffle(10), data.shuffle(10)))
    for one, other in pairs:
        print(int(one), int(other))


def trained(layer, width=3):
    model = keras.Sequential([keras.layers.Input((width,)), layer, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((8, width), np.float32), np.ones((8, 1), np.float32), verbose=0)


@triggers("untracked-variable", says="self.beta and self.gamma of Norm", pastes=True)
def a_norm_of_variables_of_tensorflow():
    class Norm(keras.layers.Layer):
        def __init__(self, width):
            super().__init__()
            self.beta = tf.Variable(initial_value=tf.zeros(width), trainable=True)
            self.gamma = tf.Variable(initial_value=tf.ones(width))
            self.mean = tf.Variable(tf.zeros(width), trainable=False)

        def call(self, x):
            self.mean.assign(self.mean * 0.9 + tf.reduce_mean(x, 0) * 0.1)
            return (x - self.mean) * self.gamma + self.beta

    model = keras.Sequential([keras.layers.Input((3,)), Norm(3), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 3), np.float32), np.ones((8, 1), np.float32), verbose=0)


@triggers("untracked-variable", says="fit does not train it", pastes=True)
def a_weight_made_in_build():
    class Scaled(keras.layers.Layer):
        def build(self, shape):
            self.w = tf.Variable(tf.random.normal([shape[-1], 2]), name="w")

        def call(self, x):
            return tf.matmul(x, self.w)

    model = keras.Sequential([keras.layers.Input((3,)), Scaled(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 3), np.float32), np.ones((8, 1), np.float32), verbose=0)


@triggers("untracked-variable", says="self.scale of Net", pastes=True)
def a_model_with_a_variable_of_tensorflow():
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)
            self.scale = tf.Variable([1.0], trainable=True)

        def call(self, x):
            return self.dense(x) * self.scale

    model = Net()
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 3), np.float32), np.ones((8, 1), np.float32), verbose=0)


@near("untracked-variable")
def a_layer_that_counts_its_calls_in_a_variable():
    class Counting(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.calls = tf.Variable(0)

        def call(self, x):
            self.calls.assign_add(1)
            return x

    trained(Counting())


@near("untracked-variable")
def a_moving_mean_that_the_layer_assigns():
    class Centered(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.mean = tf.Variable(tf.zeros(3))

        def call(self, x):
            self.mean.assign(self.mean * 0.9 + tf.reduce_mean(x, 0) * 0.1)
            return x - self.mean

    trained(Centered())


@near("untracked-variable")
def a_constant_in_a_variable():
    class Shifted(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.shift = tf.Variable([1.0, 2.0, 3.0], trainable=False)

        def call(self, x):
            return x + self.shift

    trained(Shifted())


@near("untracked-variable")
def a_weight_of_keras():
    class Scaled(keras.layers.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=(3,), initializer="ones")

        def call(self, x):
            return x * self.w

    trained(Scaled())


def fitted(model, **words):
    model.compile("sgd", **words)
    model.fit(np.ones((8, 3), np.float32), np.ones((8, 1), np.float32), verbose=0)


@triggers("trace-only", says="self.n.assign(self.n + 1)", pastes=True)
def a_variable_of_an_object_that_a_line_replaces():
    class Counter:
        def __init__(self):
            self.n = tf.Variable(0)

        @tf.function
        def step(self):
            self.n = self.n + 1
            return self.n

    counter = Counter()
    for _ in range(3):
        counter.step()


def pictures():
    images = np.random.default_rng(0).random((8, 4, 4, 1)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((images, (images > 0.5).astype(np.float32)))


@triggers("augmented-apart", says="flips image and mask each by a draw of its own", pastes=True)
def flips_of_an_image_and_its_mask():
    def augment(image, mask):
        image = tf.image.random_flip_left_right(image)
        mask = tf.image.random_flip_left_right(mask)
        return image, mask

    list(pictures().map(augment))


@triggers("augmented-apart", says="stateless_random_flip_up_down(label, seed=seed + 1)", pastes=True)
def two_flips_of_each():
    def augment(picture, label):
        picture = tf.image.random_flip_left_right(picture)
        picture = tf.image.random_flip_up_down(picture)
        label = tf.image.random_flip_left_right(label)
        label = tf.image.random_flip_up_down(label)
        return picture, label

    list(pictures().map(augment))


@triggers("augmented-apart", says="crops image and target", pastes=True)
def crops_of_an_image_and_its_target():
    def cropped(image, target):
        return tf.image.random_crop(image, [2, 2, 1]), tf.image.random_crop(target, [2, 2, 1])

    list(pictures().map(cropped))


@near("augmented-apart")
def two_views_of_a_picture():
    def views(one, other):
        return tf.image.random_flip_left_right(one), tf.image.random_flip_left_right(other)

    list(pictures().map(views))


@near("augmented-apart")
def flips_with_one_seed():
    def augment(image, mask):
        seed = tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32)
        image = tf.image.stateless_random_flip_left_right(image, seed=seed)
        return image, tf.image.stateless_random_flip_left_right(mask, seed=seed)

    list(pictures().map(augment))


@near("augmented-apart")
def a_brighter_image_beside_its_mask():
    def augment(image, mask):
        return tf.image.random_brightness(image, 0.2), mask

    list(pictures().map(augment))


@triggers("cached-random", says="augment draws random numbers (line ", pastes=True)
def ops_that_draw_in_front_of_a_cache():
    def augment(image, mask):
        return tf.image.random_brightness(image, 0.2), mask

    train = pictures().map(augment).cache().batch(4).repeat()
    model = keras.Sequential([keras.layers.Input((4, 4, 1)), keras.layers.Conv2D(1, 1)])
    model.compile("sgd", "mse")
    model.fit(train, steps_per_epoch=2, epochs=2, verbose=0)


@triggers("cached-random", says=".cache().map(lambda x, y: (tf.image.random_flip_up_down(x), y))", pastes=True)
def a_lambda_that_draws_in_front_of_a_cache():
    data = pictures().map(lambda x, y: (tf.image.random_flip_up_down(x), y)).shuffle(8).cache()
    for _ in range(2):
        for _ in data:
            pass


@near("cached-random")
def ops_that_draw_behind_a_cache():
    data = pictures().cache().map(lambda x, y: (tf.image.random_flip_up_down(x), y)).repeat(2)
    for _ in data:
        pass


@near("cached-random")
def ops_that_draw_for_a_validation():
    val_data = pictures().map(lambda x, y: (tf.image.random_flip_up_down(x), y)).cache()
    for _ in range(2):
        for _ in val_data:
            pass


@triggers("cut-gradient", says="smooth stands between them and the loss", pastes=True)
def an_eager_step_through_numpy():
    w, b = tf.Variable([[1.0], [2.0]]), tf.Variable([0.5])

    def smooth(a):
        return np.tanh(a).astype(np.float32)

    for _ in range(2):
        with tf.GradientTape() as tape:
            h = tf.numpy_function(smooth, [tf.ones([4, 2]) @ w], tf.float32)
            loss = tf.reduce_mean((h + b) ** 2)
        for variable, gradient in zip([w, b], tape.gradient(loss, [w, b])):
            if gradient is not None:
                variable.assign_sub(0.1 * gradient)


@triggers("cut-gradient", says="tf.stop_gradient(tf.numpy_function(quantize, [z], tf.float32) - z)", pastes=True)
def an_eager_step_whose_helper_leaves_for_numpy():
    encode = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(4)])
    decode = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)

    def quantize(z):
        return (np.round(z * 4) / 4).astype(np.float32)

    def bottleneck(z):
        q = tf.numpy_function(quantize, [z], tf.float32)
        q.set_shape(z.shape)
        return q

    for _ in range(2):
        with tf.GradientTape() as tape:
            z = encode(tf.ones([4, 3]))
            loss = tf.reduce_mean(decode(bottleneck(z)) ** 2)
        variables = encode.trainable_variables + decode.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))


@near("cut-gradient")
def numbers_of_numpy_beside_an_eager_loss():
    w, b, unused = tf.Variable([[1.0], [2.0]]), tf.Variable([0.5]), tf.Variable(1.0)

    def biggest(a):
        return np.float32(np.abs(a).max())

    with tf.GradientTape() as tape:
        h = tf.ones([4, 2]) @ w
        loss = tf.reduce_mean((h + b) ** 2)
        most = tf.numpy_function(biggest, [h], tf.float32)
    gradients = tape.gradient(loss, [w, b, unused])
    print(float(most), gradients[0])


@triggers("zero-loss", says="Net.train_step returns", pastes=True)
def a_step_that_returns_its_loss():
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x) - y) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"loss": loss}

    model = Net()
    model.compile("sgd")
    history = model.fit(np.ones((8, 3), np.float32), np.full((8, 1), 9, np.float32), verbose=0)
    print(history.history["loss"])


@triggers("zero-loss", says="Net.test_step returns", pastes=True)
def an_evaluation_that_returns_its_loss():
    class Net(keras.Sequential):
        def test_step(self, data):
            x, y = data
            error = tf.reduce_mean(tf.abs(self(x) - y))
            return {"loss": error}

    model = Net([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = np.ones((8, 3), np.float32), np.ones((8, 1), np.float32)
    model.fit(*data, validation_data=data, verbose=0)


@triggers("zero-loss", says="nothing gives loss to that metric", pastes=True)
def a_step_that_returns_all_metrics():
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = tf.reduce_mean(tf.square(y_pred - y))
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            self.compiled_metrics.update_state(y, y_pred)
            return {m.name: m.result() for m in self.metrics}

    fitted(Net(), metrics=["mae"])


@near("zero-loss")
def a_step_beside_other_metrics():
    class Net(keras.Sequential):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                y_pred = self(x)
                loss = tf.reduce_mean((y_pred - y) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            self.compiled_metrics.update_state(y, y_pred)
            return {"loss": loss}

    fitted(Net([keras.layers.Input((3,)), keras.layers.Dense(1)]), loss="mse", metrics=["mae"])


@near("zero-loss")
def a_step_with_two_losses():
    class Net(keras.Sequential):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x) - y) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"loss": loss, "norm": tf.linalg.global_norm(gradients)}

    fitted(Net([keras.layers.Input((3,)), keras.layers.Dense(1)]))


@near("zero-loss")
def a_step_with_its_own_mean():
    class Net(keras.Sequential):
        def __init__(self, layers):
            super().__init__(layers)
            self.tracker = keras.metrics.Mean(name="loss")

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x) - y) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            self.tracker.update_state(loss)
            return {"loss": self.tracker.result()}

    fitted(Net([keras.layers.Input((3,)), keras.layers.Dense(1)]))


@triggers("broadcast-loss", says="y is [16] and y_pred is [16, 1]", pastes=True)
def labels_and_predictions_of_different_ranks():
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.Adam(0.01)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            y_pred = model(x)
            loss = tf.reduce_mean(tf.square(y - y_pred))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    for _ in range(3):
        train_step(tf.ones([16, 3]), tf.ones([16]))


@triggers("broadcast-loss", says="tf.squeeze(model(x), -1)", pastes=True)
def a_squared_difference_of_different_ranks():
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])

    @tf.function
    def error(x, y):
        return tf.reduce_mean(tf.math.squared_difference(model(x), y))

    error(tf.ones([8, 3]), tf.ones([8]))


@triggers("broadcast-loss", says="values is [n, 1] and returns is [n]", pastes=True)
def an_advantage_of_open_sizes():
    critic = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])

    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None])])
    def loss(states, returns):
        values = critic(states)
        return tf.reduce_mean(tf.abs(values - returns))

    loss(tf.ones([8, 3]), tf.ones([8]))


@near("broadcast-loss")
def distances_of_all_pairs():
    @tf.function
    def distances(x):
        return tf.abs(x - x[:, None])

    distances(tf.range(5.0))


@near("broadcast-loss")
def labels_with_the_axis_of_the_predictions():
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])

    @tf.function
    def error(x, y):
        return tf.reduce_mean((model(x) - y) ** 2)

    error(tf.ones([8, 3]), tf.ones([8, 1]))


@near("broadcast-loss")
def a_row_less_its_mean():
    @tf.function
    def centered(x, bias):
        return x - bias + tf.reduce_mean(x)

    centered(tf.ones([8, 3]), tf.ones([3]))


@near("trace-only")
def draws_of_tensorflows_generator_in_maps():
    noise = tf.random.Generator.from_seed(9)
    kept = tf.random.get_global_generator()

    class Jitter:
        def __init__(self):
            self.random = tf.random.Generator.from_non_deterministic_state()

        def __call__(self, x):
            return x + self.random.normal(())

    def scaled(x):
        return x * noise.uniform((), 0.9, 1.1)

    ds = tf.data.Dataset.range(4).map(lambda x: tf.cast(x, tf.float32) * kept.uniform((), 0.9, 1.1))
    ds = ds.map(scaled).map(Jitter())
    for _ in range(2):
        list(ds)


@near("trace-only")
def a_users_class_whose_name_is_generator():
    class Generator(tf.Module):
        def sample(self, x):
            return x + tf.random.normal(())

    net = Generator()

    @tf.function
    def step(x):
        return net.sample(x)

    for _ in range(5):
        step(tf.constant(1.0))


# -- repeated-draws ---------------------------------------------------------------------------------------------------


@triggers(
    "repeated-draws", says="tf.image.stateless_random_flip_left_right(image, seed=rng.make_seeds(1)[:, 0])", pastes=True
)
def a_seed_and_flips_in_each_epoch_of_fit():
    tf.random.set_seed(42)

    def augment(image, label):
        image = tf.image.random_flip_left_right(image)
        return tf.image.random_brightness(image, max_delta=0.2), label

    ds = tf.data.Dataset.from_tensor_slices((tf.ones([6, 4, 4, 1]), tf.ones([6, 1])))
    ds = ds.map(augment, num_parallel_calls=1)
    ds = ds.batch(2).prefetch(1)
    model = keras.Sequential([keras.layers.Input((4, 4, 1)), keras.layers.Flatten(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(ds, epochs=3, verbose=0)


@triggers("repeated-draws", says="from_seed(7)", pastes=True)
def a_seed_and_noise_in_each_epoch_of_a_loop():
    keras.utils.set_random_seed(7)
    ds = tf.data.Dataset.range(4).map(lambda x: tf.cast(x, tf.float32) + tf.random.normal((), stddev=0.1))
    out = []
    for _ in range(3):
        for x in ds.batch(2):
            out.append(x)  # noqa: PERF402 - as users write


@triggers("repeated-draws", says="with its seed=3", pastes=True)
def an_op_with_a_seed_of_its_own():
    def noisy(x):
        return tf.cast(x, tf.float32) + tf.random.uniform((), 0.0, 1.0, seed=3)

    ds = tf.data.Dataset.range(4).map(noisy).batch(2)
    for _ in range(2):
        [float(tf.reduce_sum(x)) for x in ds]


@near("repeated-draws")
def noise_without_a_seed():
    ds = tf.data.Dataset.range(4).map(lambda x: tf.cast(x, tf.float32) + tf.random.normal(()))
    for _ in range(3):
        list(ds)


@near("repeated-draws")
def a_seed_and_noise_behind_a_shuffle():
    tf.random.set_seed(1)
    ds = tf.data.Dataset.range(4).shuffle(4).map(lambda x: tf.cast(x, tf.float32) + tf.random.normal(()))
    for _ in range(3):
        list(ds)


@near("repeated-draws")
def a_seed_and_noise_that_is_repeated():
    tf.random.set_seed(1)
    ds = tf.data.Dataset.range(4).map(lambda x: tf.cast(x, tf.float32) + tf.random.normal(())).repeat(3)
    list(ds)


@near("repeated-draws")
def a_seed_and_one_epoch():
    tf.random.set_seed(1)
    ds = tf.data.Dataset.from_tensor_slices((tf.ones([6, 4, 4, 1]), tf.ones([6, 1])))
    ds = ds.map(lambda x, y: (x + tf.random.normal([4, 4, 1]), y)).batch(2)
    model = keras.Sequential([keras.layers.Input((4, 4, 1)), keras.layers.Flatten(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(ds, epochs=1, verbose=0)


@near("repeated-draws")
def a_seed_and_another_dataset_that_draws_nothing():
    tf.random.set_seed(1)
    train = tf.data.Dataset.range(4).shuffle(4).map(lambda x: tf.cast(x, tf.float32) + tf.random.normal(()))
    val = tf.data.Dataset.range(4).map(lambda x: tf.cast(x, tf.float32))
    for _ in range(3):
        list(train.batch(2))
        list(val.batch(2))


# -- shuffled-results: labels that were never in the dataset ----------------------------------------------------------


@triggers("shuffled-results", says='frame_to_dataset(test, "target", shuffle=False)', pastes=True)
def labels_of_a_table_beside_predictions_of_a_shuffled_dataset():
    def frame_to_dataset(frame, name, batch_size=8):
        rest = dict(frame)
        labels = rest.pop(name)
        ds = tf.data.Dataset.from_tensor_slices((rest["a"], labels))
        ds = ds.shuffle(buffer_size=len(labels))
        return ds.batch(batch_size)

    rows = np.arange(40, dtype=np.float32)
    train = {"a": rows[:32, None], "target": rows[:32]}
    test = {"a": rows[32:, None], "target": rows[32:]}
    train_ds = frame_to_dataset(train, "target")
    test_ds = frame_to_dataset(test, "target")
    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(train_ds, epochs=1, verbose=0)
    preds = model.predict(test_ds, verbose=0).ravel()
    y_true = test["target"]
    np.mean((preds - y_true) ** 2)


@triggers(
    "shuffled-results", says="predict(tf.data.Dataset.from_tensor_slices((x, labels)).batch(8), verbose=0)", pastes=True
)
def labels_of_an_array_beside_predictions_of_what_is_trained_on():
    x = np.random.default_rng(0).random((24, 4)).astype(np.float32)
    labels = (x.sum(1) > 2).astype(np.int32)
    train = tf.data.Dataset.from_tensor_slices((x, labels)).shuffle(24).batch(8)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(train, epochs=1, verbose=0)
    pred = np.argmax(model.predict(train, verbose=0), axis=1)
    (pred == labels).mean()


@triggers("shuffled-results", says="predicts does not fit to y_test by position", pastes=True)
def labels_of_an_array_beside_predictions_of_a_shuffled_test_set():
    x_test = np.random.default_rng(0).random((24, 4)).astype(np.float32)
    y_test = (x_test.sum(1) > 2).astype(np.int32)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2, activation="softmax")])
    ds = tf.data.Dataset.from_tensor_slices((x_test, y_test)).shuffle(24).batch(8)
    pred = model.predict(ds, verbose=0).argmax(1)

    def accuracy_of(one, other):
        return (one == other).mean()

    accuracy_of(y_test, pred)


@near("shuffled-results")
def predictions_of_a_shuffled_dataset_beside_a_limit():
    x = np.random.default_rng(0).random((24, 4)).astype(np.float32)
    limit = 0.5
    ds = tf.data.Dataset.from_tensor_slices(x).shuffle(24).batch(8)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    pred = model.predict(ds, verbose=0)
    np.where(pred - limit > 0, 1, 0)


@near("shuffled-results")
def labels_of_an_array_beside_predictions_in_its_order():
    x = np.random.default_rng(0).random((24, 4)).astype(np.float32)
    labels = (x.sum(1) > 2).astype(np.int32)
    train = tf.data.Dataset.from_tensor_slices((x, labels)).shuffle(24).batch(8)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(train, epochs=1, verbose=0)
    pred = np.argmax(model.predict(x, verbose=0), axis=1)
    (pred == labels).mean()


# -- untracked-variable: lists of them, and own loops -----------------------------------------------------------------


@triggers("untracked-variable", says="self.scales.append(keras.Variable(float(i + 1)))", pastes=True)
def variables_in_a_list_of_a_layer():
    class Scales(keras.layers.Layer):
        def __init__(self, count):
            super().__init__()
            self.scales = []
            for i in range(count):
                self.scales.append(tf.Variable(float(i + 1)))

        def call(self, x):
            for scale in self.scales:
                x = x * scale
            return x

    model = keras.Sequential([keras.layers.Input((4,)), Scales(3), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(tf.ones([8, 4]), tf.ones([8, 1]), epochs=1, verbose=0)


@triggers("untracked-variable", says="the tape does not train it", pastes=True)
def a_variable_of_a_layer_in_a_loop_of_ones_own():
    class Scale(keras.layers.Layer):
        def __init__(self, count):
            super().__init__()
            self.scale = tf.Variable(tf.ones([count]))

        def call(self, x):
            return x * self.scale

    model = keras.Sequential([keras.layers.Input((4,)), Scale(4), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    for _ in range(3):
        step(tf.ones([8, 4]), tf.ones([8, 1]))


@near("untracked-variable")
def a_variable_of_a_module_in_a_loop_of_ones_own():
    class Scale(tf.Module):
        def __init__(self, count):
            super().__init__()
            self.scale = tf.Variable(tf.ones([count]))

        def __call__(self, x):
            return x * self.scale

    model = Scale(4)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        return tape.gradient(loss, model.trainable_variables)

    for _ in range(3):
        step(tf.ones([8, 4]), tf.ones([8, 4]))


# -- zero-loss in evaluate --------------------------------------------------------------------------------------------


@triggers("zero-loss", says="def test_step(self, data):", pastes=True)
def an_own_metric_that_only_train_step_updates():
    tracker = keras.metrics.Mean(name="loss")

    class Net(keras.Model):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                out = self(x, training=True)
                loss = self.compute_loss(x, y, out)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            tracker.update_state(loss)
            return {"loss": tracker.result()}

        @property
        def metrics(self):
            return [tracker]

    inputs = keras.Input((4,))
    model = Net(inputs, keras.layers.Dense(1)(inputs))
    model.compile("sgd", "mse")
    model.fit(tf.ones([8, 4]), tf.zeros([8, 1]), epochs=1, verbose=0)
    model.evaluate(tf.ones([8, 4]), tf.zeros([8, 1]), verbose=0)


@near("zero-loss")
def an_own_metric_that_both_steps_update():
    tracker = keras.metrics.Mean(name="loss")

    class Net(keras.Model):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            tracker.update_state(loss)
            return {"loss": tracker.result()}

        def test_step(self, data):
            x, y = data
            tracker.update_state(tf.reduce_mean((self(x) - y) ** 2))
            return {"loss": tracker.result()}

        @property
        def metrics(self):
            return [tracker]

    inputs = keras.Input((4,))
    model = Net(inputs, keras.layers.Dense(1)(inputs))
    model.compile("sgd", "mse")
    model.fit(tf.ones([8, 4]), tf.zeros([8, 1]), epochs=1, verbose=0)
    model.evaluate(tf.ones([8, 4]), tf.zeros([8, 1]), verbose=0)


# -- parallel-random: in an object ------------------------------------------------------------------------------------


@triggers("parallel-random", says="num_parallel_calls=1", pastes=True)
def draws_of_an_object_that_a_body_calls():
    random.seed(3)

    class Flip:
        def __call__(self, image):
            return image[::-1] if random.random() < 0.5 else image

    flip = Flip()

    def augment(image):
        return tf.numpy_function(lambda one: flip(image=one), [image], tf.float32)

    ds = tf.data.Dataset.from_tensor_slices(tf.ones([16, 4])).map(augment, num_parallel_calls=4)
    for _ in range(2):
        list(ds)


# -- own steps of training: training-flag, left-out-loss, swapped-loss, unreset-metric --------------------------------


@triggers("training-flag", says="Dropout then work as in prediction", pastes=True)
def a_step_without_the_flag():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dropout(0.5), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    step(tf.ones([8, 4]), tf.ones([8, 1]))


@triggers("training-flag", says="BatchNormalization then work as in prediction", pastes=True)
def a_step_of_an_object_without_the_flag():
    class Trainer:
        def __init__(self):
            self.model = keras.Sequential([keras.layers.Input((4,)), keras.layers.BatchNormalization()])
            self.optimizer = keras.optimizers.SGD(0.01)

        @tf.function
        def step(self, x, y):
            with tf.GradientTape() as tape:
                out = self.model(x)
                loss = tf.reduce_mean((out - y) ** 2)
            variables = self.model.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.model.trainable_variables), variables))

    trainer = Trainer()
    trainer.step(tf.ones([8, 4]), tf.ones([8, 4]))


@triggers("training-flag", pastes=True)
def a_step_of_weights_without_the_flag():
    net = keras.Sequential([keras.layers.Input((4,)), keras.layers.GaussianNoise(0.5), keras.layers.Dense(1)])

    @tf.function
    def gradients(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.abs(net(x) - y))
        return tape.gradient(loss, net.trainable_weights)

    gradients(tf.ones([8, 4]), tf.ones([8, 1]))


@near("training-flag")
def a_step_with_the_flag():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dropout(0.5), keras.layers.Dense(1)])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        return tape.gradient(loss, model.trainable_variables)

    step(tf.ones([8, 4]), tf.ones([8, 1]))


@near("training-flag")
def a_step_without_layers_that_have_a_flag():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.LayerNormalization(), keras.layers.Dense(1)])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        return tape.gradient(loss, model.trainable_variables)

    step(tf.ones([8, 4]), tf.ones([8, 1]))


@near("training-flag")
def a_gradient_to_the_input():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dropout(0.5), keras.layers.Dense(1)])

    @tf.function
    def saliency(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            out = tf.reduce_sum(model(x))
        return tape.gradient(out, x)

    saliency(tf.ones([8, 4]))


@triggers("left-out-loss", says="loss += tf.add_n(", pastes=True)
def a_regularizer_that_a_step_leaves_out():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, kernel_regularizer="l2")])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        return tape.gradient(loss, model.trainable_variables)

    step(tf.ones([8, 4]), tf.ones([8, 1]))


@triggers("left-out-loss", says="loss_value += tf.add_n(", pastes=True)
def an_added_loss_that_a_step_leaves_out():
    class Sparse(keras.layers.Layer):
        def call(self, x):
            self.add_loss(tf.reduce_mean(tf.abs(x)))
            return x

    net = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1), Sparse()])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            out = net(x)
            loss_value = tf.reduce_mean(tf.abs(out - y))
        return tape.gradient(loss_value, net.trainable_weights)

    step(tf.ones([8, 4]), tf.ones([8, 1]))


@triggers("left-out-loss", pastes=True)
def a_regularizer_of_a_model_of_an_object():
    class Trainer:
        def __init__(self):
            l2 = keras.regularizers.L2(0.1)
            self.model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, bias_regularizer=l2)])

        @tf.function
        def step(self, x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self.model(x) - y) ** 2)
            return tape.gradient(loss, self.model.trainable_variables)

    trainer = Trainer()
    trainer.step(tf.ones([8, 4]), tf.ones([8, 1]))


@near("left-out-loss")
def a_regularizer_that_a_step_adds():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, kernel_regularizer="l2")])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2) + sum(model.losses)
        return tape.gradient(loss, model.trainable_variables)

    step(tf.ones([8, 4]), tf.ones([8, 1]))


@near("left-out-loss")
def a_regularizer_that_fit_adds():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, kernel_regularizer="l2")])
    model.compile("sgd", "mse")
    model.fit(tf.ones([8, 4]), tf.ones([8, 1]), epochs=1, verbose=0)


@near("left-out-loss")
def a_step_without_regularizers():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, kernel_regularizer=None)])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        return tape.gradient(loss, model.trainable_variables)

    step(tf.ones([8, 4]), tf.ones([8, 1]))


@triggers("swapped-loss", says="bce(y, out)", pastes=True)
def predictions_first_in_an_object():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    bce = keras.losses.BinaryCrossentropy()

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            out = model(x)
            loss = bce(out, y)
        return tape.gradient(loss, model.trainable_variables)

    step(tf.ones([8, 4]), tf.ones([8, 1]))


@triggers("swapped-loss", says="keras.losses.binary_crossentropy(y, model(x, training=True))", pastes=True)
def predictions_first_in_a_function():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(keras.losses.binary_crossentropy(model(x, training=True), y))
        return tape.gradient(loss, model.trainable_variables)

    step(tf.ones([8, 4]), tf.ones([8, 1]))


@triggers("swapped-loss", says="self.loss(labels, logits)", pastes=True)
def predictions_first_in_an_object_of_a_trainer():
    class Trainer:
        def __init__(self):
            self.model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3)])
            self.loss = keras.losses.CategoricalCrossentropy(from_logits=True)

        @tf.function
        def step(self, x, labels):
            with tf.GradientTape() as tape:
                logits = self.model(x)
                loss = self.loss(logits, labels)
            return tape.gradient(loss, self.model.trainable_variables)

    trainer = Trainer()
    trainer.step(tf.ones([8, 4]), tf.one_hot([0, 1, 2, 0, 1, 2, 0, 1], 3))


@near("swapped-loss")
def labels_first():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    bce = keras.losses.BinaryCrossentropy()

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            out = model(x)
            loss = bce(y, out)
        return tape.gradient(loss, model.trainable_variables)

    step(tf.ones([8, 4]), tf.ones([8, 1]))


@near("swapped-loss")
def a_loss_that_is_the_same_both_ways():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    mse = keras.losses.MeanSquaredError()

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            out = model(x)
            loss = mse(out, y)
        return tape.gradient(loss, model.trainable_variables)

    step(tf.ones([8, 4]), tf.ones([8, 1]))


@near("swapped-loss")
def a_loss_of_ones_own_that_takes_predictions_first():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])

    def my_cross_entropy(out, y):
        return keras.losses.binary_crossentropy(y, out)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            out = model(x)
            loss = tf.reduce_mean(my_cross_entropy(out, y))
        return tape.gradient(loss, model.trainable_variables)

    step(tf.ones([8, 4]), tf.ones([8, 1]))


@triggers("unreset-metric", says="train_loss.reset_state()", pastes=True)
def a_mean_loss_of_all_epochs():
    ds = tf.data.Dataset.range(8).map(lambda x: tf.cast(x, tf.float32)).batch(4)
    train_loss = keras.metrics.Mean(name="train_loss")

    @tf.function
    def step(x):
        train_loss(tf.reduce_mean(x))

    for _ in range(3):
        for x in ds:
            step(x)
        float(train_loss.result())


@triggers("unreset-metric", says="accuracy.reset_state()", pastes=True)
def an_accuracy_of_all_epochs():
    accuracy = tf.keras.metrics.BinaryAccuracy()
    ds = tf.data.Dataset.range(8).map(lambda x: tf.cast(x % 2, tf.float32)).batch(4)
    shown = []
    for _ in range(3):
        for x in ds:
            accuracy.update_state(x, x)
        shown.append(float(accuracy.result()))


@triggers("unreset-metric", says="loss and error are read in each pass", pastes=True)
def two_metrics_of_all_epochs():
    loss = keras.metrics.Mean()
    error = keras.metrics.MeanAbsoluteError()
    ds = tf.data.Dataset.range(8).map(lambda x: tf.cast(x, tf.float32)).batch(4)
    for epoch in range(2):
        for x in ds:
            loss.update_state(x)
            error.update_state(x, x)
        print(f"epoch {epoch}: {float(loss.result())} {float(error.result())}")


@near("unreset-metric")
def a_mean_loss_of_each_epoch():
    ds = tf.data.Dataset.range(8).map(lambda x: tf.cast(x, tf.float32)).batch(4)
    train_loss = keras.metrics.Mean()
    for _ in range(3):
        train_loss.reset_state()
        for x in ds:
            train_loss.update_state(x)
        float(train_loss.result())


@near("unreset-metric")
def a_metric_that_each_epoch_makes():
    ds = tf.data.Dataset.range(8).map(lambda x: tf.cast(x, tf.float32)).batch(4)
    for _ in range(3):
        mean = keras.metrics.Mean()
        for x in ds:
            mean.update_state(x)
        float(mean.result())


@near("unreset-metric")
def a_metric_that_is_read_once():
    ds = tf.data.Dataset.range(8).map(lambda x: tf.cast(x, tf.float32)).batch(4)
    mean = keras.metrics.Mean()
    for _ in range(3):
        for x in ds:
            mean.update_state(x)
    float(mean.result())


@near("trace-only")
def an_environment_that_a_decorated_body_steps():
    class Env:
        def __init__(self):
            self.rng = np.random.RandomState(0)

        def step(self, action):
            self.state = np.float32(action + self.rng.normal())
            return self.state

    env = Env()

    @tf.numpy_function(Tout=tf.float32)
    def env_step(action):
        return env.step(action)

    @tf.function
    def train_step(action):
        return env_step(action) + 1.0

    for _ in range(4):
        train_step(tf.constant(1.0))


@near("trace-only")
def a_decorated_body_that_draws():
    @tf.py_function(Tout=tf.float32)
    def noisy(x):
        return x + np.random.normal()

    @tf.function
    def step(x):
        return noisy(x) * 2.0

    for _ in range(4):
        step(tf.constant(1.0))


@triggers("output-contract", says="kept the first and silently dropped the others", pastes=True)
def two_results_of_scipy_where_the_line_uses_one():
    from scipy.stats import spearmanr

    @tf.function
    def ranked(a, b):
        return 1.0 - tf.reshape(tf.py_function(spearmanr, [a, b], Tout=tf.float32), [])

    ranked(tf.constant([1.0, 2.0, 3.0]), tf.constant([1.0, 3.0, 2.0]))


# -- late-binding: tf.functions, and models that are called by their names --------------------------------------------


@triggers("late-binding", says="makes 3 tf.functions that read 'scale' when they are traced", pastes=True)
def functions_of_a_loop_that_are_called_behind_it():
    functions = []
    for scale in (1.0, 2.0, 3.0):

        @tf.function
        def times(x):
            return x * scale

        functions.append(times)
    [float(one(tf.constant(1.0))) for one in functions]


@triggers("late-binding", says="lambda x, power=power: x**power", pastes=True)
def heads_of_a_loop_in_a_dict():
    heads = {}
    for name, power in (("a", 1), ("b", 2)):
        heads[name] = tf.function(lambda x: x**power)
    for name in heads:
        heads[name](tf.constant(2.0))


@triggers("late-binding", says="w=w, rate=rate", pastes=True)
def steps_of_two_loops():
    steps = {}
    for name in ("a", "b"):
        for rate in (0.1, 0.5):
            w = tf.Variable(1.0)

            @tf.function
            def train(x):
                w.assign_sub(rate * x)
                return w

            steps[name, rate] = train
    for step in steps.values():
        step(tf.constant(1.0))


@triggers("late-binding", says="arguments={'j': j}", pastes=True)
def a_model_of_columns_that_is_called_by_its_name():
    inputs = tf.keras.Input((2,))
    columns = [tf.keras.layers.Lambda(lambda t: t[:, j : j + 1])(inputs) for j in range(2)]
    model = tf.keras.Model(inputs, columns)

    @tf.function
    def infer(x):
        return model(x)

    infer(tf.ones((1, 2)))


@near("late-binding")
def functions_that_are_called_in_the_loop():
    for scale in (1.0, 2.0):
        function = tf.function(lambda x: x * scale)
        function(tf.constant(1.0))


@near("late-binding")
def functions_that_are_traced_in_the_loop():
    functions = []
    for scale in (1.0, 2.0):
        function = tf.function(lambda x: x * scale)
        function.get_concrete_function(tf.constant(1.0))
        functions.append(function)
    [function(tf.constant(1.0)) for function in functions]


@near("late-binding")
def functions_whose_variable_a_second_loop_sets():
    functions = {}
    for scale in (1.0, 2.0):
        functions[scale] = tf.function(lambda x: x * scale)
    for scale, function in functions.items():  # noqa: B007
        function(tf.constant(1.0))


@near("late-binding")
def functions_of_a_loop_with_a_constant():
    functions = []
    for _ in range(2):
        scale = 2.0
        functions.append(tf.function(lambda x: x * scale))
    [function(tf.constant(1.0)) for function in functions]


@near("late-binding")
def a_model_that_is_made_and_called_in_the_loop():
    for scale in (1.0, 2.0):
        inputs = tf.keras.Input((2,))
        model = tf.keras.Model(inputs, tf.keras.layers.Lambda(lambda x: x * scale)(inputs))
        tf.function(lambda x: x)(model(tf.ones((1, 2))))


# -- body-raised: calls that overlap in threads (pseeth/soxbindings#4) -------------------------------------------------


class Busy:
    """A library that keeps what it works on for the whole process."""

    def __init__(self):
        self.inside = 0

    def double(self, x):
        assert self.inside == 0, "init_cache, effects.c, line 170"
        self.inside += 1
        time.sleep(0.02)
        self.inside -= 1
        return x * 2


@triggers(
    "body-raised", ends_with=tf.errors.UnknownError, pastes=True,
    says="ran while other calls of a_cache_that_threads_share.work did",
)  # fmt: skip
def a_cache_that_threads_share():
    library = Busy()

    def work(x):
        return library.double(x)

    ready = tf.data.Dataset.range(12)
    ready = ready.map(lambda x: tf.numpy_function(work, [x], tf.int64), num_parallel_calls=4)
    list(ready.batch(2))


@triggers("body-raised", severity="note", says="may not stand several threads at once", pastes=True)
def a_cache_of_threads_whose_errors_are_left_out():
    library = Busy()

    def loud(x):
        return library.double(x.numpy())

    found = tf.data.Dataset.range(12).map(
        lambda x: tf.py_function(loud, [x], tf.int64), num_parallel_calls=tf.data.AUTOTUNE
    )
    list(found.ignore_errors())


@triggers(
    "body-raised", ends_with=tf.errors.InvalidArgumentError, says="or its element is odd. One call after the other"
)
def one_that_failed_beside_others():
    def wait(x):
        time.sleep(0.1)
        return np.int64(math.sqrt(abs(x - 1) - 1) if x < 3 else 0)

    list(tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(wait, [x], tf.int64), num_parallel_calls=3))


@triggers("body-raised", ends_with=tf.errors.InvalidArgumentError, says="ignore_errors(log_warning=")
def a_row_that_is_refused_in_parallel():
    def parse(x):
        time.sleep(0.01)
        if x == 7:
            raise ValueError("bad record")
        return x

    list(tf.data.Dataset.range(10).map(lambda x: tf.numpy_function(parse, [x], tf.int64), num_parallel_calls=4))


@triggers("body-raised", ends_with=tf.errors.InvalidArgumentError, says="ignore_errors(log_warning=")
def a_file_that_is_named_in_parallel():
    def read(name):
        time.sleep(0.01)
        return np.int64(int(name))

    names = tf.data.Dataset.from_tensor_slices(["1", "2", "x3", "4"])
    list(names.map(lambda x: tf.numpy_function(read, [x], tf.int64), num_parallel_calls=2))


@triggers("body-raised", severity="note", says="or skips such elements")
def a_lock_round_what_may_fail():
    lock = threading.Lock()

    def guarded(x):
        with lock:
            time.sleep(0.01)
            return np.int64([1, 2][x % 4])

    rows = tf.data.Dataset.range(8)
    tried(list, rows.map(lambda x: tf.numpy_function(guarded, [x], tf.int64), num_parallel_calls=2))


# -- cached-random: TensorFlow's draws in helpers of what is mapped (mozilla/DeepSpeech#2396) --------------------------


@triggers("cached-random", says="process_entry draws random numbers", pastes=True)
def the_helper_of_a_lambda_draws():
    def spread_features(x, train_phase=False):
        features = tf.cast(x, tf.float32)
        if train_phase:
            features = features * tf.random.normal(tf.shape(features), 1.0, 0.2)
        return features

    def features_of_entry(x, train_phase=False):
        return spread_features(x, train_phase), x

    def made_of_numbers(train_phase=False):
        process_entry = lambda x: features_of_entry(x, train_phase)  # noqa: E731
        numbers = tf.data.Dataset.from_generator(lambda: range(4), output_signature=tf.TensorSpec([], tf.int64))
        return numbers.map(process_entry, num_parallel_calls=2).cache().batch(2)

    entries = made_of_numbers(train_phase=True)
    for _ in range(3):
        for _ in entries:
            pass


@triggers("cached-random", says="draws random numbers", pastes=True)
def a_step_that_an_augmenting_function_takes():
    def flipped_by_chance(image):
        return tf.image.random_flip_left_right(image)

    def read_and_flip(i):
        image = tf.zeros((4, 4, 3)) + tf.cast(i, tf.float32)
        return flipped_by_chance(image)

    images = tf.data.Dataset.range(4).map(read_and_flip).cache()
    for _ in range(2):
        for _ in images:
            pass


@triggers("cached-random", says="delete the files of the cache before", pastes=True)
def a_method_that_draws_in_front_of_a_file():
    import tempfile

    class Shifting:
        def moved_by_chance(self, x):
            return tf.cast(x, tf.float32) + tf.random.uniform([])

        def numbers_of(self, path):
            shift_each = lambda x: self.moved_by_chance(x)  # noqa: E731
            return tf.data.Dataset.range(4).map(shift_each).cache(path)

    shifted = Shifting().numbers_of(tempfile.mkdtemp() + "/kept")
    for _ in range(2):
        list(shifted)


@near("cached-random")
def a_flag_that_turns_the_draws_off():
    def spread_if_training(x, train_phase=False):
        features = tf.cast(x, tf.float32)
        if train_phase:
            features = features * tf.random.normal(tf.shape(features), 1.0, 0.2)
        return features

    def made_to_read(train_phase=False):
        process_read = lambda x: spread_if_training(x, train_phase)  # noqa: E731
        return tf.data.Dataset.range(4).map(process_read).cache()

    read = made_to_read()
    for _ in range(3):
        list(read)


@near("cached-random")
def a_function_that_leaves_before_it_draws():
    def left_early(x, augment):
        if not augment:
            return tf.cast(x, tf.float32)
        return tf.cast(x, tf.float32) + tf.random.normal([])

    rows = tf.data.Dataset.range(4).map(lambda x: left_early(x, False)).cache()
    for _ in range(3):
        list(rows)


@near("cached-random")
def a_flag_that_is_not_known():
    def by_some_flag(x, augment):
        return tf.cast(x, tf.float32) + (tf.random.normal([]) if augment else 0.0)

    flags = {"augment": False}
    rows = tf.data.Dataset.range(4).map(lambda x: by_some_flag(x, flags["augment"])).cache()
    for _ in range(3):
        list(rows)


@near("cached-random")
def a_helper_that_draws_behind_the_cache():
    def behind_a_cache(x):
        return tf.cast(x, tf.float32) + tf.random.normal([])

    add_noise = lambda x: behind_a_cache(x)  # noqa: E731
    rows = tf.data.Dataset.range(4).cache().map(add_noise)
    for _ in range(3):
        list(rows)
