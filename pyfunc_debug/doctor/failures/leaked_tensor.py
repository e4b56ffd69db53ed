"""A symbolic tensor used outside of the graph that it belongs to."""

from __future__ import annotations

import re

from pyfunc_debug.doctor.failures.explanation import Explanation
from pyfunc_debug.doctor.failures.situation import Situation
from pyfunc_debug.doctor.failures.source import short

RULE = "leaked-tensor"
_SAID = re.compile(r"is out of scope(?: and cannot be used here)?|is not an element of this graph")
_GRAPH = re.compile(r"defined in FuncGraph\(name=(\w+)")
_MADE = re.compile(r'File "([^"]+)", line (\d+), in (\w+)\n')


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a tensor left its graph."""
    text = str(situation.error)
    if not _SAID.search(text) or situation.kind not in ("TypeError", "InaccessibleTensorError", "ValueError"):
        return None
    spot, graph = situation.last, _GRAPH.search(text)
    if spot is None or graph is None:
        return None
    statement = spot.source.statement(spot.line)
    code = short(spot.source.text(statement).split("\n")[0], 40) if statement is not None else "this line"
    made = _place(text, [one.file for one in situation.spots])
    name = graph[1]
    if name.startswith(("while_", "cond_")):
        where = "a loop" if name.startswith("while_") else "an `if`"
        cause = (
            f"`{code}` uses a tensor that was made inside {where} of the graph{made}: outside it has no "
            "value, and a Python list only kept its symbol, once, at trace."
        )
        advice = (
            "Collect in the graph: kept = tf.TensorArray(dtype, size=0, dynamic_size=True); in the loop kept = "
            "kept.write(i, value); after it kept.stack()."
        )
    else:
        cause = (
            f"`{code}` uses a symbolic tensor of {name}'s graph{made}: Python stored it once, while "
            f"{name} was traced; it has a value only inside that graph, while it runs."
        )
        advice = (
            f"Return it from {name} and store what the call gives, or keep it in a tf.Variable: "
            "v.assign(x) runs each time."
        )
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _place(text: str, files: list[str]) -> str:
    found = [line for file, line, _ in _MADE.findall(text) if file in files]
    return f" (made in line {found[-1]})" if found else ""
