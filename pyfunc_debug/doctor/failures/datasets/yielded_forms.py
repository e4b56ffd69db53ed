"""Elements that TensorFlow makes no tensor of: sparse matrices, rows of pandas, lists for a ragged tensor."""

from __future__ import annotations

import ast
import re
from numbers import Number
from typing import Any

from pyfunc_debug.doctor.failures.datasets import scipy_matrices
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.source import Source, short

RULE = "structure"
_RAGGED = re.compile(r"RaggedTensorSpec\(TensorShape\((\[[^\]]*\]|None)\), tf\.(\w+), (\d+)")


def explain(
    file: str, source: Source, call: ast.Call, line: int, given: ast.expr | None, element: Any, wanted: str
) -> Explanation | None:
    """The explanation of a refused element.

    Args:
      file: That of the generator.
      source: Its text.
      call: Its `tf.data.Dataset.from_generator(...)`.
      line: That of the yield.
      given: What it yields; None where that is not one expression.
      element: What was yielded.
      wanted: The signature, as TensorFlow says it.
    """
    tf = source.text(call.func).partition(".data.")[0]
    if scipy_matrices.is_matrix(element):
        cause = "the generator yields what from_generator has no tensor for"
        if given is None:
            advice = "Yield its `.toarray()`."
            return Explanation(RULE, file, line, f"{cause}: a sparse matrix of SciPy's.", None, advice)
        return scipy_matrices.yielded((file, source, line), given, element, element, cause)
    if type(element).__module__.partition(".")[0] == "pandas" and type(element).__name__ == "Series":
        return _of_row(file, tf, line, element)
    said = _RAGGED.match(wanted)
    if said is not None and isinstance(element, (list, tuple)):
        return _ragged(file, source, tf, line, given, said)
    return None


def _of_row(file: str, tf: str, line: int, row: Any) -> Explanation | None:
    """A row of a table with texts, of which one tensor is declared."""
    texts = [str(name) for name, value in row.items() if not isinstance(value, Number)]
    cause = "the generator yields a row of pandas (a Series), which does not become a tensor"
    if not texts:
        return None
    types = ", ".join(f"{name!r}: {tf}.{_dtype(value)}" for name, value in list(row.items())[:4])
    more = ", ..." if len(row) > 4 else ""
    which = f"{', '.join(map(repr, texts[:3]))} {'is' if len(texts) == 1 else 'are'}"
    cause += f". {which} not a number, and one tensor has one dtype."
    return Explanation(
        RULE, file, line, cause, None, f"Yield its `.to_dict()`, with output_types={{{types}{more}}}.", "likely"
    )


def _dtype(value: Any) -> str:
    """The dtype that a value of a row becomes."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, Number):
        return "int64" if float(value) == int(float(value)) and "int" in type(value).__name__ else "float32"  # type: ignore[arg-type]
    return "string"


def _ragged(file: str, source: Source, tf: str, line: int, given: ast.expr | None, said: re.Match[str]) -> Explanation:
    """A list of lists of unlike lengths, for a RaggedTensorSpec."""
    cause = "the generator yields a list, and a RaggedTensorSpec takes a ragged tensor: tf.ragged.constant makes one."
    edit = None
    if given is not None:
        new = f"{tf}.ragged.constant({source.text(given)}, {tf}.{said[2]}, ragged_rank={said[3]})"
        edit = edit_of(file, source.replaced({given: new}))
    advice = f"Yield {tf}.ragged.constant({short(source.text(given), 30) if given is not None else '...'})."
    return Explanation(RULE, file, line, cause, edit, "" if edit is not None else advice, "likely")
