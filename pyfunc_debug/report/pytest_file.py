"""A recorded call as a test: a pytest file that runs its body again on the recorded inputs and asks for its outcome.

The file stands alone: it knows NumPy, pytest, the user's function and, for a py_function, TensorFlow; not this package.
"""

from __future__ import annotations

import builtins
import keyword
import os
import pprint
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.errors import CannotWriteError, NotKeptError
from pyfunc_debug.events import Notice
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.places import source_line
from pyfunc_debug.program.random_state import Arguments as Random
from pyfunc_debug.program.random_state import RandomState, as_arguments
from pyfunc_debug.records import FROM_GENERATOR, Call, Node, Value
from pyfunc_debug.report.excerpt import Excerpt, excerpt

Array = np.ndarray[Any, Any]
_INLINE = 64
"""Elements of an array that is written into the test; larger ones are in the file beside it."""
_NOT_NUMPYS = ("bfloat16", "float8", "float4", "int4", "uint4", "int2", "uint2")
"""Types that NumPy has no names for: they are written as float32, which holds them exactly."""
_CUT = re.compile(r"\.\.\. \([\d,]+ characters\)$")
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_OWN_NAMES = ("np", "tf", "pytest", "re", "sys", "Path", "DATA", "found", "caught", "expected", "python_random",
              "numpy_random")  # fmt: skip
_BY_HAND = ("KeyboardInterrupt", "BdbQuit")


@dataclass(frozen=True)
class TestFile:
    """The test of a call.

    Attributes:
      text: The file's text.
      arrays: What is to be saved beside it, as `NAME.npz`; empty where all stands in the text.
      notes: What the test does not hold, and what there is left to do: a sentence each, all in the text as well.
    """

    text: str
    arrays: Mapping[str, Array]
    notes: tuple[str, ...]

    def save(self, path: str | os.PathLike[str]) -> str:
        """Writes it, and its arrays beside it.

        Returns:
          The absolute path of the test.

        Raises:
          CannotWriteError: one of the files cannot be written.
        """
        out = os.path.abspath(os.fspath(path))
        try:
            if self.arrays:
                np.savez_compressed(os.path.splitext(out)[0] + ".npz", **self.arrays)  # type: ignore[arg-type]
            with open(out, "w", encoding="utf-8") as file:
                file.write(self.text)
        except OSError as error:
            raise CannotWriteError(f"cannot write the test {out}: {error.strerror or error}") from error
        return out


def test_name(call: Call, node: Node) -> str:
    """`test_augment_call_17`: the name of the test and, with .py, of its file."""
    return f"test_{re.sub(r'[^0-9a-zA-Z]+', '_', node.body).strip('_') or 'body'}_call_{call.id}"


def as_test(
    call: Call, reader: Reader, *, known: Mapping[str, Any] | None = None, stem: str | None = None,
    rtol: float = 1e-5, atol: float = 1e-8, unsure: str = "", state: RandomState | None = None,
) -> TestFile:  # fmt: skip
    """Writes the test of a call.

    Args:
      call: The call.
      reader: Its recording.
      known: What the body sees besides its parameters, by name, where its program is running.
      stem: Name of the test's file without `.py`; by default `test_name`.
      rtol: Relative tolerance of its numbers.
      atol: Absolute tolerance.
      unsure: Why its outcome may not come again, where that is so: a sentence.
      state: The random state that it began with, where that was recorded.

    Raises:
      NotKeptError: its inputs were not kept in full, or its body cannot be run outside of TensorFlow; the message says
        which and why.
    """
    node = next(node for node in reader.nodes() if node.id == call.node)
    _refuse(call, node)
    texts = dict(reader.rows("SELECT file, text FROM source"))
    maker = next((one for one in reader.functions() if one.id == node.function), None)
    if maker is not None and maker.name == FROM_GENERATOR:
        raise NotKeptError(
            f"call #{call.id} cannot become a test: it takes the next element of the generator {node.body}, which "
            "depends on those before"
        )
    if node.file is None or node.line is None:
        raise NotKeptError(f"call #{call.id} cannot become a test: {node.body} is not written in Python")
    body = excerpt(node.file, node.line, texts, [value.path for value in call.inputs], known or {})
    if _set_by_hand(call, reader):
        unsure = "Somebody changed a value at a stop of this call: its outcome may not come again."
    try:
        random = None if state is None else as_arguments(state)
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        random, unsure = None, unsure or f"The recorded random state cannot be set: {error}."
    test = _Test(call, node, body, rtol, atol, unsure, random)
    return test.file(reader, stem or test_name(call, node))


