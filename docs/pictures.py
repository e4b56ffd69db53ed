"""Takes the README's pictures from a real notebook: `python -m docs.pictures` (needs the `test` extra and a Chromium).

A small program with a bug runs in JupyterLab; the panel and the ledger with the finding about the bug are photographed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.jupyter_ext.lab import Notebook, Server, browser, close_browser, write_notebook

IMAGES = Path(__file__).parent / "images"
_MOST_BYTES = 150_000
_SETUP = """
%load_ext pyfunc_debug
import numpy as np, tensorflow as tf

def decode(i):
    y, x = np.mgrid[0:48, 0:48] / 48
    sky = np.stack([.4 + .4 * y, .6 + .25 * y, .9 - .05 * y], -1)
    sky[(x - .3 - i % 5 / 10) ** 2 + (y - .25) ** 2 < .01] = (.98, .88, .5)
    sky[y > .65 + .1 * np.sin(x * 9 + i)] = (.3, .45, .3) if i % 37 else (0, 0, 0)
    return (sky * 255 * (i % 37 > 0)).astype(np.uint8)

def contrast(x):
    x = x.astype(np.float32)
    with np.errstate(invalid="ignore"):
        return ((x - x.min()) / (x.max() - x.min())).astype(np.float32)

def log_huber(y, x):
    error = y - x
    return tf.reduce_mean(tf.math.log1p(error ** 2))

def images(n):
    ds = tf.data.Dataset.range(n)
    ds = ds.map(lambda i: tf.numpy_function(decode, [i], tf.uint8), num_parallel_calls=3)
    ds = ds.map(
        lambda x: tf.ensure_shape(tf.numpy_function(contrast, [x], tf.float32), [48, 48, 3]), num_parallel_calls=3)
    return ds.batch(8).prefetch(2)

w = tf.Variable(.5)

@tf.function
def train_step(x, lr):
    with tf.GradientTape() as tape:
        loss = tf.py_function(log_huber, [w * x, x], tf.float32)
    w.assign_sub(lr * tape.gradient(loss, w))
    return loss
"""
_TRACED = """%%pyfunc_trace --values full
for step, x in enumerate(images(240)):
    train_step(x, 1e-2 if step < 15 else 5e-3)"""


def main() -> None:
    """Writes docs/images/panel.png and docs/images/ledger.png."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        write_notebook(Path(folder) / "train.ipynb", [_SETUP, _TRACED])
        with Server(Path(folder)) as server, browser((1500, 900)) as page:
            notebook = Notebook(page, server, "train.ipynb")
            notebook.wait_kernel()
            for cell in (0, 1):
                notebook.run(cell)
                notebook.wait(cell)
            panel = page.locator(".jp-OutputArea .pfd").first
            panel.locator(".calls tr[data-call]").first.wait_for()
            panel.locator('.ledger tr:has-text("decode")').first.click()
            panel.locator(".calls tr[data-call]").nth(2).click()
            panel.locator(".imgs canvas").first.wait_for()
            panel.press("f")
            page.wait_for_timeout(1500)  # a picture, not a test: what is asked for has come by then
            _shoot(panel, "panel.png")
            panel.locator('.ledger tr:has-text("contrast")').first.click()
            panel.get_by_role("tab", name="Findings").click()
            panel.locator(".finds li").first.wait_for()
            page.wait_for_timeout(500)
            _shoot(panel, "ledger.png")
    close_browser()


def _shoot(panel: object, name: str) -> None:
    path = IMAGES / name
    panel.screenshot(path=str(path))  # type: ignore[attr-defined]  # playwright's Locator, which is not checked here
    if path.stat().st_size > _MOST_BYTES:
        raise SystemExit(f"{path} is larger than {_MOST_BYTES:,} bytes")
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
