"""A pasted loss trains where NumPy's value is finite and the gradient of the plain op is NaN: at equal rows, at 0."""

from __future__ import annotations

import ast

import numpy as np
import pytest
import tensorflow as tf

from pyfunc_debug.doctor.failures.pastes.slope_bounds import bounded_tree
from tests.doctor.test_failures import apply, run
from tests.share import some

HEAD = "import math\nimport numpy as np\nimport tensorflow as tf\n"
MODEL = """layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input((4,)), layers.Dense(3, kernel_initializer="zeros")MORE])
x = np.linspace(0, 1, 32, dtype="float32").reshape(8, 4)
y = np.zeros((8, 3), "float32")
y[4:] = 1
"""
FIT = """model.compile("sgd", loss=loss_fn)
model.fit(x, y, epochs=2, batch_size=8, shuffle=False, verbose=0)
"""
STEP = """optimizer = tf.keras.optimizers.SGD(0.01)
@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        pred = model(x, training=True)
        loss = loss_fn(y, pred)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss
for _ in range(2):
    train_step(tf.constant(x), tf.constant(y))
"""
EAGER = STEP.replace("@tf.function\n", "")
WAYS = {"keras": FIT, "step": STEP, "eager": EAGER}
SQUARES = " + np.mean((y_true - y_pred) ** 2)"
LOSSES = {
    "norm_of_rows": ("return np.mean(np.linalg.norm(y_true - y_pred, axis=1))", "keras step eager"),
    "norm_of_all": ("return np.linalg.norm(y_pred)" + SQUARES, "keras eager"),
    "root_of_squares": ("return np.mean(np.sqrt(np.mean(np.square(y_true - y_pred), axis=-1)))", "keras step"),
    "pairwise": (
        "d = y_pred[:, np.newaxis] - y_pred[np.newaxis]\ndist = np.sqrt(np.sum(d ** 2, axis=-1))\n"
        "return np.mean(dist)" + SQUARES,
        "keras eager",
    ),
    "triplet": (
        "a, p, n = y_pred[:2], y_pred[2:4], y_pred[4:6]\nnear = np.linalg.norm(a - p, axis=1)\n"
        "far = np.linalg.norm(a - n, axis=1)\nreturn np.mean(np.maximum(near - far + 1.0, 0.0))",
        "step eager",
    ),
    "contrastive": (
        "d = np.sqrt(np.sum((y_pred[:4] - y_pred[4:]) ** 2, axis=1))\nsame = y_true[:4, 0]\n"
        "return np.mean(same * d ** 2 + (1 - same) * np.maximum(1 - d, 0) ** 2)",
        "keras",
    ),
    "deviation": ("return np.mean(np.std(y_pred, axis=0))" + SQUARES, "keras eager"),
    "half_power": ("return np.mean(np.mean((y_true - y_pred) ** 2, axis=1) ** 0.5)", "keras step"),
    "half_power_on_a_line_of_its_own": (
        "gap = np.sum(np.square(y_true - y_pred), axis=-1)\ndist = gap ** 0.5\nreturn np.mean(dist)", "keras eager",
    ),
    "hypot": ("d = y_true - y_pred\nreturn np.mean(np.hypot(d[:, 0], d[:, 1]))", "keras step"),
    "chosen_logarithm": ("p = np.abs(y_pred)\nreturn np.mean(np.where(p > 0, p * np.log(p), 0.0))" + SQUARES, "keras"),
    "chosen_share": (
        "s = np.sum(np.abs(y_pred), axis=1, keepdims=True)\nshare = np.where(s > 0, y_pred / s, 0.0)\n"
        "return np.mean((y_true - share) ** 2)",
        "keras eager",
    ),
    "chosen_later": (
        "a, b = np.abs(y_true), np.abs(y_pred)\ninter = np.sum(np.minimum(a, b), axis=-1)\n"
        "union = np.sum(np.maximum(a, b), axis=-1)\niou = inter / union\n"
        "return np.mean(1 - np.where(union > 0, iou, 1.0))" + SQUARES,
        "keras",
    ),
    "divided_where": (
        "total = np.sum(np.abs(y_pred), axis=1, keepdims=True)\n"
        "share = np.divide(y_pred, total, out=np.zeros_like(y_pred), where=total != 0)\n"
        "return np.mean((y_true - share) ** 2)",
        "keras step",
    ),
    "logarithm_where": (
        "p = np.abs(y_pred)\nlogs = np.log(p, out=np.zeros_like(p), where=p > 0)\n"
        "return np.mean(p * logs)" + SQUARES,
        "keras",
    ),
    "distances_of_scipy": (
        "from scipy.spatial.distance import cdist\nd = cdist(y_true, y_pred)\nreturn np.mean(d.min(axis=1))", "",
    ),
    "angle_of_equal_rows": (
        "dot = np.sum(y_true * y_pred, axis=1)\nreturn np.mean(np.arccos(np.clip(1 - dot, -1.0, 1.0)))", "keras",
    ),
    "direction": ("return np.mean(np.arctan2(y_pred[:, 0], y_pred[:, 1]) ** 2)" + SQUARES, "step"),
    "loop_of_roots": (
        "total = 0.0\nfor t, p in zip(y_true.numpy(), y_pred.numpy()):\n    total += math.sqrt(np.sum((t - p) ** 2))\n"
        "return total / len(y_true)",
        "keras step eager",
    ),
    "loop_of_norms": (
        "losses = []\nfor t, p in zip(y_true.numpy(), y_pred.numpy()):\n    losses.append(np.linalg.norm(t - p))\n"
        "return np.mean(losses)",
        "keras eager",
    ),
    "arrays_of_tensors": (
        "d = y_true.numpy() - y_pred.numpy()\nd = d * 2\nreturn np.sqrt((d ** 2).mean(axis=1)).mean()", "step eager",
    ),
}  # fmt: skip


