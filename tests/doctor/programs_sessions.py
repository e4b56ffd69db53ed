"""Programs that do not fail, as `programs`: graphs of TensorFlow 1, their sessions, and branches of a graph."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- never-fetched ----------------------------------------------------------------------------------------------------


@triggers("never-fetched", pastes=True, says="nothing reads its result `overlaps` but to look at the graph's tensor")
def an_overlap_beside_the_loss():
    def iou(boxes, targets):
        return np.minimum(boxes, targets).sum(axis=1)

    def loss_of(boxes, targets):
        difference = boxes - targets
        overlaps = tf.compat.v1.py_func(iou, [boxes, targets], [tf.float32])
        print(overlaps)
        difference = tf.square(difference)
        return tf.reduce_mean(difference)

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loss = loss_of(tf.constant([[1.0, 2.0]]), tf.constant([[2.0, 2.0]]))
        assert session.run(loss) == 0.5


@triggers("never-fetched", pastes=True, says="nothing takes its result")
def a_body_that_logs():
    def log(x):
        assert x.size

    def halved(x):
        tf.numpy_function(log, [x], [])
        return x / 2

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [2])
        y = halved(x)
        for _ in range(3):
            session.run(y, {x: [1.0, 2.0]})


@triggers("never-fetched", pastes=True, says="makes no op, so that nothing waits for `checked`")
def a_check_around_a_return():
    def check(x):
        return bool(np.isfinite(x).all())

    def safe(x):
        y = tf.sqrt(x)
        checked = tf.py_function(lambda y: check(y.numpy()), [y], tf.bool)
        with tf.control_dependencies([checked]):
            return y

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(safe(tf.constant([1.0, 4.0])))


@triggers("never-fetched", pastes=True)
def a_histogram_of_what_is_fetched():
    def counted(x):
        return np.histogram(x)[0]

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.random.stateless_uniform([8], [1, 2])
        counts = tf.compat.v1.py_func(counted, [x], tf.int64)
        counts.set_shape([10])
        mean = tf.reduce_mean(x)
        session.run(mean)


@near("never-fetched")
def a_check_that_an_op_waits_for():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.constant([1.0, 4.0])
        checked = tf.numpy_function(lambda x: bool(np.isfinite(x).all()), [x], tf.bool)
        with tf.control_dependencies([checked]):
            y = tf.sqrt(x)
        session.run(y)


@near("never-fetched")
def a_summary_that_is_fetched_some_day():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.constant([1.0, 4.0])
        largest = tf.numpy_function(np.max, [x], tf.float32)
        mean = tf.reduce_mean(x)
        for step in range(3):
            session.run([mean, largest] if step == 100 else [mean])


@near("never-fetched")
def a_body_that_logs_in_a_function():
    @tf.function
    def halved(x):
        tf.py_function(lambda x: None, [x], [])
        return x / 2

    halved(tf.constant([1.0]))


@near("never-fetched")
def fetched_by_its_name():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.numpy_function(np.max, [tf.constant([1.0, 4.0])], tf.float32, name="largest")
        session.run("largest:0")


# -- outside-branch ---------------------------------------------------------------------------------------------------


@triggers("outside-branch", pastes=True, says="`rate` is made outside of it, and read by one branch only (6 calls)")
def a_rate_for_some_steps():
    def measured(w):
        return np.float32(0.1 * np.linalg.norm(w))

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        step = tf.compat.v1.placeholder(tf.int32, [])
        w = tf.constant([3.0, 4.0])
        rate = tf.compat.v1.py_func(measured, [w], tf.float32)
        used = tf.cond(tf.equal(step % 3, 0), lambda: rate * 1.0, lambda: tf.constant(0.1))
        for number in range(6):
            session.run(used, {step: number})


@triggers("outside-branch", pastes=True, says="turned runs whichever branch the tf.cond")
def an_augmentation_with_a_shape():
    def turned(image):
        return image[::-1]

    @tf.function
    def augment(image, wanted):
        other = tf.numpy_function(turned, [image], tf.float32)
        other.set_shape([2, 2])
        return tf.cond(wanted, lambda: other, lambda: image)

    for wanted in (True, False, False):
        augment(tf.ones([2, 2]), tf.constant(wanted))


@triggers("outside-branch", pastes=True, says="train_rows and test_rows run whichever branch the tf.cond")
def two_readers():
    def train_rows():
        return np.ones(3, np.float32)

    def test_rows():
        return np.zeros(3, np.float32)

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        training = tf.compat.v1.placeholder(tf.bool, [])
        train = tf.numpy_function(train_rows, [], tf.float32)
        test = tf.numpy_function(test_rows, [], tf.float32)
        rows = tf.cond(training, lambda: train, lambda: test)
        session.run(rows, {training: True})


@triggers("outside-branch", pastes=True)
def a_branch_with_a_name():
    def slow(x):
        return np.sort(x)

    @tf.function
    def median(x):
        ordered = tf.numpy_function(slow, [x], tf.float32)

        def middle():
            size = tf.size(ordered)
            return ordered[size // 2]

        return tf.cond(tf.size(x) > 2, true_fn=middle, false_fn=lambda: x[0])

    median(tf.constant([3.0, 1.0, 2.0]))


@near("outside-branch")
def made_in_the_branch():
    @tf.function
    def augment(image, wanted):
        return tf.cond(wanted, lambda: tf.numpy_function(np.negative, [image], tf.float32), lambda: image)

    augment(tf.ones([2, 2]), tf.constant(True))


@near("outside-branch")
def read_by_both_branches():
    @tf.function
    def scaled(x, wanted):
        size = tf.numpy_function(np.max, [x], tf.float32)
        return tf.cond(wanted, lambda: x / size, lambda: x - size)

    scaled(tf.ones([2]), tf.constant(True))


@near("outside-branch")
def read_by_the_condition_too():
    @tf.function
    def clipped(x):
        size = tf.numpy_function(np.max, [x], tf.float32)
        return tf.cond(size > 1.0, lambda: x / size, lambda: x)

    clipped(tf.ones([2]))


@near("outside-branch")
def read_by_a_mapped_function():
    @tf.function
    def scaled(rows):
        size = tf.numpy_function(np.max, [rows], tf.float32)
        return tf.map_fn(lambda row: row / size, rows)

    scaled(tf.ones([2, 2]))


# -- cut-gradient: asked of a graph, and None in silence --------------------------------------------------------------


@triggers("cut-gradient", says="`tf.gradients(loss, [x, y])` gives None for x and y: the only way from them to loss")
def gradients_behind_a_py_func():
    def product(a, b):
        return np.float32(a * b)

    with tf.Graph().as_default():
        x = tf.compat.v1.get_variable("x", [2])
        y = tf.compat.v1.get_variable("y", [2])
        made = tf.compat.v1.py_func(product, [x, y], tf.float32)
        loss = tf.square(13.0 - made)
        print(tf.gradients(loss, [x, y]))


@triggers("cut-gradient", says="gives None for x: the only way from it to tf.reduce_sum(squashed) goes through")
def gradients_of_an_input():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
        scaled = x * 2.0
        squashed = tf.numpy_function(lambda v: np.tanh(v), [scaled], tf.float32)
        assert tf.gradients(tf.reduce_sum(squashed), x) == [None]
        session.run(squashed, {x: [1.0, 2.0]})


@near("cut-gradient")
def gradients_that_go_beside_a_py_func():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
        noise = tf.numpy_function(lambda v: np.sign(v), [x], tf.float32)
        loss = tf.reduce_sum(x * noise)
        gradient = tf.gradients(loss, x)[0]
        session.run(gradient, {x: [1.0, 2.0]})


@near("cut-gradient")
def gradients_of_what_a_py_func_made():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
        read = tf.numpy_function(lambda v: v + np.float32(1), [x], tf.float32)
        loss = tf.reduce_sum(tf.square(read))
        gradient = tf.gradients(loss, read)[0]
        session.run(gradient, {x: [1.0, 2.0]})


# -- growing-graph ----------------------------------------------------------------------------------------------------


def elements():
    made = tf.data.Dataset.from_tensor_slices(np.arange(100, dtype=np.float32))
    return tf.compat.v1.data.make_one_shot_iterator(made)


@triggers("growing-graph", pastes=True, says="`it.get_next()` adds 1 op to the graph in each turn")
def the_next_element_in_each_turn():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        it = elements()
        total = 0.0
        for _ in range(30):
            total += session.run(it.get_next())
        assert total == 435.0


@triggers("growing-graph", pastes=True, says="`tf.add(x, 1.0)` adds 2 ops to the graph in each turn")
def a_sum_in_each_turn():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x, step = tf.compat.v1.placeholder(tf.float32), 0
        while step < 25:
            _, found = session.run([x, tf.add(x, 1.0)], {x: step})
            assert found == step + 1
            step += 1


@triggers("growing-graph", pastes=True, says="`model(x)` adds")
def a_model_in_each_turn():
    def model(x):
        return tf.reduce_sum(tf.square(x))

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [2])
        for epoch in range(5):
            for step in range(8):
                loss = model(x)
                found = session.run(loss, {x: [epoch, step]})
                assert found == epoch**2 + step**2


@triggers("growing-graph", pastes=True, says="`it.get_next()` adds 1 op to the graph in each turn")
def an_element_until_there_is_none():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        it, count = elements(), 0
        try:
            while True:
                it.get_next().eval(session=session)
                count += 1
        except tf.errors.OutOfRangeError:
            pass
        assert count == 100


@triggers("growing-graph", says="by a placeholder and feed_dict")
def an_assignment_in_each_turn():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        rate = tf.compat.v1.get_variable("rate", [], use_resource=True)
        for step in range(30):
            session.run(rate.assign(0.1 / (step + 1)))


@triggers("growing-graph", says="by a placeholder and feed_dict")
def a_buffer_that_changes():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        kept = np.zeros(3, np.float32)
        for step in range(30):
            kept[step % 3] += 1
            session.run(tf.reduce_sum(kept))


@triggers("growing-graph", says="by a placeholder and feed_dict")
def an_iterator_in_each_turn():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = tf.data.Dataset.range(3)
        for _ in range(30):
            assert session.run(tf.compat.v1.data.make_one_shot_iterator(made).get_next()) == 0


@near("growing-graph")
def the_next_element_asked_for_once():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        following = elements().get_next()
        for _ in range(60):
            session.run(following)


@near("growing-graph")
def a_graph_in_each_turn():
    for number in range(40):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            x = tf.constant(float(number))
            for _ in range(2):
                session.run(tf.add(x, 1.0))


@near("growing-graph")
def parts_that_are_made_as_they_are_needed():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32)
        heads = {}
        for step in range(60):
            if step % 6 not in heads:
                heads[step % 6] = x * float(step)
            session.run(heads[step % 6], {x: 1.0})


# -- body-raised: NaN that a training step put into the weights (3D-BoNet#24) -----------------------------------------


@triggers(
    "body-raised", pastes=True, ends_with=tf.errors.InvalidArgumentError,
    says="which no call before had. In the training step before it, line",
)  # fmt: skip
def a_mean_over_a_mask_without_an_entry():
    def assign(cost):
        if np.isnan(cost).any():
            raise ValueError("matrix contains invalid numeric entries")
        return cost.argmin(axis=-1).astype(np.int32)

    def masked_loss(predicted, targets, mask):
        squared = (predicted - targets) ** 2
        return tf.reduce_sum(squared * mask) / tf.reduce_sum(mask)

    def build(x, targets, mask):
        with tf.compat.v1.variable_scope("masked", reuse=tf.compat.v1.AUTO_REUSE):
            weights = tf.compat.v1.get_variable("weights", [3])
        predicted = x * weights
        order = tf.compat.v1.py_func(assign, [predicted], tf.int32)
        loss = masked_loss(predicted, targets, mask)
        return order, tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss)

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x, targets, mask = (tf.compat.v1.placeholder(tf.float32, [None, 3]) for _ in range(3))
        ops = build(x, targets, mask)
        session.run(tf.compat.v1.global_variables_initializer())
        for kept in (1.0, 0.0, 1.0):
            session.run(ops, {x: np.ones((2, 3)), targets: np.ones((2, 3)), mask: np.full((2, 3), kept)})


@triggers(
    "body-raised", ends_with=tf.errors.InvalidArgumentError,
    says="with NaN in 1 of its numbers, made in front of it: by an op, or in the data",
)  # fmt: skip
def nan_in_the_first_call():
    def whole(x):
        if np.isnan(x).any():
            raise ValueError("matrix contains invalid numeric entries")
        return x

    def build(x, mask):
        with tf.compat.v1.variable_scope("first", reuse=tf.compat.v1.AUTO_REUSE):
            weights = tf.compat.v1.get_variable("weights", [2])
        checked = tf.compat.v1.py_func(whole, [x * weights], tf.float32)
        loss = tf.reduce_sum(weights * mask) / tf.reduce_sum(mask)
        return checked, tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss)

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x, mask = (tf.compat.v1.placeholder(tf.float32, [2]) for _ in range(2))
        ops = build(x, mask)
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(ops, {x: [1.0, np.nan], mask: [1.0, 0.0]})


# -- nan-loss: of a session (R2CNN-Plus-Plus#65) ----------------------------------------------------------------------


def trained(loss_of, steps=3, grow=1.0, fetch_dict=False):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None])
        weight = tf.compat.v1.get_variable("weight", [], initializer=tf.compat.v1.ones_initializer())
        loss = loss_of(x * weight)
        train = tf.compat.v1.train.GradientDescentOptimizer(grow).minimize(loss)
        session.run(tf.compat.v1.global_variables_initializer())
        for step in range(steps):
            asked = {"train": train, "loss": loss} if fetch_dict else [train, loss]
            session.run(asked, {x: np.arange(3.0) + step})


@triggers("nan-loss", pastes=True, says="a logarithm of 0 is infinite")
def a_masked_logarithm_of_a_session():
    def overlap(a):
        return np.maximum(a - 1, 0)

    def loss_of(x):
        kept = tf.compat.v1.py_func(overlap, [x], tf.float32)
        mask = tf.cast(kept > 0, tf.float32)
        return tf.reduce_sum(x**2) - tf.reduce_sum(mask * tf.math.log(kept))

    trained(loss_of)


@triggers("nan-loss", pastes=True, says="a sum of 0 divided by a sum of 0 is NaN")
def a_mean_of_no_entry_in_a_session():
    def loss_of(x):
        mask = tf.cast(x > 1, tf.float32) * tf.cast(tf.size(x) > 3, tf.float32)
        return tf.reduce_sum(x * mask) / tf.reduce_sum(mask)

    trained(loss_of, fetch_dict=True)


@triggers("nan-loss", says="as steps of this size lead away from the minimum")
def a_loss_of_a_session_that_grows():
    trained(lambda x: tf.reduce_sum(x**4), steps=8, grow=10.0)


@near("nan-loss")
def a_number_of_a_session_that_nothing_is_trained_by():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None])
        weight = tf.compat.v1.get_variable("weight", [], initializer=tf.compat.v1.ones_initializer())
        loss = tf.reduce_mean((x * weight - 1) ** 2)
        recall = tf.reduce_sum(tf.cast(x > 5, tf.float32) * x) / tf.reduce_sum(tf.cast(x > 5, tf.float32))
        train = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf.compat.v1.global_variables_initializer())
        for _ in range(3):
            session.run([train, loss, recall], {x: np.arange(3.0)})


@near("nan-loss")
def nan_of_a_session_without_a_training():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [])
        logarithm = tf.math.log(x)
        assert np.isnan(session.run(logarithm, {x: -1.0}))


# -- cut-gradient: of an optimizer of TensorFlow 1 (tf-faster-rcnn#288) -----------------------------------------------


def two_layers(
    between, train=lambda loss, first, second: tf.compat.v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
):
    """How far the layer in front of something was trained, and the one behind it."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None, 3])
        first = tf.compat.v1.get_variable("first", [3, 2], initializer=tf.compat.v1.ones_initializer())
        second = tf.compat.v1.get_variable("second", [2, 1], initializer=tf.compat.v1.ones_initializer())
        found = between(tf.matmul(x, first))
        found.set_shape([None, 2])
        loss = tf.reduce_mean((tf.matmul(found, second) - 3.0) ** 2)
        step = train(loss, first, second)
        session.run(tf.compat.v1.global_variables_initializer())
        for _ in range(3):
            session.run([loss, step], {x: np.arange(6.0).reshape(2, 3)})
        return [np.abs(session.run(one) - 1).max() for one in (first, second)]


