"""Functions that TensorFlow traces again and again: the argument that changes, the cost, and what one graph needs."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.needs_python import needs_python
from pyfunc_debug.doctor.datasets import built_once
from pyfunc_debug.doctor.facts import Facts, makes_node
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.graphs import growing, moved, other_objects, predict_graphs
from pyfunc_debug.doctor.graphs.hoist import hoisted
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.records import Finding, Function, GraphTrace

NAMES = ("retrace", "function-in-loop", "dataset-in-loop")
_MANY = 3
"""Up to this many graphs beyond the first are usual: training and evaluation, a last batch that is smaller."""
_MANY_OBJECTS = 5
_SHOWN = 3
_WORTH = 10
"""Runs of a graph that pay for its trace."""
_SIZES = re.compile(r": shape \((\d[^)]*)\), was \((\d[^)]*)\)$")
_SIZED = re.compile(r"`([^`]+)`: shape \(")
_SIZE = re.compile(r"(?<=[\[ ])\d+(?=[,\]])")
_FEWER = 0.75
"""Share of the traces that must be left at most, for open sizes to be offered."""
_METHOD = re.compile(r"__inference_Dataset_([a-z]+(?:_map)?)_")
"""The method of a dataset that a function was traced for, in the name of its graph."""
_OPTION = re.compile(r"\w+=")
_NUMBER = re.compile(r"`(\w+)(\[\d+\])*`: Python value (-?[\d.]+(?:e[-+]?\d+)?), was (-?[\d.]+(?:e[-+]?\d+)?)(?:$|:)")
_TEXT = re.compile(r"`(\w+)`: Python value ['\"].*, was ['\"]")
_PYTHON = re.compile(r"`([^`]+)`: Python value ")
_COUNTED = re.compile(r"`(\w+)`: \d+ elements?, was \d+ elements?$")
_FEW = 5
"""A value that changed in less than the fifth part of the traces is not what keeps TensorFlow tracing."""
_PASSED = re.compile(r"\b(\w+): -?\d")
"""Numbers of Python's in a signature."""
_OF_TWO = {
    "pow", "add", "subtract", "multiply", "divide", "truediv", "floordiv", "floormod", "mod", "maximum", "minimum",
    "squared_difference", "atan2", "greater", "greater_equal", "less", "less_equal", "equal", "not_equal",
    "divide_no_nan", "multiply_no_nan", "scalar_mul",
}  # fmt: skip
"""Ops that take two tensors of one dtype, and a number of Python's in the place of one."""
_SERVES = {True: "With tensors in their place", False: "With open sizes"}
_TENSOR = re.compile(r"always pass `(\w+(?:\['\w+'\])?)` as a tensor: tf\.constant\(.*, (tf\.\w+)\)")
_KINDS = re.compile(r": (\w+)\[")
"""Dtypes of the tensors in a signature."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a function and kind of reason."""
    runs = Counter(
        dict(facts.reader.rows("SELECT function, count(*) FROM run WHERE kind = 'forward' GROUP BY function"))
    )
    again: dict[tuple[int, str, str], list[GraphTrace]] = {}
    seen: set[tuple[int, str]] = set()
    for trace in facts.traces:
        if trace.error is None and facts.functions[trace.function].origin == "user":
            method = _METHOD.match(trace.name or "")  # two lambdas of one line are one function, and have two
            which = trace.function, method[1] if method is not None else ""
            if trace.reason and (which in seen or not which[1]):
                again.setdefault((trace.function, _rule(trace), which[1]), []).append(trace)
            seen.add(which)
    for (number, rule, _), traces in again.items():
        function = facts.functions[number]
        least = _MANY if rule == "retrace" else _MANY_OBJECTS
        if len(traces) < least or runs[number] >= _WORTH * (len(traces) + 1):
            continue
        if rule == "retrace" and len(traces) < 3 * least and _generalizes(facts, function):
            continue  # one graph for each value, and one more for open sizes
        if rule == "dataset-in-loop" and _is_compiled(facts, function):
            continue  # Python ran once
        yield _finding(facts, function, rule, traces, runs[number])
    yield from predict_graphs.found(facts)