def _refuse(call: Call, node: Node) -> None:
    what = f"call #{call.id} cannot become a test: "
    if call.kind == "gradient":
        forward = f"; make one of its forward call, #{call.forward}" if call.forward is not None else ""
        raise NotKeptError(f"{what}it is a gradient call, which TensorFlow computes{forward}")
    if call.status == "running":
        raise NotKeptError(f"{what}it has not ended")
    if call.failure is not None and call.failure.type in _BY_HAND:
        raise NotKeptError(f"{what}it was ended by hand ({call.failure.type})")
    lost = [value for value in call.inputs if value.kept != "full"]
    if lost or len(call.inputs) < len(node.paths):
        which = ", ".join(value.path for value in lost) or "none of its inputs was recorded"
        raise NotKeptError(
            f"{what}not all of its inputs were kept in full ({which}). "
            'Record with values="full" (%%pyfunc_trace --values full)'
        )
    parts = [value.path for value in call.inputs if not re.fullmatch(r"\w+(\[\d+\])?", value.path)]
    if parts:
        raise NotKeptError(f"{what}its input {parts[0]} is a part of a structure; a test is made of tensors and arrays")


def _set_by_hand(call: Call, reader: Reader) -> bool:
    rows = reader.rows("SELECT rule FROM notice WHERE call = ?", (call.id,))
    return any(Notice.read(rule) == Notice.CHANGED_BY_HAND for (rule,) in rows)


