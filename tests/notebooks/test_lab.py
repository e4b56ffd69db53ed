"""A lesson as a learner opens it: in JupyterLab, in a browser, with an answer typed at the prompt."""

from __future__ import annotations

from pyfunc_debug.cli.lessons import copy_lessons
from tests.jupyter_ext.lab import Notebook, Server, browser

CELLS = "window.jupyterapp.shell.currentWidget.content.widgets"

BOX = "input.jp-Stdin-input:not([data-answered])"


def test_the_lesson_on_breakpoints_is_a_dialogue_in_jupyterlab(tmp_path):
    (lesson,) = [path for path in copy_lessons(tmp_path)[0] if path.name.startswith("03")]
    with Server(tmp_path) as server, browser((1200, 1100)) as page:
        notebook = Notebook(page, server, lesson.name)
        notebook.wait_kernel()
        sources = page.evaluate(f"() => {CELLS}.map(c => c.model.type === 'code' ? c.model.sharedModel.source : null)")
        yours = next(i for i, text in enumerate(sources) if text and "result = graph(tf.constant(4.0))" in text)
        for cell, text in enumerate(sources):
            if text is None:
                continue
            notebook.run(cell)
            if cell == yours:
                for number, line in enumerate(("p x", "x = tf.constant(50.0)", "c"), 1):
                    box = page.wait_for_selector(BOX)
                    notebook.shot(f"lesson-prompt-{number}.png")
                    box.fill(line)
                    # JupyterLab takes this box away a moment after the next one is there.
                    box.evaluate("(box) => { box.dataset.answered = 1; }")
                    box.press("Enter")
            notebook.wait(cell)
            assert not [one for one in notebook.outputs(cell) if one["output_type"] == "error"], text
        said = "".join(one.get("text", "") for one in notebook.outputs(yours))
        assert "result: 101.0" in said
        assert "1 hit (1 stopped)" in said
        notebook.theme("JupyterLab Dark")
        notebook.shot("lesson-dark.png")
        assert page.errors == []
