"""The nouns: what a recording holds, as frozen dataclasses.

Times are nanoseconds of `time.monotonic_ns()`. `None` always means "not known" and never 0; a number that was
obtained in a special way says so in a field next to it.
"""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pyfunc_debug.places import cell_label, source_line

if TYPE_CHECKING:
    import numpy as np

NodeKind = Literal["py_function", "numpy_function", "py_func", "py_func_stateless"]
Origin = Literal["user", "tensorflow"]
CallKind = Literal["forward", "gradient"]
Status = Literal["ok", "error", "running"]
Role = Literal["input", "output"]
FunctionKind = Literal["tf.function", "tf.data", "graph", "eager"]
RunKind = Literal["forward", "backward"]
Severity = Literal["error", "warning", "note"]
Confidence = Literal["measured", "proven", "likely"]
Front = Literal["shell", "notebook", "python"]
"""Where somebody reads and types: a fix says what to type there."""
_MOST_ROWS = 100
_MOST_IMAGES = 8
FROM_GENERATOR = "Dataset.from_generator"
"""The function that holds the node of a user's generator; the node is TensorFlow's own."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a stack, in the user's own file.

    Attributes:
      file: Path of the file, or the name under which IPython compiled a cell.
      line: Number of the line, from 1.
      function: Name of the function that the line is in.
      text: The line itself, without its indentation; empty if it could not be read.
    """

    file: str
    line: int
    function: str
    text: str = ""

    def __str__(self) -> str:
        return f"{cell_label(self.file) or self.file}:{self.line} {self.function}"