def program(body, way, more=""):
    lines = body.replace("\n", "\n    ")
    return f"{HEAD}def loss_fn(y_true, y_pred):\n    {lines}\n{MODEL.replace('MORE', more)}{WAYS[way]}"


def mended(source, tmp_path, rounds=2):
    """What was told, the source with its pastes, and the program's names at the end of it."""
    path, said = tmp_path / "program.py", []
    path.write_text(source)
    for number in range(rounds + 1):
        names: dict[str, object] = {}
        error, told, _ = run(path, names)
        if error is None:
            return "\n".join(said), path.read_text(), names
        said.append(told)
        assert apply(told, path), f"{error}\n{told}"
        after = tmp_path / str(number) / "program.py"
        after.parent.mkdir()
        path = path.rename(after)
    raise AssertionError(f"it still fails: {error}\n{path.read_text()}")


@pytest.mark.parametrize(
    ("name", "way"),
    some(((f"{name}-{way}", (name, way)) for name, (_, ways) in LOSSES.items() for way in ways.split()), 4),
)
def test_a_pasted_loss_trains_where_its_gradient_would_be_nan(name, way, tmp_path):
    _, source, names = mended(program(LOSSES[name][0], way), tmp_path)
    assert all(np.isfinite(one).all() for one in names["model"].get_weights()), source
    assert any(one in source for one in ("  # 1", "  # not 1", "no_nan(", "logs = tf.where"))
    assert "py_function" not in source


@pytest.mark.parametrize("way", ["keras", "eager"])
def test_scipys_distances_are_pasted_in_ops(way, tmp_path):
    imported, _, body = LOSSES["distances_of_scipy"][0].partition("\n")
    _, source, names = mended(f"{imported}\n{program(body, way)}", tmp_path)
    assert all(np.isfinite(one).all() for one in names["model"].get_weights()), source
    assert "cdist(y_true" not in source


UNIT = "def unit(x):\n    size = np.linalg.norm(x, axis=-1, keepdims=True)\n    return x / (size + 1e-6)\n"
SPREAD = """class Norm(tf.keras.layers.Layer):
    def call(self, x):
        mean = np.mean(x, axis=-1, keepdims=True)
        return (x - mean) / (np.std(x, axis=-1, keepdims=True) + 1e-5)
"""


@pytest.mark.parametrize(("made", "layer"), [(UNIT, "layers.Lambda(unit)"), (SPREAD, "Norm()")])
def test_a_pasted_layer_behind_trained_ones_trains(made, layer, tmp_path):
    fit = FIT.replace("loss_fn", '"mse"')
    _, source, names = mended(f"{HEAD}{made}{MODEL.replace('MORE', f', {layer}')}{fit}", tmp_path)
    assert all(np.isfinite(one).all() for one in names["model"].get_weights()), source
    assert "1e-12" in source


BODY = """def distance(a, b):
    return np.mean(np.sqrt(np.sum((a - b) ** 2, axis=1))).astype(np.float32)
def loss_fn(a, b):
    return tf.numpy_function(distance, [a, b], tf.float32)
"""


def test_a_body_that_becomes_ops_trains(tmp_path):
    _, source, names = mended(f"{HEAD}{BODY}{MODEL.replace('MORE', '')}{STEP}", tmp_path)
    assert all(np.isfinite(one).all() for one in names["model"].get_weights()), source
    assert "1e-12" in source


def test_a_finding_about_a_gradient_has_the_bound_too(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        f"{HEAD}w = tf.Variable(tf.zeros([3]))\nv = tf.Variable(1.0)\n"
        "def size(x):\n    return np.sqrt(np.sum(np.square(x)))\n"
        "@tf.function\ndef step():\n    with tf.GradientTape() as tape:\n"
        "        loss = v * v + tf.numpy_function(size, [w], tf.float32)\n"
        "    return tape.gradient(loss, [v, w])\nstep()\n"
    )
    error, _, recording = run(path)
    assert error is None
    (finding,) = [one for one in recording.findings() if one.rule == "cut-gradient"]
    assert "tf.sqrt(tf.where(" in finding.fix or "tf.sqrt(tf.maximum(" in finding.fix
    assert "1e-12" in finding.fix


