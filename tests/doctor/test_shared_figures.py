"""Bodies that draw through pyplot's current figure side by side are told of, with a paste that keeps them apart."""

from __future__ import annotations

import ast
import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyfunc_debug.api.recording import Recording
from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE, call, node, written

HEAD = "import io\nimport numpy as np\nimport matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\n"
SAVED = """
def picture(values):
    buffer = io.BytesIO()
    plt.figure(figsize=(1, 1))
    plt.plot(values)
    plt.title("%d" % values[0])
    plt.xlim(0, 3)
    plt.savefig(buffer, format="png")
    plt.close()
    return buffer.getvalue()
"""
CANVAS = """
def picture(values):
    fig = plt.figure(figsize=(1, 1), dpi=50)  # small
    image = plt.imshow(values.reshape(2, 2), cmap=plt.cm.viridis)
    plt.colorbar(image)
    plt.gca().set_yticks([])
    plt.xticks([0, 1],
               ["a", "b"])
    fig.canvas.draw()
    data = np.asarray(fig.canvas.buffer_rgba()).tobytes()
    plt.close(fig)  # done
    return data
"""
PARTS = """
class Painter:
    def paint(self, values):
        plt.subplot(1, 2, 1)
        plt.plot(values)

    def picture(self, values):
        buffer = io.BytesIO()
        plt.figure(figsize=(1, 1))
        self.paint(values)
        plt.savefig(buffer, format="png")
        plt.close()
        return buffer.getvalue()

picture = Painter().picture
"""
WORDS = """
def picture(values, *, kind="png"):
    buffer = io.BytesIO()
    plt.figure(figsize=(1, 1))
    plt.subplot(211)
    plt.plot(values)
    plt.savefig(buffer, format=kind)
    plt.close()
    return buffer.getvalue()
"""
BY_NAME = """
from matplotlib.pyplot import close, figure, hist, savefig
def picture(values):
    buffer = io.BytesIO()
    if values.size:
        figure()
        hist(values)
        savefig(buffer)
        close("all")
    return buffer.getvalue()
"""
OWN_AXES = """
def picture(values):
    buffer = io.BytesIO()
    fig, ax = plt.subplots(figsize=(1, 1))
    ax.plot(values)
    fig.savefig(buffer, format="png")
    plt.close(fig)
    return buffer.getvalue()
"""
LOCKED = SAVED.replace("    plt.figure", "    with drawing:\n     plt.figure").replace("\n    plt.", "\n     plt.")
LOCKED = "import threading\ndrawing = threading.Lock()\n" + LOCKED
TWO = SAVED + SAVED.replace("picture", "other").replace("plt.xlim(0, 3)", "plt.grid(True)")
APART, BESIDE, ONE_THREAD = "apart", "beside", "one thread"


def found(tmp_path, source, how=BESIDE, names=("picture",), digests=(b"a", b"b"), rules=("shared-state",)):
    """Two calls of each body: side by side, or not."""
    lines = {one.name: one.lineno for one in ast.walk(ast.parse(source)) if isinstance(one, ast.FunctionDef)}
    nodes = [node(place, name, lines[name]) for place, name in enumerate(names, 1)]
    calls, values = [], []
    for number, place in enumerate([*range(1, len(names) + 1)] * (1 if len(names) > 1 else 2), 1):
        start = number * 1_000_000 + (how == APART) * number * 10_000_000
        calls.append(
            call(number, place, start_ns=start, end_ns=start + 5_000_000, thread=1 if how == ONE_THREAD else number)
        )
        for role, digest in (("input", b"x"), ("output", digests[number - 1])):
            values.append({"call": number, "role": role, "position": 0, "path": role, "dtype": "uint8", "shape": "[]",
                           "text": "uint8 1", "note": "", "kept": "", "digest": digest})  # fmt: skip
    threads = [{"id": one, "name": f"worker {one}", "native_id": one} for one in (1, 2)]
    path = written(tmp_path / "a.pfrec", source, {}, node=nodes, call=calls, value=values, thread=threads)
    return Recording(path).findings(select=[*rules, "doctor-trouble"])