class _Test:
    """Writes one test."""

    def __init__(
        self, call: Call, node: Node, body: Excerpt, rtol: float, atol: float, unsure: str, random: Random | None
    ) -> None:
        self._call = call
        self._node = node
        self._body = body
        self._tolerance = f"rtol={rtol:g}, atol={atol:g}"
        self._rtol = rtol
        self._eager = node.kind == "py_function"
        self._arrays: dict[str, Array] = {}
        self._notes = list(body.missing)
        if body.values:
            names = ", ".join(body.values)
            self._notes.append(f"The values of {names} are those of the moment in which this file was written.")
        self._random = random
        self._unsure = unsure
        if unsure:
            self._notes.append(unsure)

    def file(self, reader: Reader, stem: str) -> TestFile:
        """The whole file."""
        call, node = self._call, self._node
        names = _argument_names(call.inputs, self._body)
        inputs = [f"{name} = {self._given(value, name)}" for name, value in zip(names, call.inputs)]
        called = self._body.called(names)
        outcome = self._failed(called, names) if call.failure is not None else self._returned(called, set(names))
        lines = [
            *([f"@pytest.mark.xfail(reason={_quoted(self._unsure)})"] if self._unsure else []),
            *(["@recorded_random_state()"] if self._random is not None else []),
            f"def {test_name(call, node)}():",
            *(f"    {line}" for one in inputs for line in one.splitlines()),
            *(f"    {line}" if line else "" for line in outcome),
        ]
        lines = [*self._generators(), *lines]
        used = "\n".join([*self._body.lines, *lines])
        if self._arrays:
            lines = [f'DATA = np.load(Path(__file__).with_name("{stem}.npz"))', "", "", *lines]
        elif lines:
            lines = ["", *lines]
        own = [f"import {one}" for one in ("contextlib", "re", "sys") if f"{one}." in used]
        own += ["from pathlib import Path"] if self._arrays else []
        third = [
            line for line, name in (("import numpy as np", "np."), ("import pytest", "pytest."),
                                    ("import tensorflow as tf", "tf."))
            if name in used or (name == "np." and self._arrays) or (name == "pytest." and self._body.missing)
        ]  # fmt: skip
        body = [line for line in self._body.lines if line not in (*own, *third)]
        skip = [
            "pytest.skip(",
            f'    {_quoted("; ".join(self._body.missing) + "; then delete this")},',
            "    allow_module_level=True,",
            ")",
        ] if self._body.missing else []  # fmt: skip
        blocks = [[*own], [*third], [*body], skip, lines]
        return TestFile(f"{self._head(reader)}\n{_joined(blocks)}", self._arrays, tuple(self._notes))

    def _generators(self) -> list[str]:
        """What sets the global random generators as the call had them, and puts them back.

        Around the test itself: pytest-randomly seeds them again between a fixture and its test.
        """
        if self._random is None:
            return []
        (version, words, gauss), (kind, key, *rest) = self._random
        self._arrays |= {"python_random": np.array(words, np.uint32), "numpy_random": np.array(key, np.uint32)}
        return [
            "@contextlib.contextmanager",
            "def recorded_random_state():",
            "    import random",
            "",
            "    before = random.getstate(), np.random.get_state()",
            f'    random.setstate(({version}, tuple(DATA["python_random"].tolist()), {gauss!r}))',
            f'    np.random.set_state(("{kind}", DATA["numpy_random"], {", ".join(map(repr, rest))}))',
            "    try:",
            "        yield",
            "    finally:",
            "        random.setstate(before[0])",
            "        np.random.set_state(before[1])",
            "",
            "",
        ]

    def _head(self, reader: Reader) -> str:
        node = self._node
        versions = reader.meta.get("versions") or {}
        version = f" with TensorFlow {versions['tensorflow']}" if "tensorflow" in versions else ""
        where = source_line(node.file, node.line)
        lines = [
            f'"""Call #{self._call.id} of {node.body} ({where}) again, on its recorded inputs.',
            "",
            f"Made by pyfunc_debug from {reader.name}, recorded{version}.",
        ]
        if self._body.copied:
            lines.append(f"The body is a copy of what was recorded, because {self._body.copied}.")
        lines += [one[0].upper() + one[1:] + ("" if one.endswith(".") else ".") for one in self._notes]
        return "\n".join([*lines, '"""', ""]).replace("\\", "/")

    # -- values -------------------------------------------------------------------------------------------------------

    def _literal(self, value: Value, name: str) -> tuple[str, str, bool]:
        """An array as an expression; its elements alone where they say it all; whether its type is still missing."""
        array = value.array()
        odd = value.dtype.startswith(_NOT_NUMPYS)
        if odd:
            array = array.astype(np.float32)
        if array.dtype.hasobject:
            return f"np.array({_pretty(array.tolist())}, dtype=object)", "", False
        if array.size > _INLINE or (array.dtype.kind == "c" and not np.isfinite(array).all()):
            self._arrays[name] = array
            return f'DATA["{name}"]', "", odd
        if array.size == 0:
            return f"np.zeros({array.shape}, np.{array.dtype.name})", "", odd
        text = _pretty(_shortest(array))
        kind = "np.bool_" if array.dtype.kind == "b" else f"np.{array.dtype.name}"
        text = re.sub(r"(?<![\w.])(nan|inf)(?![\w.])", r"np.\1", text)
        return (f"{kind}({text})" if array.ndim == 0 else f"np.array({text}, {kind})"), text, odd

    def _given(self, value: Value, name: str) -> str:
        """An input as TensorFlow gives it to the body."""
        if value.dtype == "string" and value.shape == () and not self._eager:
            return repr(value.array().item())  # bytes, as numpy_function gives them
        text, bare, odd = self._literal(value, name)
        dtype = f"tf.{value.dtype}"
        if self._eager:
            return f"tf.constant({bare or text}, {dtype})"
        return f"{text}.astype({dtype}.as_numpy_dtype)" if odd else text

    # -- outcomes -----------------------------------------------------------------------------------------------------

    def _failed(self, called: str, names: Sequence[str]) -> list[str]:
        failure = self._call.failure
        assert failure is not None
        known = getattr(builtins, failure.type, None)
        plain = isinstance(known, type) and issubclass(known, BaseException)
        if not failure.frames and self._node.tout:  # TensorFlow could not take what the body returned
            types = ", ".join(f"tf.{one}" for one in self._node.tout)
            maker, given = ("py_function" if self._eager else "numpy_function"), ", ".join(names)
            function = f"lambda {given}: {called}" if self._body.bound else self._body.name
            return [
                "",
                "with pytest.raises(tf.errors.OpError):  # TensorFlow cannot take what the body returns",
                f"    tf.function(lambda: tf.{maker}({function}, [{given}], [{types}]))()",
            ]
        inside = [called]
        lines = ["", f"with pytest.raises({failure.type if plain else 'Exception'}) as caught:"]
        lines += [f"    {line}" for line in inside]
        lines.append("")
        if not plain:
            lines.append(f'assert type(caught.value).__name__ == "{failure.type}"')
        message = failure.message
        if _CUT.search(message):
            cut = _CUT.sub("", message)
            self._notes.append(f"The exception's text was kept up to its character {len(cut):,}.")
            return [*lines, f"assert str(caught.value).startswith({_quoted(cut)})"]
        if _ADDRESS.search(message):
            text = _quoted(_ADDRESS.sub("0x", message))
            return [*lines, f'assert re.sub("0x[0-9a-f]+", "0x", str(caught.value)) == {text}']
        return [*lines, f"assert str(caught.value) == {_quoted(message)}"]

    def _returned(self, called: str, taken: set[str]) -> list[str]:
        outputs = self._call.outputs
        if not outputs:
            if self._node.tout:
                self._notes.append("Nothing was kept of what it returned: the test asks only that it ends well.")
            return ["", called]
        names = ["out"] if len(outputs) == 1 else [f"out_{i}" for i in range(len(outputs))]
        names = [f"{name}_" if name in taken else name for name in names]
        most = f"[:{len(outputs)}]" if self._eager else ""  # a py_function's further results are left out
        flat = f"found{most} if isinstance(found, (list, tuple)) else [found]"
        if self._eager and any(not re.fullmatch(r"out(\[\d+\])?", value.path) for value in outputs):
            flat = "tf.nest.flatten(found, expand_composites=True)"
        lines = ["", f"found = {called}", "", f"{', '.join(names)}{',' if len(names) == 1 else ''} = {flat}"]
        lines = lines if len(names) > 1 else [*lines[:-1], f"({names[0]},) = {flat}"]
        for name, value in zip(names, outputs):
            lines += self._compared(name, value)
        return lines

    def _compared(self, name: str, value: Value) -> list[str]:
        """What is asked of one output."""
        expected, _, odd = self._literal(value, name) if value.kept == "full" else ("", "", False)
        made = f"tf.convert_to_tensor({name}, tf.{value.dtype})" if self._eager else f"np.asarray({name})"
        if odd:
            made = f"tf.cast({made}, tf.float32)" if self._eager else f"{made}.astype(np.float32)"
        lines = [f"{name} = {made}"]
        lines.append(f"assert {name}.shape == {value.shape}")
        if value.kept != "full":
            return [*lines, *self._statistics(name, value)]
        if value.dtype == "string":
            if any(_ADDRESS.search(repr(one)) for one in value.array().ravel().tolist()):
                self._notes.append(f"{value.path} has an address in it: the test asks for its shape only.")
                return lines
            texts = f"[one.encode() if isinstance(one, str) else one for one in np.asarray({name}).ravel().tolist()]"
            return [*lines, f"assert {texts} == {_pretty(value.array().ravel().tolist())}"]
        if value.array().dtype.kind in "biu":
            return [*lines, f"expected = {expected}", f"np.testing.assert_array_equal({name}, expected)"]
        return [*lines, f"expected = {expected}", f"np.testing.assert_allclose({name}, expected, {self._tolerance})"]

    def _statistics(self, name: str, value: Value) -> list[str]:
        """Of an output whose elements were not kept: what is known of it."""
        known = [one for one in ("min", "max", "mean") if getattr(value, one) is not None]
        if value.nan or value.inf or value.sampled is not None or not known or value.dtype.startswith("complex"):
            self._notes.append(f"The elements of {value.path} were not kept: the test asks for its shape only.")
            return []
        self._notes.append(f"The elements of {value.path} were not kept: the test asks for shape, min, max and mean.")
        of = f"np.asarray({name}, np.float64)"
        return [
            f"np.testing.assert_allclose({of}.{one}(), {getattr(value, one)!r}, rtol={self._rtol * 10:g}, atol=1e-6)"
            for one in known
        ]


