"""Figures of the panel and the report, against their limits: `python benchmarks/panel.py [--quick]`.

Measured on whatever machine runs it; limits are those of issue 5. Recordings are made by the tests' generator, without
TensorFlow; the overhead of an open panel is measured in a real JupyterLab with real TensorFlow.
"""

# ruff: noqa: E501 - JavaScript is long lines
from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pyfunc_debug.report import html
from pyfunc_debug.report.answers import Answers
from tests.jupyter_ext.lab import ROOT, Notebook, Server, browser, write_notebook
from tests.report import recordings


def row(what: str, value: float, unit: str, limit: float | None = None) -> None:
    verdict = "" if limit is None else f"  limit {limit:g}  {'good' if value <= limit else 'TOO MUCH'}"
    print(f"{what:<58} {value:>10.3g} {unit:<3}{verdict}", flush=True)


def bundle() -> None:
    row("bundle panel.js", (ROOT / "jupyter_ext/static/panel.js").stat().st_size / 1e3, "kB", 300)
    row("styles panel.css", (ROOT / "jupyter_ext/static/panel.css").stat().st_size / 1e3, "kB")


def report(folder: Path) -> None:
    path = recordings.large(folder / "hundred.pfrec", 100_000)
    start = time.perf_counter()
    out = html.write(path, folder / "hundred.html")
    row("report of 100,000 calls: written in", time.perf_counter() - start, "s")
    row("report of 100,000 calls: size", Path(out).stat().st_size / 1e6, "MB", 10)
    with browser((1200, 900)) as page:
        times = []
        for _ in range(3):
            page.goto("about:blank")
            start = time.perf_counter()
            page.goto(f"file://{out}")
            page.wait_for_selector("#pfd-report[data-ready]")
            times.append(time.perf_counter() - start)
        row("report of 100,000 calls: opens in (median of 3)", statistics.median(times), "s", 2)
        script = """() => { const t = document.getElementById('pfd-report').panel.timeline; const times = [];
            for (let i = 0; i < 60; i++) { t.zoom(i % 2 ? 1.1 : 1 / 1.1); const a = performance.now(); t.paintNow(); times.push(performance.now() - a); }
            times.sort((a, b) => a - b); return times[57]; }"""
        row("100,000 calls: one frame while zooming (p95)", page.evaluate(script), "ms", 16.7)


def million(folder: Path, count: int) -> None:
    path = recordings.large(folder / "million.pfrec", count)
    start = time.perf_counter()
    answers = Answers(path)
    row(f"{count:,} calls: opened in", time.perf_counter() - start, "s")
    random.seed(1)
    asked = [("call", lambda: {"id": random.randrange(1, count)}), ("ledger", dict), ("overview", dict),
             ("timeline", lambda: {"start_ns": 0, "end_ns": answers.extent()[1], "width": 600}),
             ("calls", lambda: {"nodes": [1], "sort": "wait", "descending": True, "limit": 100})]  # fmt: skip
    for method, params in asked:
        times = []
        for _ in range(10):
            with answers.reading():
                if method == "ledger":
                    answers.use_findings(None)  # forget the last answer
                given = params()
                start = time.perf_counter()
                answers.ask(method, given)
            times.append(time.perf_counter() - start)
        row(f"{count:,} calls: {method} (median of 10)", statistics.median(times) * 1e3, "ms")
    clicks(folder, path, count)


def clicks(folder: Path, path: Path, count: int) -> None:
    setup = f"%load_ext pyfunc_debug\nimport pyfunc_debug as pfd\n_pyfunc = pfd.open({str(path)!r})"
    write_notebook(folder / "show.ipynb", [setup, "%pyfunc_show"])
    with Server(folder) as server, browser((1400, 900)) as page:
        notebook = Notebook(page, server, "show.ipynb")
        notebook.wait_kernel()
        for cell in (0, 1):
            notebook.run(cell)
            notebook.wait(cell)
        page.wait_for_selector(".pfd .calls tr[data-call]", timeout=120_000)
        page.evaluate("() => document.querySelector('.pfd').scrollIntoView()")
        page.wait_for_timeout(3000)
        script = """async (i) => { const row = document.querySelectorAll('.pfd .calls tr[data-call]')[i]; const n = row.dataset.call;
            const start = performance.now(); row.click();
            while (!document.querySelector('.pfd .d-call .ttl')?.textContent.endsWith('#' + n)) await new Promise((r) => setTimeout(r, 1));
            return performance.now() - start; }"""
        times = []
        for i in range(12):
            times.append(page.evaluate(script, i))
            page.wait_for_timeout(400)
        row(f"{count:,} calls: click to detail in JupyterLab (median of 12)", statistics.median(times), "ms", 100)
        row(f"{count:,} calls: click to detail in JupyterLab (worst of 12)", max(times), "ms")


def overhead(folder: Path, rounds: int) -> None:
    setup = """%load_ext pyfunc_debug
import time, tensorflow as tf
from statistics import median
def body(x): return x + 1
@tf.function
def step(x):
    for _ in tf.range(200): x = tf.ensure_shape(tf.numpy_function(body, [x], tf.float32), [8])
    return x
x = tf.ones([8]); step(x); times = {'without': [], 'again': [], 'with': []}"""
    loop = """t, c = time.perf_counter(), time.process_time()
for i in range(100): r = step(x)
times['NAME'].append((time.perf_counter() - t, time.process_time() - c))"""
    cells = [setup]
    for _ in range(rounds):
        cells += [f"%%pyfunc_trace --no-panel\n{loop.replace('NAME', name)}" for name in ("without", "again")]
        cells.append(f"%%pyfunc_trace\n{loop.replace('NAME', 'with')}")
    ratio = "median(one[{i}] / other[{i}] for one, other in zip(times['{name}'][1:], times['without'][1:]))"
    ratios = ", ".join(ratio.format(i=i, name=name) for i in (0, 1) for name in ("again", "with"))
    cells.append(f"print({ratios})")
    with Server(folder) as server, browser((1400, 900)) as page:
        write_notebook(folder / "overhead.ipynb", cells)
        notebook = Notebook(page, server, "overhead.ipynb")
        notebook.wait_kernel()
        for cell in range(len(cells)):
            notebook.run(cell)
            notebook.wait(cell)
        null, panel, null_cpu, panel_cpu = map(float, notebook.outputs(len(cells) - 1)[0]["text"].split())
    row(f"two equal loops (median of {rounds - 1})", (null - 1) * 100, "%")
    row("two equal loops, CPU of the kernel", (null_cpu - 1) * 100, "%")
    row("panel open beside a busy loop, browser on the same cores", (panel - 1) * 100, "%")
    row("panel open beside a busy loop, CPU of the kernel", (panel_cpu - 1) * 100, "%", 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the calls")
    parser.add_argument("--only", choices=["report", "million", "overhead"])
    parser.add_argument("--rounds", type=int, default=8, help="of the loops beside an open panel")
    options = parser.parse_args()
    bundle()
    with tempfile.TemporaryDirectory(prefix="pfd-bench-") as name:
        folder = Path(name)
        if options.only in (None, "report"):
            report(folder)
        if options.only in (None, "million"):
            million(folder, 100_000 if options.quick else 1_000_000)
        if options.only in (None, "overhead"):
            overhead(folder, 3 if options.quick else options.rounds)


if __name__ == "__main__":
    main()
