"""Numbers that a body returned and that are others after TensorFlow's silent conversion to Tout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.bodies.returned_kinds import CONTRACT, Kind, all_calls, by_body, declaring, finding
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = (CONTRACT,)
_LARGE_SHARE = 1e-3
"""A rounding error counts from so much of the values' spread on."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    for kinds in by_body(facts):
        if (found := _casts(facts, kinds)) is not None:
            yield found


def _casts(facts: Facts, kinds: list[Kind]) -> Finding | None:
    """Numbers that are others after TensorFlow's conversion to Tout."""
    lossy = [(kind, one) for kind in kinds for one in kind.casts if _lossy(one)]
    if not lossy:
        return None
    kind, worst = max(lossy, key=lambda pair: (_cut(pair[1]), float(pair[1]["error"])))
    many = kind.declared is not None and len(kind.declared) > 1
    which = f" as output {worst['position']}" if many else ""
    changed = sum(int(one["changed"]) for _, one in lossy)
    compared = sum(int(one["compared"]) for _, one in lossy)
    if "float" in worst["source"] and "int" in worst["target"]:
        often = f"{changed:,} of the {compared:,} numbers compared lost their fraction, or did not fit"
    elif _cut(worst):
        often = f"{changed:,} of the {compared:,} numbers compared do not fit and became others"
    elif changed:
        often = f"{changed:,} of the {compared:,} numbers compared became others"
    else:
        share = worst["error"] / worst["spread"] if worst.get("spread") else None
        often = "numbers of this size are rounded" + (f", by up to {share:.0%} of their spread" if share else "")
    declared = list(kind.declared or [])
    declared[worst["position"]] = worst["source"]
    tout = ", ".join(f"tf.{one}" for one in declared)
    sampled = sum(one.sampled for one in kinds)
    return finding(
        facts, kinds, "error" if _cut(worst) else "warning",
        f"{kind.node.body} returned {worst['source']}{which}, but Tout declares {worst['target']}, and TensorFlow "
        f"silently converted it: {often}. The largest error: {worst['own']} became {worst['made']}",
        declaring(facts, kind.node, f"[{tout}]" if many else tout),
        (f"call #{worst['call']}: {worst['own']} ({worst['source']}) became {worst['made']} ({worst['target']})",
         f"compared in {sampled:,} of {all_calls(facts, kinds).count:,} calls"),
        call=worst["call"],
    )  # fmt: skip


def _cut(one: dict[str, Any]) -> bool:
    """Whether the number does not fit at all: whole numbers that wrap around, or infinity made of a finite one."""
    whole = "int" in one["target"]
    return bool(one["changed"]) and (whole or ("inf" in one["made"] and "inf" not in one["own"]))


def _lossy(one: dict[str, Any]) -> bool:
    if one["changed"]:
        return True
    error, spread = float(one["error"]), one.get("spread")
    if not spread:
        number = float(one["own"])
        return error >= 0.5 and number == int(number)  # an id, a time in seconds: not a loss of 1e12
    return error > _LARGE_SHARE * float(spread)