@dataclass(frozen=True, slots=True)
class Node:
    """One py_function-like op in one graph.

    Calls made eagerly have no graph: all eager calls of one body from one line are one node, of the function kind
    `eager`.

    Attributes:
      id: Number of the node in its recording, from 1.
      token: TensorFlow's registry key (`pyfunc_7`, script_ops.py); None for eager calls that it does not register.
      kind: The public function that made it. `py_func` with `stateful=False` is `py_func_stateless`.
      body: Qualified name of the user's Python function.
      file: File of the body; None for a function written in C.
      line: First line of the body.
      name: Name of the op in its graph; None when eager, or when the graph could not be found.
      graph: Name of the innermost graph that holds the op (a loop's body, say).
      function: Id of the traced function that the op belongs to.
      stack: The user's frames at the call site, outermost first, as they were when the graph was traced.
      tout: Declared output types, one text an output.
      paths: Names of the flat inputs (`x`, `x.row_splits`, `d['a'][0]`).
      out_paths: Names of the flat outputs.
      origin: Whether the user's code made the node, or TensorFlow or Keras for its own purposes.
    """

    id: int
    token: str | None
    kind: NodeKind
    body: str
    file: str | None
    line: int | None
    name: str | None
    graph: str | None
    function: int | None
    stack: tuple[Frame, ...]
    tout: tuple[str, ...]
    paths: tuple[str, ...]
    out_paths: tuple[str, ...]
    origin: Origin

    def __repr__(self) -> str:
        place = f" at {source_line(self.file, self.line)}" if self.file else ""
        op = f", op {self.name} in {self.graph or 'a graph'}" if self.name else ""
        return f"<node {self.id}: {self.kind} {self.body}{place}{op}>"


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function that TensorFlow traces: a tf.function, or the function given to a tf.data transformation.

    Attributes:
      id: Number in the recording, from 1.
      name: Qualified name of the user's function.
      kind: What traces it; `graph` for a v1 graph and `eager` for code that ran outside any graph.
      file, line: Where the user defined it; None if that is not known.
      origin: Whether it is the user's, or TensorFlow's or Keras' own.
    """

    id: int
    name: str
    kind: FunctionKind
    file: str | None
    line: int | None
    origin: Origin

    def __repr__(self) -> str:
        place = f" at {source_line(self.file, self.line)}" if self.file else ""
        return f"<function {self.id}: {self.kind} {self.name}{place}>"


@dataclass(frozen=True, slots=True)
class GraphTrace:
    """TensorFlow building one ConcreteFunction (eager/polymorphic_function/tracing_compilation.py).

    Attributes:
      id: Number in the recording.
      function: Id of the Function.
      ordinal: 1 for the first graph trace of this tf.function object.
      name: TensorFlow's name of the ConcreteFunction, None if tracing failed.
      signature: The argument types it was built for.
      thread: Id of the Thread that traced.
      start_ns: When it began.
      duration_ns: How long it took.
      reason: Why TensorFlow traced, in words; empty when it is the first graph trace.
      nodes: Ids of the nodes in its graph and in every graph nested in it.
      error: Type of the exception when tracing failed.
      parent: Id of the graph trace during which this one happened.
      closest: Signature of the earlier graph that fitted best.
      avoid: What would have made that graph serve here too, as far as anything would.
      object: Number of the tf.function object that was traced: one Python function may be wrapped several times.
    """

    id: int
    function: int
    ordinal: int
    name: str | None
    signature: str
    reason: tuple[str, ...]
    thread: int
    start_ns: int
    duration_ns: int
    nodes: tuple[int, ...]
    error: str | None = None
    parent: int | None = None
    closest: str | None = None
    avoid: str | None = None
    object: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a tf.function that Python started (eager/context.py, `call_function`).

    Attributes:
      id: Number in the recording, from 1.
      trace: Id of the graph trace that ran; None for a graph that was built before recording began.
      function: Id of the Function; None if it is not known.
      kind: Whether it ran forward, or backward for a tape's gradient.
      thread: Id of the Thread that started it.
      start_ns: When it began.
      duration_ns: How long it took; None while it runs.
      error: Type of the exception that ended it.
      site: The user's line that started it, None where no line of the user's did (a thread whose target is the
        tf.function itself).
    """

    id: int
    trace: int | None
    function: int | None
    kind: RunKind
    thread: int
    start_ns: int
    duration_ns: int | None
    error: str | None = None
    site: Frame | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """How often a line ran in Python.

    Attributes:
      file, line: Which line.
      kind: "line", or "lambda" for calls of a lambda on the line; "graph" and "graph lambda" where `ran` is how often
        the graph ran what the line put into it.
      traced: How often it ran while graphs were built; None where it did not.
      ran: How often it ran in bodies, or in the graph; None where it did not.
      capped: Whether the counts mean "at least".
      graph: What the line became in the graph ("if", "loop").
      inside: The branches and loops of the graph that it was built in, outermost first.
    """

    file: str
    line: int
    kind: Literal["line", "lambda", "graph", "graph lambda"]
    traced: int | None
    ran: int | None
    capped: bool
    graph: tuple[str, ...]
    inside: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Printed:
    """A text that a line printed in one graph trace or in one call.

    Attributes:
      trace, call: Id of the graph trace, or of the call; the other of the two is None.
      file, line, function: The user's line that printed.
      text: What it printed.
    """

    trace: int | None
    call: int | None
    file: str
    line: int
    function: str
    text: str


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread that ran something.

    Attributes:
      id: Number in the recording, from 1.
      name: Python's name of it. C++ threads have none: they are called TF-1, TF-2, ... as they appear.
      native_id: The operating system's number of it (`threading.get_native_id()`).
    """

    id: int
    name: str
    native_id: int


@dataclass(frozen=True, slots=True)
class Value:
    """One tensor or array that went into or came out of a call.

    Attributes:
      path: Its name: the body's parameter, or `out`, with the leaf of a structure behind it.
      dtype: TensorFlow's name of the element type.
      shape: Its shape; None where it has none (a variant, a Python object).
      nbytes: Size in bytes; None for strings, variants and resources.
      min, max, mean, std: Over the finite elements; of the magnitude for complex numbers.
      nan, inf, zeros: How many elements are NaN, infinite, zero.
      sampled: When statistics other than nan and inf come from every n-th element only: how many were looked at.
      histogram: Counts in equal bins from min to max; empty if there is none.
      text: One line for a person.
      note: Why something is missing (`dropped: no room in the budget`, `not read`), or empty.
      kept: Which elements were kept: none, evenly spaced ones, all.
      digest: Of all elements in their order, as hexadecimal text; None where they were not all read. Values of one
        dtype and shape are equal if their digests are, and not equal if these differ (values/digest.py).
    """

    path: str
    dtype: str
    shape: tuple[int, ...] | None
    nbytes: int | None
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    nan: int | None
    inf: int | None
    zeros: int | None
    text: str
    sampled: int | None = None
    histogram: tuple[int, ...] = ()
    note: str = ""
    kept: Literal["", "sample", "full"] = ""
    digest: str | None = None
    _load: Callable[[], np.ndarray[Any, Any]] | None = field(default=None, repr=False, compare=False)

    def array(self) -> np.ndarray[Any, Any]:
        """The elements.

        Returns:
          The array, or with the `sample` policy a flat array of evenly spaced elements.

        Raises:
          pyfunc_debug.NotKeptError: the values policy did not keep elements, or the budget dropped them.

        Example:
          recording.call(17).inputs[0].array().max()
        """
        if self._load is None:
            from pyfunc_debug.errors import NotKeptError

            why = self.note or "record with values='full' or values='sample' to keep elements"
            raise NotKeptError(f"the elements of {self.path!r} were not kept ({why})")
        return self._load()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<value {self.path}: {self.text}>"

    def _repr_html_(self) -> str:
        return items_html([self]) or ""


@dataclass(frozen=True, slots=True)
class Failure:
    """The exception that left a body: the original one, before TensorFlow turned it into text.

    Attributes:
      type: Name of the exception's class.
      message: Its text.
      traceback: The whole text as Python prints it.
      frames: The user's frames, innermost last.
    """

    type: str
    message: str
    traceback: str
    frames: tuple[Frame, ...]

    def __repr__(self) -> str:
        last = self.frames[-1] if self.frames else None
        place = f" at {source_line(last.file, last.line)} {last.function}" if last is not None else ""
        return f"<{self.type}{place}: {self.message}>"


@dataclass(frozen=True, slots=True)
class Gil:
    """What a call did with the GIL, as far as its grade can measure; None is not measured (docs/gil.md).

    Attributes:
      grade: How it was measured; "bound" means that `wait_ns` is the most that it can have been.
      wait_ns: Time in which the call was ready to enter Python and waited for the GIL.
      held_ns: Time in the body with the GIL.
      released_ns: Time in the body in which it had given the GIL away and did not want it.
      reacquire_ns: Time in the body in which it waited to get the GIL back.
      blame: Who held the GIL while it waited, and for how long in ns, the longest first.
    """

    grade: Literal["native", "op-start", "bound", "none"]
    wait_ns: int | None
    held_ns: int | None
    released_ns: int | None
    reacquire_ns: int | None
    blame: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One execution of a body, or of its gradient.

    Attributes:
      id: Number of the call in the recording, from 1, in the order in which they began.
      node: Id of its node; a gradient call has the node of its forward call.
      forward: For a gradient call: the id of the forward call that it belongs to, if known.
      gradients: For a forward call: ids of its gradient calls.
      run: Id of the run that it belongs to, where that is certain.
      runs: The ids of all runs it may belong to: more than one means ambiguous, none means that C++ started it
        (tf.data, a Session), that it is eager, or that it is `crowded`.
      thread: Id of the Thread that ran it.
      kind: Whether the body itself ran, or its gradient.
      start_ns: When the body began.
      end_ns: When it ended; None while it runs.
      status: "ok", "error" if an exception left the body, or "running".
      cpu_ns: CPU time of its thread while the body ran. None while it runs; and where the GIL is not measured, for
        fifteen of sixteen calls of a node whose calls take less than 0.1 ms, see docs/costs.md.
      inputs: Values as they were before the body ran.
      outputs: Values that the body returned; empty after a failure.
      failure: What went wrong, for status "error".
      gil: None if the GIL was not measured.
      tape: For a gradient call: the id of the forward call whose tape TensorFlow really used (script_ops.py,
        `tape_cache`), if known. Where it is not `forward`, the gradient is another call's.
      stopped_ns: For how long it was held at breakpoints: no part of `duration_ns`, nor of `gil`.
      crowded: Whether more than 64 runs were in flight as it began: then none is named.
    """

    id: int
    node: int
    kind: CallKind
    forward: int | None
    gradients: tuple[int, ...]
    run: int | None
    runs: tuple[int, ...]
    thread: int
    start_ns: int
    end_ns: int | None
    cpu_ns: int | None
    status: Status
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    failure: Failure | None = None
    gil: Gil | None = None
    tape: int | None = None
    stopped_ns: int = 0
    crowded: bool = False
    _body: str = field(default="", repr=False, compare=False)
    _check: Callable[[int], Any] | None = field(default=None, repr=False, compare=False)
    _replay: Callable[..., list[Any]] | None = field(default=None, repr=False, compare=False)
    _to_pytest: Callable[..., str] | None = field(default=None, repr=False, compare=False)

    def replay(
        self, through: Callable[..., Any] | None = None, inputs: Mapping[str, Any] | None = None,
        function: Callable[..., Any] | None = None, random_state: bool = False,
    ) -> list[Any]:  # fmt: skip
        """Runs the body again, outside of TensorFlow's graph, on the recorded inputs, with all its effects.

        In another process than the one that recorded, the body is taken from its module, under its name: as it is now.

        Args:
          through: Is given the body and its arguments, to call it: `pdb.runcall` stops there.
          inputs: Other values for some inputs, by the names that they have in `call.inputs`.
          function: Runs in the place of the body: a corrected one, or the body where it has no name to find it by (a
            lambda, a method, a function inside another one) and this is not the process that recorded it.
          random_state: Whether Python's `random` and NumPy's global generator begin as they did when the call was
            recorded with `record(random_state=True)`; afterwards they are what they were before. Generators of the
            body's own, and TensorFlow's, are as they are now.

        Returns:
          What the body returned, as NumPy arrays.

        Raises:
          NotKeptError: the inputs were not all kept in full (values="full"), the random state was not kept, the body is
            gone, or it is not found.
          BadOptionError: `inputs` names something else than an input.

        Example:
          outputs = recording.call(17).replay(inputs={"x": 0.5})
        """
        assert self._replay is not None, "a call comes from a recording"
        return self._replay(self.id, through, inputs, function, random_state)

    def check_gradient(self) -> Any:
        """Compares the recorded gradient with finite differences of the body, which runs again for it.

        Returns:
          A `gradient_check.GradientCheck`: `ok`, and for each input the worst element with the tolerance used.

        Raises:
          NotKeptError: the values were not kept (values="full"), the call was not differentiated, or this is not the
            process that recorded it.
          NotDeterministicError: the body gives something else for the same inputs.

        Example:
          checked = recording.call(17).check_gradient()
          print(checked.ok, checked)
        """
        if self._check is None:
            raise _other_process()
        return self._check(self.id)

    def to_pytest(self, path: str | os.PathLike[str], *, rtol: float = 1e-5, atol: float = 1e-8) -> str:
        """Writes a pytest file that runs the body again on the recorded inputs and asks for the recorded outcome.

        Args:
          path: The file (`test_call_17.py`). Arrays of more than 64 elements go beside it, as `test_call_17.npz`.
          rtol: Relative tolerance of its numbers.
          atol: Absolute tolerance.

        Returns:
          The absolute path of the file. Its first lines say what it does not hold, and what there is left to write.

        Raises:
          NotKeptError: the inputs were not all kept in full (values="full"), or the body cannot be run outside of
            TensorFlow: it is a gradient call, or not written in Python.
          CannotWriteError: the file cannot be written there.

        Example:
          recording.call(17).to_pytest("test_call_17.py")
        """
        assert self._to_pytest is not None, "a call comes from a recording"
        return self._to_pytest(self, path, rtol, atol)

    def __repr__(self) -> str:
        what = "gradient call" if self.kind == "gradient" else "call"
        parts = [f"{what} #{self.id} of {self._body or f'node {self.node}'}: {_outcome(self)}"]
        if self.inputs or self.outputs:
            parts.append(
                f"{', '.join(map(_named, self.inputs)) or 'nothing'} -> {', '.join(map(_named, self.outputs))}"
            )
        return f"<{'; '.join(parts).rstrip(' >-')}>"

    def _row(self) -> list[str]:
        """As a table of calls shows it."""
        return [
            f"#{self.id} {self._body}{' gradient' if self.kind == 'gradient' else ''}",
            _outcome(self),
            "\n".join(map(_named, self.inputs)),
            "\n".join(map(_named, self.outputs)),
        ]

    def _repr_html_(self) -> str:
        rows = [["in", one.path, one.text] for one in self.inputs] + [
            ["out", one.path, one.text] for one in self.outputs
        ]
        what = f"call #{self.id}{f' of {self._body}' if self._body else ''}"
        return _html_table([what, _outcome(self), ""], rows or [["", "", "values were not kept"]])

    @property
    def duration_ns(self) -> int | None:
        """Time in the body, without that at stops; None while it runs."""
        return None if self.end_ns is None else self.end_ns - self.start_ns - self.stopped_ns