@triggers("cut-gradient", pastes=True, says="leaves out 1 of 2 variables (first) in silence")
def proposals_between_two_layers():
    def deltas(h):
        return np.maximum(h * 0.1, -1.0).astype(np.float32)

    two_layers(lambda h: tf.compat.v1.py_func(deltas, [h], tf.float32))


@triggers("cut-gradient", says="gradients (")
def gradients_that_are_applied_by_hand():
    def shrunk(h):
        return np.asarray([row / (1 + np.linalg.norm(row)) for row in h], np.float32)

    def train(loss, first, second):
        wanted = tf.compat.v1.trainable_variables()
        slopes = tf.gradients(loss, wanted)
        return tf.compat.v1.train.AdamOptimizer(0.1).apply_gradients(zip(slopes, wanted))

    two_layers(lambda h: tf.numpy_function(shrunk, [h], tf.float32), train)


@triggers("cut-gradient", says="compute_gradients (")
def gradients_of_a_session_that_are_clipped():
    def smoothed(h):
        kept = h.copy()
        kept[1:] += kept[:-1] * 0.5
        return kept

    def train(loss, first, second):
        optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.01)
        pairs = optimizer.compute_gradients(loss)
        return optimizer.apply_gradients([(tf.clip_by_norm(one, 1.0), each) for one, each in pairs if one is not None])

    two_layers(lambda h: tf.compat.v1.py_func(smoothed, [h], tf.float32), train)


