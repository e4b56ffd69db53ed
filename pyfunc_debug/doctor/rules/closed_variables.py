"""Variables that a body uses but is not given: they get no gradient."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.doctor.bodies import several
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.locations import sites
from pyfunc_debug.records import Finding

NAMES = ("variable-no-input",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body and its variables."""
    seen: dict[tuple[object, ...], list[tuple[int, int | None]]] = {}
    for node, call, noticed in facts.notices["variable-no-input"]:
        if node is not None and facts.nodes[node].origin == "user":
            known = facts.nodes[node]
            seen.setdefault((known.body, known.file, known.line, *noticed["variables"]), []).append((node, call))
    for (_, _, _, *variables), found in seen.items():
        nodes = tuple(dict.fromkeys(node for node, _ in found))
        node, call = found[0]
        known = facts.nodes[node]
        names = [str(name).removesuffix(":0") for name in variables]
        what = f"variable {names[0]}" if len(names) == 1 else f"variables {', '.join(names)}"
        inputs = ", ".join([*(one for one in known.paths if one.isidentifier()), *names])
        yield Finding(
            "variable-no-input", "warning", node, () if call is None else (call,),
            f"{known.body} uses the {what}, which is not an input of its py_function: its gradient is None, and it is "
            f"not trained through it{sites(facts.reader, nodes)}",
            f"tf.py_function({facts.name(known)}, inp=[{inputs}], ...)  # and use the parameter in the body",
            known.file, known.line, several(nodes),
        )  # fmt: skip