def _generalizes(facts: Facts, function: Function) -> bool:
    """Whether a function is one for which TensorFlow opens the sizes that change."""
    own = facts.definition(function.file, function.line)
    made = _made(facts, function)
    texts = [*map(ast.unparse, getattr(own, "decorator_list", ())), *([] if made is None else [ast.unparse(made)])]
    return any("reduce_retracing=True" in one for one in texts)


def _is_compiled(facts: Facts, function: Function) -> bool:
    """Whether a mapped function is a tf.function: it is traced once, and each dataset only calls it."""
    own = facts.definition(function.file, function.line)
    if isinstance(own, ast.Lambda) and _made(facts, function) is not None:
        return True
    return any(ast.unparse(one).partition("(")[0].endswith("function") for one in getattr(own, "decorator_list", ()))


def _rule(trace: GraphTrace) -> str:
    first = trace.reason[0]
    if first.startswith("a new tf.function object"):
        return "function-in-loop"
    if first.startswith("a new dataset"):
        return "dataset-in-loop"
    if first.startswith("another object's method") or "created variables" in first or "left no graph" in first:
        return "usual"
    return "retrace"


def _finding(facts: Facts, function: Function, rule: str, traces: list[GraphTrace], runs: int) -> Finding:
    cost = sum(trace.duration_ns for trace in traces) / 1e6
    reasons = Counter("; ".join(trace.reason) for trace in traces)
    ran = f" for {runs:,} runs" if runs else ""
    name = function.name.rpartition(".")[2]
    file, line = function.file, function.line
    evidence = [f"{count:,}x {reason}" for reason, count in reasons.most_common(_SHOWN)]
    if len(reasons) > _SHOWN:
        evidence.append(f"and {len(reasons) - _SHOWN:,} more such reasons")
    sure: Literal["measured", "likely"] = "measured"
    alive = growing.alive(facts)  # None where it was not counted
    stay = "" if alive is not None and 2 * alive < len(traces) else ", which stay in memory"
    keep = ". Each dataset also keeps its graphs" if stay else ""
    if rule != "retrace" and stay:
        evidence += [*growing.growth(facts, "graphs", "graphs in memory"), *growing.memory(facts)]
    if rule == "dataset-in-loop":
        message = (
            f"the dataset that calls {function.name} was built {len(traces) + 1:,} times, and TensorFlow traced {name} "
            f"again for each: {cost:,.0f} ms together{keep}"
        )
        asked = built_once.call_of(facts, file, _map_of(facts, function))
        if asked is not None:
            evidence.append(
                f"{asked.function.name} builds it, for each call in {facts.source_line(asked.file, asked.call.lineno)}"
            )
        place = facts.source_line(file, line)
        which = f"that maps the lambda at {place}" if "<lambda>" in name else f"that calls {name}"
        fix = (
            made_once(facts, function)
            or _compiled(facts, function)
            or _compiled_lambda(facts, function)
            or (asked is not None and (built_once.once(facts, asked) or built_once.words(facts, asked)))
            or f"build the dataset {which} once, before the loop, and iterate the same object in each epoch"
        )
    elif rule == "function-in-loop":
        message = (
            f"{function.name} was made a tf.function {len(traces) + 1:,} times, and TensorFlow traced each of them: "
            f"{cost:,.0f} ms together{f',{ran} in all' if ran else ''}. Each tf.function object has graphs of its "
            f"own{stay}"
        )
        fix = (
            made_once(facts, function)
            or _defined_once(facts, function, traces)
            or f"{name} = tf.function({name})  # once, outside of the function or loop"
        )
        if "<lambda>" in name and not fix.startswith(("Put", "Replace")):
            made = _made(facts, function)
            text = pastes.text_of(facts, file, made) if made is not None else "tf.function(lambda ...)"
            fix = f"f = {text}  # once, outside of the loop, and call f there"
    else:
        last = traces[-1].avoid or next((trace.avoid for trace in reversed(traces) if trace.avoid), None)
        changing = _changing(traces)
        message = (
            f"TensorFlow traced {function.name} {len(traces) + 1:,} times{ran}, because {changing}: "
            f"{cost:,.0f} ms together. A graph is kept for each"
        )
        fix = other_objects.made_once(facts, function, traces) or _followed(facts, function, traces, last or "") or (
            f"@tf.function({last})" if last and _OPTION.match(last) and ";" not in last
            else last or _unproven(facts, function, traces)
        )  # fmt: skip
        if not last and ("reduce_retracing" in fix or "tf.constant(" in fix):
            sure = "likely"
            message += f". {_SERVES['tf.constant(' in fix]} one serves all, if its code takes them, which is not proven"
    return Finding(rule, "warning", None, (), message, fix, file, line, evidence=tuple(evidence), confidence=sure)