@pytest.mark.parametrize(
    ("source", "says", "line", "new"),
    [
        (HEAD + SAVED, "(plt.plot, plt.title, plt.xlim, ...)", 10, "ax.set_title("),
        (HEAD + CANVAS, "(plt.imshow, plt.colorbar, plt.gca, ...)", 9, "FigureCanvasAgg(fig)"),
        (HEAD + PARTS, "(plt.savefig, plt.subplot, plt.plot)", 16, "    @one_at_a_time"),
        (HEAD + BY_NAME, "(hist, savefig)", 12, "ax.hist(values)"),
        (HEAD + SAVED.replace("plt.figure(f", "plt.figure(1, f"), "(plt.figure, plt.plot", 9, "@one_at_a_time"),
        (HEAD + SAVED.replace("plt.close()", "plt.cla()"), "(plt.plot, plt.title", 10, "@one_at_a_time"),
    ],
    ids=["saved", "canvas", "parts", "by_name", "one_number", "cleared"],
)
def test_the_calls_are_counted_and_each_draws_alone_after_the_paste(source, says, line, new, tmp_path):
    (one,) = found(tmp_path, source)
    assert says.rstrip(")") in one.message
    assert (one.line, one.severity, one.confidence) == (line, "warning", "measured")
    assert "2 of 2 calls ran while another one did, in another thread" in one.message
    assert "For equal inputs, calls #1 and #2 gave different outputs" in one.message
    better = pasted(source, one.fix)
    assert new in better
    compile(better, FILE, "exec")
    assert ("plt.close" in better) is ("@one_at_a_time" in better and "plt.close" in source)
    (tmp_path / "after").mkdir()
    assert found(tmp_path / "after", better) == []


@pytest.mark.parametrize("source", [SAVED, CANVAS, PARTS, WORDS], ids=["saved", "canvas", "parts", "words"])
def test_what_is_pasted_draws_the_same_pictures_side_by_side(source, tmp_path):
    pytest.importorskip("matplotlib.pyplot")
    import numpy as np

    plain, better = {}, {}
    exec(HEAD + source, plain)
    exec(pasted(HEAD + source, found(tmp_path, HEAD + source)[0].fix), better)
    inputs = [np.array(one) for one in itertools.islice(itertools.permutations((0.0, 1.0, 2.0, 3.0)), 6)]
    alone = [plain["picture"](one) for one in inputs]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(better["picture"], inputs)) == alone
    if source is WORDS:
        assert better["picture"](inputs[0], kind="png") == alone[0]
    assert len(set(alone)) == len(inputs)


def test_bodies_that_draw_beside_each_other_are_told_of_together(tmp_path):
    (one,) = found(tmp_path, HEAD + TWO, names=("picture", "other"))
    assert one.message.startswith("picture and other draw through pyplot")
    better = pasted(HEAD + TWO, one.fix)
    assert better.count("ax = fig.subplots()") == 2
    assert better.count("import Figure\n") == 1
    compile(better, FILE, "exec")


def test_equal_outputs_are_likely_to_be_right_and_it_says_so(tmp_path):
    (one,) = found(tmp_path, HEAD + SAVED, digests=(b"a", b"a"))
    assert one.confidence == "likely"
    assert "different outputs" not in one.message


@pytest.mark.parametrize(
    ("source", "how"),
    [
        (HEAD + SAVED, APART),
        (HEAD + SAVED, ONE_THREAD),
        (HEAD + OWN_AXES, BESIDE),
        (HEAD + LOCKED, BESIDE),
        (SAVED.replace("plt.", "axes."), BESIDE),
        ("import numpy as plt\nimport matplotlib.pyplot\n" + SAVED, BESIDE),
    ],
    ids=["apart", "one_thread", "own_axes", "locked", "other_name", "other_module"],
)
def test_else_there_is_silence(source, how, tmp_path):
    assert found(tmp_path, source, how) == []


ADDED = """
def picture(values):
    buffer = io.BytesIO()
    plt.plot(values)
    plt.savefig(buffer, format="png")
    return buffer.getvalue()
"""
IN_PARTS = ADDED.replace("    plt.plot(values)", "    drawn(values)") + "def drawn(values):\n    plt.plot(values)\n"


@pytest.mark.parametrize(("source", "line"), [(ADDED, 9), (IN_PARTS, 13)], ids=["added", "in_parts"])
def test_drawings_that_add_up_from_call_to_call_are_the_reason_of_unequal_outputs(source, line, tmp_path):
    pytest.importorskip("matplotlib.pyplot")
    import numpy as np

    (one,) = found(tmp_path, HEAD + source, APART, rules=("nondeterministic",))
    assert "plt.plot draws into pyplot's current figure, which it never makes, clears or closes" in one.message
    assert one.line == line
    names = {}
    better = pasted(HEAD + source, one.fix)
    exec(better, names)
    first, other, again = (names["picture"](np.arange(4.0) ** power) for power in (1, 2, 1))
    assert first == again != other
    names["plt"].close("all")
    (tmp_path / "after").mkdir()
    (after,) = found(tmp_path / "after", better, APART, rules=("nondeterministic",))
    assert "pyplot" not in after.message


def test_it_is_not_told_as_outputs_without_a_reason_as_well(tmp_path):
    assert found(tmp_path, HEAD + SAVED, rules=("nondeterministic",)) == []
    (tmp_path / "apart").mkdir()
    (one,) = found(tmp_path / "apart", HEAD + OWN_AXES, APART, rules=("nondeterministic",))
    assert "Nothing in its source says why" in one.message