@near("cut-gradient")
def proposals_that_are_cut_off_on_purpose():
    def deltas(h):
        return np.minimum(h * 0.1, 9.0).astype(np.float32)

    two_layers(lambda h: tf.stop_gradient(tf.compat.v1.py_func(deltas, [h], tf.float32)))


@near("cut-gradient")
def proposals_of_features_that_are_cut_off_on_purpose():
    def deltas(h):
        return np.minimum(h * 0.2, 9.0).astype(np.float32)

    two_layers(lambda h: tf.compat.v1.py_func(deltas, [tf.stop_gradient(h)], tf.float32))


@near("cut-gradient")
def a_step_for_the_layer_behind_alone():
    def deltas(h):
        return np.minimum(h * 0.3, 9.0).astype(np.float32)

    def train(loss, first, second):
        return tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=[second])

    two_layers(lambda h: tf.compat.v1.py_func(deltas, [h], tf.float32), train)


@near("cut-gradient")
def a_layer_that_has_a_loss_of_its_own():
    def deltas(h):
        return np.minimum(h * 0.4, 9.0).astype(np.float32)

    def train(loss, first, second):
        one, other = (tf.compat.v1.train.GradientDescentOptimizer(0.01) for _ in range(2))
        return tf.group(one.minimize(loss), other.minimize(tf.reduce_sum(first**2)))

    assert min(two_layers(lambda h: tf.compat.v1.py_func(deltas, [h], tf.float32), train)) > 0