def _unproven(facts: Facts, function: Function, traces: list[GraphTrace]) -> str:
    """What is likely to help where no advice is proven."""
    reasons = [one for trace in traces for one in trace.reason]
    sized = [match for one in reasons if (match := _SIZES.search(one)) is not None]
    if 2 * len(sized) > len(reasons) and all(len(_parts(one[1])) == len(_parts(one[2])) for one in sized):
        if not _opens(facts, function, traces):
            named = list(dict.fromkeys(match[1] for one in reasons if (match := _SIZED.match(one)) is not None))
            shown = " and ".join(f"`{one}`" for one in named[:_SHOWN]) or "it"
            return f"pad {shown} to few sizes: each size is traced again for each object and each value of Python's"
        own = _written(facts, function, ["reduce_retracing=True"], [])
        return own or f"tf.function({function.name.rpartition('.')[2]}, reduce_retracing=True)"
    if any("Python value" in one for one in reasons) or all(_COUNTED.match(one) for one in reasons):
        return _numbers_as_tensors(facts, function, traces, reasons) or _in_words(reasons)
    return "call it with arguments of the same dtype, rank and structure each time"


def _opens(facts: Facts, function: Function, traces: list[GraphTrace]) -> bool:
    """Whether graphs for open sizes would be fewer: TensorFlow opens them in the second trace of the same other values.

    Each object whose method it is has graphs of its own.
    """
    every = [one for one in facts.traces if one.function == function.id and one.error is None]
    objects = 1 + sum(any("another object's method" in reason for reason in one.reason) for one in every)
    groups = Counter(_SIZE.sub("?", one.signature) for one in every)
    left = sum(min(count, 2 * objects) for count in groups.values())
    return left <= _FEWER * len(every)


def _in_words(reasons: list[str]) -> str:
    names = list(dict.fromkeys(match[1] for one in reasons if (match := _PYTHON.match(one)) is not None))
    if not names:
        return "pass tensors instead of Python values"
    shown = " and ".join(f"`{one}`" for one in names[:_SHOWN])
    return f"pass {shown} as tensor{'s' * (len(names) > 1)}: tf.constant({names[0]})"


def _numbers_as_tensors(facts: Facts, function: Function, traces: list[GraphTrace], reasons: list[str]) -> str:
    """Every number or list of numbers that changes as a tensor; "" where the function needs one to be Python's."""
    dtypes: dict[str, str] = {}
    options: list[str] = []
    for one in reasons:
        number, counted = _NUMBER.match(one), _COUNTED.match(one)
        if number is not None:
            whole = number[3].lstrip("-").isdigit() and number[4].lstrip("-").isdigit()
            dtype = "tf.int32" if whole and dtypes.get(number[1]) != "tf.float32" else "tf.float32"
            dtypes[number[1]] = "" if number[2] or dtypes.get(number[1]) == "" else dtype
        elif (text := _TEXT.match(one)) is not None:
            dtypes[text[1]] = "tf.string"
        elif counted is not None:
            dtypes[counted[1]], options = "", ["reduce_retracing=True"]
        elif _SIZES.search(one):
            options = ["reduce_retracing=True"]
        else:
            return ""
    own = facts.definition(function.file, function.line)
    if own is None:
        return ""
    for name in [one for one in dtypes if needs_python(own, one, traces[-1].signature)]:
        if _FEW * sum(one.startswith(f"`{name}`") for one in reasons) > len(traces):
            return ""
        del dtypes[name]  # it stays Python's: few graphs are for its sake
    if not dtypes:
        return ""
    dtypes |= {one: "tf.int64" for one, dtype in dtypes.items() if dtype == "tf.int32" and _counts_summaries(own, one)}
    for name in [one for one, dtype in dtypes.items() if dtype in ("tf.int32", "tf.float32")]:
        beside = _beside(own, name, traces)
        if beside is None:
            return ""
        dtypes[name] = beside or dtypes[name]
    lists = [name for name, dtype in dtypes.items() if not dtype]
    if not all(re.search(rf"\b{name}: [\[(]-?\d[\d.e-]*[,)\]]", trace.signature) for name in lists for trace in traces):
        return ""  # of something else than numbers
    return _pasted(facts, function, options, dtypes)