def _other_process() -> Exception:
    from pyfunc_debug.errors import NotKeptError

    return NotKeptError(
        "the body can only run again in the process that recorded it: use the object that record() returned"
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that the doctor reports: what, why, where, and what to do about it.

    Attributes:
      rule: Its name; the manual has a section of that name (`page`).
      severity: "error": wrong results, or the program failed; "warning": likely not what was meant, or slow; "note".
      node: The node it is about, or the first of them.
      calls: The calls that show it.
      message: The cause, in plain words.
      fix: Text to paste, with the user's own names, for the front end that asked.
      file, line: The user's line.
      nodes: All nodes where there are several: each graph trace makes a new node for a body.
      evidence: What was seen, with its numbers, a line each.
      confidence: "measured": the recording shows it; "proven": tried, by running the body again; "likely".
    """

    rule: str
    severity: Severity
    node: int | None
    calls: tuple[int, ...]
    message: str
    fix: str
    file: str | None
    line: int | None
    nodes: tuple[int, ...] = ()
    evidence: tuple[str, ...] = ()
    confidence: Confidence = "measured"

    @property
    def page(self) -> str:
        """Its section in the manual."""
        return f"docs/doctor.md#{self.rule}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON.

        Returns:
          Every field by name, and `page`.
        """
        return {**asdict(self), "page": self.page}

    def __repr__(self) -> str:
        where = "" if self.file is None else f" at {source_line(self.file, self.line)}"
        return f"<{self.severity} {self.rule}{where}: {self.message}>"

    def _repr_html_(self) -> str:
        return items_html([self]) or ""


class Findings(list[Finding]):
    """A list of findings that reads well where it is shown.

    Args:
      found: The findings.
      thumbnails: Captions and PNG files that belong to a finding: what its first call was given.
    """

    def __init__(
        self, found: Iterable[Finding] = (), thumbnails: Callable[[Finding], list[tuple[str, bytes]]] | None = None
    ) -> None:
        super().__init__(found)
        self._thumbnails = thumbnails

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) or "<no findings>"

    def _repr_html_(self) -> str:
        if not self:
            return _html_table(_TABLES[Finding][0], [["", "", "", "no findings", ""]])
        images = [] if self._thumbnails is None else [one for finding in self for one in self._thumbnails(finding)]
        return (items_html(self) or "") + "".join(_image(*one) for one in images[:_MOST_IMAGES])