def _argument_names(inputs: Sequence[Value], body: Excerpt) -> list[str]:
    """Names for the inputs that hide nothing the test needs."""
    taken = {body.name.partition(".")[0], *_OWN_NAMES}
    names: list[str] = []
    for value in inputs:
        name = re.sub(r"\W+", "_", value.path).strip("_") or "x"
        name = f"x_{name}" if name[0].isdigit() else name
        while name in taken or keyword.iskeyword(name):
            name += "_"
        taken.add(name)
        names.append(name)
    return names


def _shortest(array: Array) -> Any:
    """Nested lists whose numbers are as short as their type allows: 0.1, not 0.10000000149011612."""
    plain = array.tolist()
    if array.dtype.kind != "f":
        return plain
    short = np.array([float(str(one)) for one in array.ravel()]).reshape(array.shape)
    return short.tolist() if np.array_equal(short.astype(array.dtype), array, equal_nan=True) else plain


def _pretty(value: Any) -> str:
    return pprint.pformat(value, width=100, compact=True)


def _quoted(text: str) -> str:
    """A string literal in double quotes where that is as short."""
    return repr(text) if '"' in text or "\\" in repr(text) else f'"{text}"'


def _joined(blocks: Sequence[Sequence[str]]) -> str:
    return "\n".join("\n".join(block).rstrip("\n") + "\n" for block in blocks if block)