@near("cut-gradient")
def a_layer_that_follows_the_other():
    def deltas(h):
        return np.minimum(h * 0.5, 9.0).astype(np.float32)

    def train(loss, first, second):
        step = tf.compat.v1.train.GradientDescentOptimizer(0.01).minimize(loss)
        with tf.control_dependencies([step]):
            return first.assign(0.9 * first + 0.1 * tf.reduce_sum(second))

    two_layers(lambda h: tf.compat.v1.py_func(deltas, [h], tf.float32), train)


@near("cut-gradient")
def a_py_function_between_two_layers():
    def deltas(h):
        return tf.minimum(h * 0.6, 9.0)

    assert min(two_layers(lambda h: tf.py_function(deltas, [h], tf.float32))) > 0


@near("cut-gradient")
def a_metric_beside_the_loss_of_a_session():
    def deltas(h):
        return np.minimum(h * 0.7, 9.0).astype(np.float32)

    def train(loss, first, second):
        other = tf.compat.v1.get_variable("other", [], initializer=tf.compat.v1.ones_initializer())
        metric = tf.compat.v1.py_func(deltas, [first * other], tf.float32)
        step = tf.compat.v1.train.GradientDescentOptimizer(0.01).minimize(loss)
        return tf.group(step, metric)

    two_layers(lambda h: h * 1.0, train)


