"""How graph traces are shown: each by itself, or many for one reason as one line."""

from __future__ import annotations

from pyfunc_debug.analysis.retraces import Explanation, TraceRow, explanation_html, explanation_text


def traced(number: int, **more) -> TraceRow:
    reason = (f"`n`: Python value {number}, was {number - 1}: each value needs its own graph ({number} so far)",)
    return TraceRow(
        **{"name": f"f_{number}", "signature": f"(n: {number})", "reason": reason, "closest": f"(n: {number - 1})",
           "avoid": None, "duration_ns": 2_000_000, "runs": 3, "nodes": (), **more}
    )  # fmt: skip


FIRST = traced(0, reason=(), closest=None)


def text_of(*rows: TraceRow) -> str:
    return explanation_text(Explanation("f", "train.py", 4, rows))


def test_many_graph_traces_for_one_reason_are_one_line_between_the_first_two_and_the_last():
    rows = (FIRST, *(traced(number) for number in range(1, 60)))
    lines = text_of(*rows).splitlines()
    (line,) = [line for line in lines if "more graph traces" in line]
    assert line.split() == ["4-59", "56", "more", "graph", "traces", "for", "the", "same", "reason", "112", "168"]
    assert [number for number in range(60) if any(f" (n: {number}) " in line for line in lines)] == [0, 1, 2, 59]
    page = explanation_html(Explanation("f", "train.py", 4, rows))
    assert page.count("<tr>") == 1 + 5
    assert "56 more graph traces for the same reason" in page


def test_what_is_special_is_never_folded():
    usual = [traced(number) for number in range(1, 20)]
    for special in (
        traced(9, error="ValueError: no"), traced(9, stale=("`k` was 1",)), traced(9, tried="one graph served all"),
        traced(9, reason=("`x`: shape (2,), was (3,)",)), traced(9, avoid="tf.constant(9)"),
    ):  # fmt: skip
        usual[8] = special
        text = text_of(FIRST, *usual)
        assert " (n: 9) " in text
        assert "4-8" in text
        assert "13-19" in text


def test_what_is_not_known_of_one_is_not_known_of_all():
    rows = [traced(number) for number in range(1, 9)]
    rows[4] = traced(5, duration_ns=None)
    (line,) = [line for line in text_of(FIRST, *rows).splitlines() if "more graph traces" in line]
    assert line.split()[-2:] == ["-", "15"]