RMSE = "def rmse(y_true, y_pred):\n    return np.sqrt(np.mean(np.square(y_true - y_pred), axis=-1))\n"
PLAIN = {
    "what a map computes": (
        "def unit(x):\n    return x / np.linalg.norm(x)\n"
        "for one in tf.data.Dataset.from_tensor_slices(np.ones((8, 3), 'float32')).map(unit):\n    pass\n",
        "x / tf.norm(x)",
    ),
    "a metric": (
        f"{RMSE}{MODEL.replace('MORE', '')}model.compile('sgd', 'mse', metrics=[rmse])\n"
        "model.fit(x, y, batch_size=8, verbose=0)\n",
        "return tf.sqrt(tf.reduce_mean(tf.square(y_true - y_pred), axis=-1))",
    ),
    "no tape": (
        f"{RMSE}print(tf.function(rmse)(tf.ones([4, 3]), tf.zeros([4, 3])))\n",
        "return tf.sqrt(tf.reduce_mean(tf.square(y_true - y_pred), axis=-1))",
    ),
    "a bound of the user's": (
        program("return np.mean(np.sqrt(np.mean(np.square(y_true - y_pred), axis=-1) + 1e-9))", "keras"),
        "tf.sqrt(tf.reduce_mean(tf.square(y_true - y_pred), axis=-1) + 1e-09)",
    ),
    "a number that has a name": (
        f"EPS = 1e-6\n{program('return np.mean(np.sqrt(np.sum((y_true - y_pred) ** 2, axis=1) + EPS))', 'step')}",
        "tf.sqrt(tf.reduce_sum((y_true - y_pred) ** 2, axis=1) + EPS)",
    ),
    "the root of labels": (
        program("return np.mean((np.sqrt(y_true) - y_pred) ** 2)", "keras"), "(tf.sqrt(y_true) - y_pred) ** 2",
    ),
    "squares only": (
        program("return np.mean(np.square(y_true - y_pred))", "step"), "tf.reduce_mean(tf.square(y_true - y_pred))",
    ),
    "no zero in a softmax's sum": (
        program("e = np.exp(y_pred)\nreturn np.mean((y_true - e / np.sum(e, axis=1, keepdims=True)) ** 2)", "keras"),
        "e / tf.reduce_sum(e, axis=1, keepdims=True)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", some(((name, name) for name in PLAIN), 4))
def test_the_op_stays_plain_where_nothing_is_differentiated_or_nothing_is_0(name, tmp_path):
    source, line = PLAIN[name]
    _, after, _ = mended(source if source.startswith(("import", "EPS")) else HEAD + source, tmp_path)
    assert line in after
    assert "  # 1" not in after


OPS = [
    ("tf.norm(_0)", [0.0, 0.0]), ("tf.norm(_0, axis=1, keepdims=True)", [[0.0, 0.0], [3.0, 4.0]]),
    ("tf.sqrt(_0)", [0.0, 4.0]), ("tf.sqrt(tf.maximum(_0, 0.0))", [0.0, 4.0, -1.0]), ("_0 ** 0.5", [0.0, 4.0]),
    ("tf.pow(_0, 1 / 2)", [0.0, 4.0]), ("tf.math.reduce_std(_0, 1)", [[1.0, 1.0], [1.0, 3.0]]),
    ("tf.atan2(_0, _0)", [0.0, 2.0]), ("tf.where(_0 > 0, 1 / _0, 0.0)", [0.0, 2.0]),
    ("tf.where(_0 > 0, _0 * tf.math.log(_0), 0.0)", [0.0, 2.0]), ("tf.acos(_0)", [1.0, 0.5, -1.0]),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("text", "values"), OPS)
def test_bounds_leave_the_values_and_make_the_gradient_finite(text, values, dtype):
    tree = ast.parse(text, mode="eval").body
    after = ast.unparse(bounded_tree(tree, "tf"))
    x = tf.constant(values, dtype)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        plain = eval(text, {"tf": tf, "_0": x})
        bounded = eval(after, {"tf": tf, "_0": x})
    weights = tf.cast(np.arange(plain.shape.num_elements()).reshape(plain.shape), dtype)  # of the first one 0
    assert bounded.dtype == dtype
    np.testing.assert_allclose(plain, bounded, atol=5e-4 if "acos" in text else 2e-6)
    assert not np.isfinite(tape.gradient(plain, x)).all() or not weights.shape.rank
    assert np.isfinite(tape.gradient(bounded, x)).all()
    chosen = np.array(values) != 0
    if text in ("tf.sqrt(_0)", "_0 ** 0.5"):
        np.testing.assert_allclose(tape.gradient(bounded, x)[chosen], tape.gradient(plain, x)[chosen], rtol=1e-5)


def test_a_root_of_what_is_negative_stays_nan():
    after = ast.unparse(bounded_tree(ast.parse("tf.sqrt(_0)", mode="eval").body, "tf"))
    assert np.isnan(eval(after, {"tf": tf, "_0": tf.constant([-1.0])})).all()