@near("cut-gradient")
def a_cut_graph_that_is_run_without_its_step():
    def deltas(h):
        return np.minimum(h * 0.8, 9.0).astype(np.float32)

    def train(loss, first, second):
        assert tf.compat.v1.train.GradientDescentOptimizer(0.01).minimize(loss) is not None
        return loss * 2

    two_layers(lambda h: tf.compat.v1.py_func(deltas, [h], tf.float32), train)


@triggers("cut-gradient", says="ends at its Less already, in front of ")
def a_comparison_in_front_of_a_body():
    with tf.Graph().as_default():
        x = tf.constant(np.random.default_rng(0).normal(size=(4, 3)).astype("float32"))
        chosen = tf.compat.v1.get_variable("chosen", (3, 2))
        weights = tf.compat.v1.get_variable("weights", (3, 1))
        logits = tf.matmul(x, chosen)
        mask = tf.cast(logits[:, 0] < logits[:, 1], tf.float32)
        places = tf.compat.v1.py_func(lambda m: np.argsort(-m)[:2].astype(np.int64), [mask], tf.int64)
        loss = tf.reduce_mean(tf.matmul(tf.gather(x, places), weights) ** 2)
        train = tf.compat.v1.train.AdamOptimizer().minimize(loss)
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            session.run(train)
