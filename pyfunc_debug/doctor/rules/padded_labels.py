"""Labels that `padded_batch` fills up with 0, which is a class too: loss and accuracy count the padding as rows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.body_inputs import Given, returned
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.models.compiled_models import Compiled, compiled_models
from pyfunc_debug.records import Finding, Node

NAMES = ("padded-label",)
_CLASSES = re.compile(r"sparse_?categorical_?crossentropy", re.I)
_KNOWS = re.compile(r"mask|sample_weight|weighted_metrics|ignore_class|padding_values|from_tensor\(|ragged", re.I)
"""Words of a file that leaves the padding out, or may."""
_KNOWS_LENGTHS = re.compile(r"padding_values|count_nonzero|not_equal|ragged|!= ?0|> ?0|>= ?0", re.I)
"""Words of a file that pads labels with another number, or counts what is not padding."""
_LEAST_SHARE = 0.05


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a `compile`, or a CTC loss."""
    yield from _of_ctc(facts)
    for compiled in compiled_models(facts):
        own = pastes.source(facts, compiled.file)
        if compiled.loss is None or not _CLASSES.search(own.text(compiled.loss)) or _KNOWS.search("\n".join(own.code)):
            continue
        batches = [one for one in pastes.walk(own.tree, ast.Call) if pastes.last_name(one.func) == "padded_batch"]
        size = _size(facts)
        for nodes in _sources(facts) if batches and size else ():
            found = _padded(facts, nodes, size or 1)
            if found is not None:
                yield _finding(facts, compiled, batches, nodes[0], *found)
                break


def _of_ctc(facts: Facts) -> Iterator[Finding]:
    """A CTC loss whose label_length is the padded length, of labels of one body among which 0 is a letter."""
    size = _size(facts)
    for group in _sources(facts) if size else ():
        own = pastes.source(facts, group[0].file)
        losses = [one for one in pastes.walk(own.tree, ast.Call) if pastes.last_name(one.func) == "ctc_batch_cost"]
        batches = [one for one in pastes.walk(own.tree, ast.Call) if pastes.last_name(one.func) == "padded_batch"]
        call = losses[0] if len(losses) == 1 and len(losses[0].args) == 4 else None
        if call is None or not batches or _KNOWS_LENGTHS.search("\n".join(own.code)):
            continue
        labels, lengths = own.text(call.args[0]), pastes.behind_name(own.function(call.lineno), call.args[3])
        if not re.search(rf"shape\({re.escape(labels)}\)\[(1|-1)\]", ast.unparse(lengths)):
            continue
        for position in range(len(group[0].tout)):
            seen = returned(facts, group, position)
            sizes = [one.shape[0] for one in seen if len(one.shape) == 1 and "int" in one.dtype]
            if len(sizes) < len(seen) or len({*sizes}) < 2 or not any(one.low == 0 for one in seen):
                continue
            if any((one.low or 0) < 0 for one in seen):
                continue
            yield Finding(
                NAMES[0], "warning", group[0].id, (),
                f"padded_batch fills the labels of {facts.name(group[0])}, of {min(sizes):,} to {max(sizes):,} "
                f"numbers, up with 0, which is a class as well, and the label_length of ctc_batch_cost is the padded "
                "length: the model learns to end short words with class 0",
                "return the length of each label from the body, too, and give that as label_length; or pad with "
                f"padding_values= of -1 for the labels, and count them in line {call.lineno}: tf.reduce_sum(tf.cast("
                f"{labels} >= 0, tf.int32), -1, keepdims=True)",
                group[0].file, call.lineno, confidence="likely",
                evidence=(f"line {lengths.lineno}: {facts.line(group[0].file, lengths.lineno)}",),
            )  # fmt: skip
            break


def _sources(facts: Facts) -> Iterator[list[Node]]:
    """The generators, and the bodies of one line together."""
    yield from ([one] for one in facts.nodes.values() if facts.is_generator(one))
    yield from facts.lines


def _size(facts: Facts) -> int | None:
    """The size of the padded batches that a loop took; None where there is no such loop."""
    stages = [stage for loop in facts.meta.get("inputs") or [] for stage in loop["stages"]]
    sizes = {int(one["batch"]) for one in stages if one["kind"].startswith("PaddedBatch") and one.get("batch")}
    return sizes.pop() if len(sizes) == 1 else None


def _padded(facts: Facts, nodes: Sequence[Node], size: int) -> tuple[list[Given], list[Given], float] | None:
    """What was given as inputs and as labels, and the share of padding, where labels are rows of unlike lengths."""
    if len(nodes[0].tout) != 2:
        return None
    inputs, labels = returned(facts, nodes, 0), returned(facts, nodes, 1)
    lengths = [one.shape[0] for one in labels if len(one.shape) == 1 and "int" in one.dtype]
    fits = len(lengths) == len(labels) and len({*lengths}) > 1 and [one.shape[:1] for one in inputs] == [
        one.shape for one in labels
    ]  # fmt: skip
    if not fits or not any(one.low == 0 for one in labels) or any((one.low or 0) < 0 for one in labels):
        return None
    rows = [lengths[at : at + size] for at in range(0, len(lengths), size)]
    share = 1 - sum(lengths) / sum(max(one) * len(one) for one in rows)
    return (inputs, labels, share) if share >= _LEAST_SHARE else None


def _finding(
    facts: Facts, compiled: Compiled, batches: Sequence[ast.Call], node: Node, inputs: list[Given],
    labels: list[Given], share: float,
) -> Finding:  # fmt: skip
    lengths = [one.shape[0] for one in labels]
    free = all("int" in one.dtype and one.low is not None and one.low > 0 for one in inputs)
    fix = _weighted(facts, compiled, batches[0]) if free and len(batches) == 1 else ""
    return Finding(
        NAMES[0], "warning", node.id, (),
        f"padded_batch fills the labels of {facts.name(node)}, of {min(lengths):,} to {max(lengths):,} numbers, up "
        f"with 0, and 0 is a class as well: some {share:.0%} of what the loss and accuracy count is padding, which a "
        "model learns quickly",
        fix or "a third part of each batch, the weights: 0.0 where a label is padding; and weighted_metrics=",
        compiled.file, batches[0].end_lineno, confidence="likely",
    )  # fmt: skip


def _weighted(facts: Facts, compiled: Compiled, batch: ast.Call) -> str:
    """Weights behind the batch, 0 where the inputs are padding, and metrics that are weighted with them."""
    own, tf = pastes.source(facts, compiled.file), pastes.module(facts, compiled.file, "tensorflow")
    if tf is None:
        return ""
    weights = f"{own.text(batch)}.map(lambda x, y: (x, y, {tf}.cast(x > 0, {tf}.float32)))"
    edits: list[Edit | None] = [pastes.replaced(facts, compiled.file, {batch: weights})]
    metrics = next((one for one in compiled.call.keywords if one.arg == "metrics"), None)
    if metrics is not None:
        line = facts.source(compiled.file)[metrics.lineno - 1]
        if not line.isascii():
            return ""  # places count bytes
        new = f"{line[: metrics.col_offset]}weighted_{line[metrics.col_offset :]}"
        edits.append(Edit(compiled.file, metrics.lineno, metrics.lineno, (new,)))
    return pastes.written(*edits)