def _beside(own: ast.AST, name: str, traces: list[GraphTrace]) -> str | None:
    """The dtype that a number of Python's takes where it is computed with tensors: a tensor keeps its own.

    "" where it is computed with none, None where the tensors are of several dtypes, or of one that nobody knows.
    """
    kinds = set(_KINDS.findall(traces[-1].signature))
    numbers = set(_PASSED.findall(traces[-1].signature))
    others = [
        one for one in _computed_with(own, name)
        if not isinstance(one, ast.Constant) and not (isinstance(one, ast.Name) and one.id in numbers)
    ]  # fmt: skip
    if not others:
        return ""
    if len(kinds) == 1:
        return f"tf.{kinds.pop()}"
    return None


def _computed_with(own: ast.AST, name: str) -> Iterator[ast.expr]:
    """What stands on the other side of an operator, or in the other place of an op of two numbers."""
    for one in ast.walk(own):
        sides: list[ast.expr] = []
        if isinstance(one, ast.BinOp):
            sides = [one.left, one.right]
        elif isinstance(one, ast.Compare):
            sides = [one.left, *one.comparators]
        elif isinstance(one, ast.Call) and pastes.last_name(one.func) in _OF_TWO:
            sides = [*one.args, *(given.value for given in one.keywords if given.arg in ("x", "y"))]
        if any(isinstance(side, ast.Name) and side.id == name for side in sides):
            yield from (side for side in sides if not (isinstance(side, ast.Name) and side.id == name))


def _counts_summaries(own: ast.AST, name: str) -> bool:
    """Whether a parameter is the step of a tf.summary, which takes int64."""
    given = [
        step for one in pastes.walk(own, ast.Call) if ".summary." in f".{ast.unparse(one.func)}"
        for step in (*one.args[2:], *(each.value for each in one.keywords if each.arg == "step"))
    ]  # fmt: skip
    return any(isinstance(one, ast.Name) and one.id == name for one in given)


def _parts(shape: str) -> list[str]:
    return [one for one in shape.split(",") if one.strip()]