def _image(caption: str, png: bytes) -> str:
    data, words = base64.b64encode(png).decode("ascii"), html.escape(caption)
    return (
        f'<figure style="display: inline-block; margin: 4px"><img src="data:image/png;base64,{data}" alt="{words}" '
        f'style="width: 64px; image-rendering: pixelated"><figcaption>{words}</figcaption></figure>'
    )


def items_html(items: Sequence[Any]) -> str | None:
    """Calls, values or findings as a table: what a notebook shows for a plain list of them.

    Args:
      items: A list or tuple.

    Returns:
      The table; None where they are something else, or not all the same.
    """
    kinds = {type(one) for one in items}
    table = _TABLES.get(kinds.pop()) if len(kinds) == 1 else None
    if table is None:
        return None
    heads, row_of = table
    more = len(items) - _MOST_ROWS
    return _html_table(heads, [row_of(one) for one in items[:_MOST_ROWS]]) + (
        f"<p>and {more:,} more</p>" if more > 0 else ""
    )


def _value_row(value: Value) -> list[str]:
    return [value.path, value.text, value.kept or value.note or "no elements"]


def _finding_row(one: Finding) -> list[str]:
    return [one.severity, one.rule, source_line(one.file, one.line), one.message, one.fix]


_TABLES: dict[type, tuple[list[str], Callable[[Any], list[str]]]] = {
    Call: (["call", "outcome", "in", "out"], Call._row),  # noqa: SLF001 - a noun's own
    Value: (["value", "", "kept"], _value_row),
    Finding: (["", "rule", "line", "what", "what to do"], _finding_row),
}


def _outcome(call: Call) -> str:
    took = "" if call.duration_ns is None else f", {call.duration_ns / 1e6:.3g} ms"
    return f"{call.failure.type if call.failure is not None else call.status}{took}"


def _named(value: Value) -> str:
    return f"{value.path} {value.text}"


def _html_table(heads: list[str], rows: list[list[str]]) -> str:
    """A plain table; what comes from a program is only ever text."""
    cell = 'style="text-align:left;vertical-align:top;white-space:pre-wrap"'
    head = "".join(f"<th {cell}>{html.escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td {cell}>{html.escape(text)}</td>' for text in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
