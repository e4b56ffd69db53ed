"""Sound of a .wav file as the whole numbers that it has, up to 32,767, given to a model."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.run_functions import Ran, functions_that_ran
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.rules.ran_out import files_of_keras
from pyfunc_debug.records import Finding

NAMES = ("unscaled-input",)
_LEAST = 1000.0
"""The largest recorded sample from which it is said: sound between -1 and 1 is scaled already."""
_FULL = 32768
_SCALES = re.compile(
    r"normali|rescal|scale|standard|stft|spectr|mfcc|mel|fft|log|iinfo|max\(|std\(|decode_wav", re.IGNORECASE
)
"""What may make samples smaller, or something else of them."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a function that reads sound."""
    files = set(files_of_keras(facts))
    for ran in functions_that_ran(facts):
        if ran.file not in files or not ran.group:
            continue
        found = _read(ran)
        largest = _largest(facts, ran) if found is not None else None
        own = pastes.source(facts, ran.file)
        if found is None or largest is None or _scales(own.code, ran, found[0]):
            continue
        call, returned = found
        text = own.text(returned)
        yield Finding(
            NAMES[0], "warning", ran.group[0].id, (),
            f"{text} are the samples as {own.text(call.func)} reads them, 16-bit numbers: {largest:,.0f} at most in "
            "the recorded calls. Nothing scales them before the model, which is made for numbers around 0 to 1",
            pastes.written(pastes.replaced(facts, ran.file, {returned: f"{text} / {_FULL}"})) or f"{text} / {_FULL}",
            ran.file, returned.lineno, evidence=(f"line {call.lineno}: {facts.line(ran.file, call.lineno)}",),
            confidence="likely",
        )  # fmt: skip


def _read(ran: Ran) -> tuple[ast.Call, ast.expr] | None:
    """The call that reads a .wav file, and what a body returns of its samples: `data.astype(np.float32)`."""
    for one in code.own_nodes(ran.function):
        call = one.value if isinstance(one, ast.Assign) else None
        if not isinstance(call, ast.Call) or not dotted(call.func).endswith(("wavfile.read", "wav.read")):
            continue
        target = one.targets[0] if isinstance(one, ast.Assign) else None
        name = dotted(target.elts[1]) if isinstance(target, ast.Tuple) and len(target.elts) == 2 else ""
        for result in pastes.returns(ran.function) if name else ():
            part = result.elts[0] if isinstance(result, ast.Tuple) and result.elts else result
            method = part.func if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) else None
            cast = method is not None and method.attr == "astype" and dotted(method.value) == name
            if cast and "float" in ast.unparse(part):
                return call, part
    return None


def _largest(facts: Facts, ran: Ran) -> float | None:
    """The largest number of the body's first results; None where it is none of 16-bit samples."""
    ids = ", ".join(str(node.id) for node in ran.group)
    ((most, least),) = facts.reader.rows(
        "SELECT max(v.max), min(v.min) FROM call c JOIN value v ON v.call = c.id AND v.role = 'output' "
        f"AND v.position = 0 WHERE c.node IN ({ids}) AND c.kind = 'forward'"
    )
    size = max(abs(most or 0.0), abs(least or 0.0))
    return size if _LEAST < size <= _FULL else None


def _scales(lines: list[str], ran: Ran, call: ast.Call) -> bool:
    """Whether a line of the file may scale the samples: any division from the function on, or one of these words."""
    for number, line in enumerate(lines, 1):
        plain = re.sub(r"(['\"]).*?\1", "", line)
        if number == call.lineno or re.match(r"\s*(?:import|from)\b", line):
            continue
        if _SCALES.search(plain) or ("/" in plain and number >= ran.function.lineno):
            return True
    return False