def _changing(traces: list[GraphTrace]) -> str:
    """What all the reasons begin with: the arguments that change."""
    reasons = [trace.reason[0] for trace in traces]
    parts = [{one.partition(":")[0].partition(",")[0] for one in trace.reason} for trace in traces]
    first = [one.partition(":")[0].partition(",")[0] for one in traces[0].reason]
    heads = [one for one in dict.fromkeys(first) if " " not in one and all(one in part for part in parts)]
    if not heads or len(set(reasons)) < 2:
        return reasons[-1]
    names = list(dict.fromkeys(one.partition("[")[0].strip("`") for one in heads)) if len(heads) > _SHOWN else []
    shown = [f"`{one}`" for one in names] or heads
    more = [f"{len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
    shown = [*shown[:_SHOWN], *more]
    return f"{listed(shown)} change{'' if len(shown) > 1 else 's'}"


def _made(facts: Facts, function: Function) -> ast.Call | None:
    """The one call of tf.function that is given a lambda, or a function by its name."""
    name, tree = function.name.rpartition(".")[2], facts.tree(function.file)
    line = function.line or 0
    calls = pastes.around(tree, line, ast.Call) if "<lambda>" in name else list(pastes.walk(tree, ast.Call))
    found = [
        one for one in calls
        if one.args and ast.unparse(one.func).endswith("tf.function")
        and (isinstance(one.args[0], ast.Lambda) if "<lambda>" in name else ast.unparse(one.args[0]) == name)
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def made_once(facts: Facts, function: Function) -> str:
    """The dataset that maps a function, or its tf.function, made above the loop or function that makes it again."""
    if function.kind == "tf.data":
        return _dataset_once(facts, function)
    made, own = _made(facts, function), facts.definition(function.file, function.line)
    if made is not None:
        return hoisted(facts, function.file, made, "compiled")
    if isinstance(own, ast.FunctionDef) and own.decorator_list:
        return hoisted(facts, function.file, own, own.name)
    return ""


def _defined_once(facts: Facts, function: Function, traces: list[GraphTrace]) -> str:
    """The same for one that reads what is around it: then that is its arguments."""
    own = facts.definition(function.file, function.line)
    if not isinstance(own, ast.FunctionDef) or not own.decorator_list:
        return ""
    numbers = _changing_numbers(own, traces)
    return moved.with_arguments(facts, function.file, own, numbers) or moved.in_words(facts, function.file, own)


def _changing_numbers(own: ast.FunctionDef, traces: list[GraphTrace]) -> dict[str, str]:
    """Parameters that were another number of Python's for many traces, and may be tensors: with their dtypes."""
    found: dict[str, str] = {}
    for one in code.parameters(own):
        values = [re.search(rf"\b{one}: (-?[\d.]+(?:e[-+]?\d+)?)(?=[,)]|$)", trace.signature) for trace in traces]
        texts = {match[1] for match in values if match is not None}
        if None not in values and len(texts) > _MANY and not needs_python(own, one):
            whole = all(text.lstrip("-").isdigit() for text in texts)
            found[one] = "int64" if whole and _counts_summaries(own, one) else "int32" if whole else "float32"
    return found


def _compiled(facts: Facts, function: Function) -> str:
    """The mapped function as a tf.function that is made once: its graph and its nodes then serve all datasets."""
    own = facts.definition(function.file, function.line)
    source = pastes.source(facts, function.file)
    holder = source.parent(own) if own is not None else None
    tf = pastes.module(facts, function.file, "tensorflow")
    if not isinstance(own, ast.FunctionDef) or own.decorator_list or tf is None or function.file is None:
        return ""
    if not isinstance(holder, ast.FunctionDef):
        return pastes.written(pastes.above(facts, function.file, own.lineno, f"@{tf}.function"))
    method = isinstance(source.parent(holder), ast.ClassDef) and code.parameters(holder)[:1] == ["self"]
    used = {one.id for one in ast.walk(own) if isinstance(one, ast.Name)} - code.local_names(own)
    if not method or (used & code.local_names(holder)) - {"self"}:
        return ""
    reads = [one for one in pastes.walk(holder, ast.Name) if one.id == own.name and isinstance(one.ctx, ast.Load)]
    kept, lines = f"_{own.name}_in_graph", facts.source(function.file)[own.lineno - 1 : own.end_lineno or own.lineno]
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    new = (
        f'{indent}if not hasattr(self, "{kept}"):',
        f"{indent}    @{tf}.function",
        *(f"    {line}".rstrip() for line in lines),
        f"{indent}    self.{kept} = {own.name}",
    )
    edits = pastes.each_replaced(facts, function.file, dict.fromkeys(reads, f"self.{kept}"))
    return pastes.written(Edit(function.file, own.lineno, own.end_lineno or own.lineno, new), *edits)


def _compiled_lambda(facts: Facts, function: Function) -> str:
    """The same for a lambda: made a tf.function above the function around it."""
    tf = pastes.module(facts, function.file, "tensorflow")
    lambdas = pastes.around(facts.tree(function.file), function.line or 0, ast.Lambda)
    given = [
        one for one in lambdas
        if isinstance(parent := pastes.source(facts, function.file).parent(one), ast.Call)
        and isinstance(parent.func, ast.Attribute) and parent.func.attr == "map"
    ]  # fmt: skip
    if tf is None or "<lambda>" not in function.name or len(given) != 1:
        return ""
    own = pastes.source(facts, function.file)
    every = [
        one for one in pastes.walk(facts.tree(function.file), ast.Lambda)
        if isinstance(call := own.parent(one), ast.Call) and pastes.last_name(call.func) == "map"
    ]  # fmt: skip
    place = sorted(every, key=lambda one: (one.lineno, one.col_offset)).index(given[0])
    name = f"compiled_{place + 1}" if place else "compiled"  # the pastes for several are made together
    return hoisted(facts, function.file, given[0], name, f"{tf}.function({{}})")


def _map_of(facts: Facts, function: Function) -> ast.Call | None:
    """The call of `map`, or another method of a dataset, that is given a function; None where there are several."""
    name, own = function.name.rpartition(".")[2], pastes.source(facts, function.file)
    line = function.line or 0
    tree: ast.AST | None = facts.tree(function.file)
    defined = facts.definition(function.file, function.line)
    if "<lambda>" not in name and defined is not None:
        tree = pastes.scope_of(facts, function.file, defined)
    given: list[ast.AST] = [
        one for one in (pastes.around(tree, line, ast.Lambda) if "<lambda>" in name else pastes.walk(tree, ast.Name))
        if isinstance(one, ast.Lambda) or (one.id == name and isinstance(own.parent(one), ast.Call))
    ]  # fmt: skip
    calls = [parent for one in given if isinstance(parent := own.parent(one), ast.Call) and one is not parent.func]
    calls = [one for one in calls if not makes_node(one)]  # a lambda of a lambda's line
    return calls[0] if len(calls) == 1 and isinstance(calls[0].func, ast.Attribute) else None


def _dataset_once(facts: Facts, function: Function) -> str:
    """The whole chain of calls around its map."""
    own = pastes.source(facts, function.file)
    chain: ast.expr | None = _map_of(facts, function)
    if chain is None:
        return ""
    while isinstance(owner := own.parent(chain), ast.Attribute) and isinstance(call := own.parent(owner), ast.Call):
        chain = call
    return hoisted(facts, function.file, chain, "dataset")


def _followed(facts: Facts, function: Function, traces: list[GraphTrace], last: str) -> str:
    """The lines that follow the advice of all traces, or that of the last one; "" where it cannot be pasted."""
    every = [part for trace in traces for part in (trace.avoid or "").split("; ") if part]
    mine = last.split("; ")
    options = [one for one in mine if _OPTION.match(one)]
    return _written(facts, function, options, every) or _written(facts, function, options, mine)


def _written(facts: Facts, function: Function, options: list[str], advice: list[str]) -> str:
    """Options of the decorator, and tensors where Python numbers are passed."""
    others = list(dict.fromkeys(part for part in advice if not _OPTION.match(part)))
    tensors = [match for part in others if (match := _TENSOR.fullmatch(part)) is not None]
    if len(tensors) != len(others) or not (options or tensors):
        return ""
    return _pasted(facts, function, options, {match[1]: match[2] for match in tensors})


def _pasted(facts: Facts, function: Function, options: list[str], dtypes: dict[str, str]) -> str:
    """The same as text; "" where a call or the decorator cannot be read."""
    pieces = _as_tensors(facts, function, dtypes)
    found = facts.definition(function.file, function.line)
    own = [one for one in getattr(found, "decorator_list", []) if ast.unparse(one).endswith("function")]
    if pieces is None or (options and len(own) != 1):
        return ""
    changed: dict[str, dict[ast.expr, str]] = {}
    for (file, value), text in pieces.items():
        changed.setdefault(file, {})[value] = text
    if options and function.file is not None:
        changed.setdefault(function.file, {})[own[0]] = f"{ast.unparse(own[0])}({', '.join(options)})"
    texts = [pastes.all_replaced(facts, file, values) for file, values in changed.items()]
    return "\n".join(texts) if all(texts) else ""


def _as_tensors(facts: Facts, function: Function, dtypes: dict[str, str]) -> dict[tuple[str, ast.expr], str] | None:
    """What the calls of a function pass for some parameters, as tensors; None where a call of it cannot be read."""
    found = facts.definition(function.file, function.line)
    sites = pastes.run_sites(facts, function.id) if dtypes else []
    if found is None or not (sites or not dtypes) or len(sites) > pastes.MOST:
        return None
    parameters = [one.arg for one in (*found.args.posonlyargs, *found.args.args) if one.arg != "self"]
    pieces: dict[tuple[str, ast.expr], str] = {}
    for file, line in sites:
        call = pastes.call_at(facts, file, line, function.name.rpartition(".")[2])
        for name, dtype in dtypes.items():
            own, _, key = name.partition("[")
            place = parameters.index(own) if own in parameters else len(parameters)
            value = pastes.argument(call, place, own) if call is not None else None
            value = _under_key(value, key.strip("]'")) if key else value
            if value is None:
                return None
            given = f"{pastes.text_of(facts, file, value)}, {dtype}" if dtype else pastes.text_of(facts, file, value)
            pieces[file, value] = f"tf.constant({given})"
    return pieces


def _under_key(node: ast.expr | None, key: str) -> ast.expr | None:
    """What a dict that is written out in a call holds under a key."""
    pairs = zip(node.keys, node.values) if isinstance(node, ast.Dict) else ()
    return next((value for name, value in pairs if isinstance(name, ast.Constant) and name.value == key), None)
