"""A function whose Python loops go over the rows of a batch, as graph code: its loops as tf.map_fn, the rest as ops."""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
from collections.abc import Sequence

from pyfunc_debug.doctor.failures.ops.rewrites import as_ops, learned
from pyfunc_debug.doctor.failures.reading.made_values import made_dtype, made_value
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names, parameters
from pyfunc_debug.doctor.failures.reading.symbols import Described, alias, dtype_of, is_symbolic, shape_of
from pyfunc_debug.program import syntax
from pyfunc_debug.program.syntax import copied

_EMPTY = ("zeros", "empty", "ones", "zeros_like", "empty_like", "ones_like", "list")
"""What makes the array, or the list, that a loop fills."""

_JOINS = {"concat", "concatenate", "hstack", "vstack", "dstack", "column_stack", "block", "add_n", "zip", "enumerate"}
_WAYS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-"}


class _UnableError(Exception):
    """Something in the function has no form in a graph that is known here."""


@dataclasses.dataclass(frozen=True)
class _Kept:
    """What a round of a loop leaves: into which name, in which way, and the value."""

    name: str
    way: str  # "+", "-": added up; "append"; "row": written to its row, with how many axes of size 1 behind
    value: ast.expr
    axes: int = 0


def in_graph(function: ast.FunctionDef, spot: Spot) -> tuple[str, ...] | None:
    """The body of a function on tensors with nothing in it that needs values; None where that is not known.

    Args:
      function: The function: assignments, loops over rows, and a return.
      spot: A frame of it, which knows the tensors that it was given.
    """
    if not loops_over_rows(function, spot):
        return None
    try:
        return tuple(_Body(spot, function).block(function.body))
    except _UnableError:
        return None


def loops_over_rows(function: ast.FunctionDef, spot: Spot) -> bool:
    """Whether a function has a loop over a batch, or writes into parts of a tensor."""
    for one in ast.walk(function):
        if isinstance(one, (ast.For, ast.ListComp, ast.GeneratorExp)):
            return True
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store):
            return True
    return False


class _Body:
    def __init__(self, spot: Spot, function: ast.FunctionDef) -> None:
        self._function = function
        self._source: Source = spot.source
        self.tf = alias(spot, "tensorflow")
        self._tensors = {name for name in parameters(function) if is_symbolic(spot.variables.get(name))}
        given = {name: spot.value(name) for name in self._tensors}
        made = _stored(function)
        held = {name: one for name, one in spot.variables.items() if not is_symbolic(one) and name not in made}
        tensorflow = {} if spot.value(self.tf) is not None else {self.tf: sys.modules.get("tensorflow")}
        self._spot = dataclasses.replace(spot, variables={**tensorflow, **held, **given})
        kinds = [dtype_of(one) for one in given.values() if "float" in dtype_of(one)]
        self.dtype = kinds[-1] if kinds else "float32"
        self.sizes: set[str] = set()
        """Names of the batch's size."""
        self._filled = _filled(function)
        self._collected: set[str] = set()
        """Lists of what each round gave: tensors with one more axis from then on."""
        self._all_rows = True
        """Whether the loop at hand goes over all of them."""
        self._summed = {
            target.id for one in ast.walk(function) if isinstance(one, ast.AugAssign)
            for target in [one.target] if isinstance(target, ast.Name)
        }  # fmt: skip

    def block(self, statements: Sequence[ast.stmt], deep: int = 0) -> list[str]:
        lines: list[str] = []
        for one in statements:
            lines += self._statement(one, deep)
        return lines

    def _as_written(self, one: ast.stmt) -> list[str]:
        return list(self._source.lines[one.lineno - 1 : one.end_lineno])

    def _statement(self, one: ast.stmt, deep: int) -> list[str]:
        apart = _one_by_one(one)
        if len(apart) > 1:
            return self.block(apart, deep)
        blanks = indent_of(self._source.lines[one.lineno - 1])
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
            return self._as_written(one)
        if isinstance(one, ast.With):
            if not all(_is_session(each.context_expr) or "sess" in ast.unparse(each).lower() for each in one.items):
                raise _UnableError
            inner = self.block(one.body, deep)
            return [f"{blanks}{line.strip()}" if line.strip() else line for line in inner]
        if isinstance(one, ast.For):
            return [f"{blanks}{line}" for line in self._loop(one)]
        if isinstance(one, ast.Return) and one.value is not None:
            return [f"{blanks}return {self._text(one.value)}"]
        if isinstance(one, ast.Assign) and len(one.targets) == 1:
            return self._assigned(one, one.targets[0], blanks)
        if isinstance(one, ast.AugAssign):
            return self._augmented(one, blanks)
        raise _UnableError

    def _assigned(self, one: ast.Assign, target: ast.expr, blanks: str) -> list[str]:
        if isinstance(target, ast.Subscript):
            return [f"{blanks}{self._masked(target, one.value)}"]
        if not isinstance(target, ast.Name):
            raise _UnableError
        if _is_session(one.value) or (target.id in self._filled and _is_empty(one.value)):
            return []
        if target.id in self._summed and isinstance(one.value, ast.Constant) and type(one.value.value) is int:
            return [f"{blanks}{target.id} = {float(one.value.value)}"]
        if self._is_size(one.value):
            self.sizes.add(target.id)
            return []
        text = self._text(one.value)
        changed = ast.Assign([target], syntax.expression(text))
        if self._is_tensor(one.value):
            self._tensors.add(target.id)
            self._spot = learned(ast.copy_location(changed, one), self._spot)
            if not is_symbolic(self._spot.value(target.id)):
                self._know(target.id, Described(self.dtype, None))
        same = text == ast.unparse(one.value)
        return self._as_written(one) if same else [f"{blanks}{target.id} = {text}"] * (text != target.id)

    def _augmented(self, one: ast.AugAssign, blanks: str) -> list[str]:
        if isinstance(one.target, ast.Subscript):
            read = copied(one.target)
            read.ctx = ast.Load()
            return [f"{blanks}{self._masked(one.target, ast.BinOp(read, one.op, one.value))}"]
        if not isinstance(one.target, ast.Name):
            raise _UnableError
        text = self._text(one.value)
        if self._is_tensor(one.value):
            self._tensors.add(one.target.id)
            self._know(one.target.id, Described(self.dtype, None))
        sign = ast.unparse(ast.AugAssign(ast.Name("x", ast.Store()), one.op, ast.Constant(0)))[2:-2]
        return self._as_written(one) if text == ast.unparse(one.value) else [f"{blanks}{one.target.id} {sign} {text}"]

    def _masked(self, target: ast.Subscript, value: ast.expr) -> str:
        """`gap[gap < 0] = x` as a choice between two tensors."""
        mask = target.slice
        if not isinstance(target.value, ast.Name) or target.value.id not in self._tensors:
            raise _UnableError
        if not isinstance(mask, (ast.Compare, ast.BinOp, ast.Name)) or not self._is_tensor(mask):
            raise _UnableError
        if isinstance(mask, ast.Name) and dtype_of(self._spot.value(mask.id)) != "bool":
            raise _UnableError
        same = ast.dump(mask)

        class Whole(ast.NodeTransformer):
            def visit_Subscript(self, one: ast.Subscript) -> ast.AST:
                return one.value if ast.dump(one.slice) == same else self.generic_visit(one)

        whole = Whole().visit(copied(value))
        if any(isinstance(one, ast.Subscript) for one in ast.walk(whole)):
            raise _UnableError
        name = target.value.id
        if isinstance(whole, ast.Constant) and type(whole.value) is int and "float" in self.dtype:
            whole = ast.Constant(float(whole.value))  # NumPy converts, tf.where takes one dtype
        return f"{name} = {self.tf}.where({self._text(mask)}, {self._text(whole)}, {name})"

    def _loop(self, loop: ast.For) -> list[str]:
        """A loop as tf.map_fn, without the indentation of its line."""
        if loop.orelse:
            raise _UnableError
        before, tensors = self._spot, set(self._tensors)
        given = self._over(loop.iter)
        self._all_rows = not isinstance(loop.iter, ast.Call) or len(loop.iter.args) == 1
        targets = self._targets(loop.target, [one for _, one in given])
        inside: list[str] = []
        *first, last = loop.body
        for one in (part for each in first for part in _one_by_one(each)):
            inside += self._inner(one)
        if isinstance(last, ast.For):
            *above, added = self._loop(last)
            inside += above
            kept = _added(added)
        else:
            kept = self._kept(last, loop.target)
        result = self._text(kept.value)
        kind = self._kind(result) if kept.way == "append" else self.dtype
        self._spot, self._tensors = before, tensors
        over = ", ".join(text for text, _ in given)
        signature = f"fn_output_signature={self.tf}.{kind}"
        lines: list[str] = []
        if kept.way not in ("+", "-"):
            self._filled.discard(kept.name)  # by one loop only
            self._collected |= {kept.name} if kept.way == "append" else set()
        if inside:
            name = self._free("one_row" if self._source.parent(loop) is self._function else "one_of_row")
            row = targets[0] if len(targets) == 1 else "row"
            lines = [f"def {name}({row}):", *([f"    {', '.join(targets)} = row"] * (len(targets) > 1))]
            lines += [*(f"    {one}" for one in inside), f"    return {result}"]
            made = f"{self.tf}.map_fn({name}, {over if len(given) == 1 else f'({over})'}, {signature})"
        else:
            made = self._mapped(targets, result, over, signature)
        self._tensors.add(kept.name)
        self._know(kept.name, Described(self.dtype, None))
        if kept.way in ("+", "-"):
            return [*lines, f"{kept.name} {kept.way}= {self.tf}.reduce_sum({made})"]
        return [*lines, f"{kept.name} = {made}{'[:' + ', None' * kept.axes + ']' if kept.axes else ''}"]

    def _kind(self, text: str) -> str:
        """The dtype of what an expression in ops gives on made inputs; that of the function's floats where it fails."""
        try:
            made = made_dtype(made_value(syntax.expression(text), self._spot))
        except SyntaxError:
            made = None
        return self.dtype if made is None or made == "float64" else made

    def _mapped(self, targets: list[str], result: str, over: str, signature: str) -> str:
        if len(targets) == 1:
            return f"{self.tf}.map_fn(lambda {targets[0]}: {result}, {over}, {signature})"
        places = {name: f"row[{place}]" for place, name in enumerate(targets)}

        class Parts(ast.NodeTransformer):
            def visit_Name(self, one: ast.Name) -> ast.AST:
                return syntax.expression(places[one.id]) if one.id in places else one

        text = ast.unparse(Parts().visit(syntax.expression(result)))
        return f"{self.tf}.map_fn(lambda row: {text}, ({over}), {signature})"

    def _inner(self, one: ast.stmt) -> list[str]:
        """A statement of a loop that makes something for later ones of the same round."""
        if isinstance(one, ast.If) and len(one.body) == len(one.orelse) == 1:
            sides = [one.body[0], one.orelse[0]]
            if all(isinstance(side, ast.Assign) for side in sides):
                targets = [ast.unparse(side.targets[0]) for side in sides]  # type: ignore[attr-defined]
                if len(set(targets)) == 1:
                    value = ast.IfExp(one.test, sides[0].value, sides[1].value)  # type: ignore[attr-defined]
                    one = ast.copy_location(ast.Assign(sides[0].targets, value), one)  # type: ignore[attr-defined]
        if not isinstance(one, ast.Assign) or not isinstance(one.targets[0], ast.Name) or len(one.targets) > 1:
            raise _UnableError
        name = one.targets[0].id
        text = self._text(one.value)
        if self._is_tensor(one.value):
            self._tensors.add(name)
            changed = ast.Assign([one.targets[0]], syntax.expression(text))
            self._spot = learned(ast.copy_location(changed, one), self._spot)
            if not is_symbolic(self._spot.value(name)):
                self._know(name, Described(self.dtype, None))
        return [f"{name} = {text}"]

    def _kept(self, last: ast.stmt, target: ast.expr) -> _Kept:
        """What a round of a loop leaves."""
        if isinstance(last, ast.If) and len(last.body) == 1 and len(last.orelse) <= 1:
            yes = self._kept(last.body[0], target)
            no = self._kept(last.orelse[0], target) if last.orelse else _Kept(yes.name, "+", ast.Constant(0.0))
            if yes.name != no.name or (yes.way != no.way and not {yes.way, no.way} <= {"+", "-"}):
                raise _UnableError
            values = [one.value if one.way != "-" else ast.UnaryOp(ast.USub(), one.value) for one in (yes, no)]
            way = "+" if {yes.way, no.way} <= {"+", "-"} else yes.way
            return _Kept(yes.name, way, ast.IfExp(last.test, *values), yes.axes)
        if isinstance(last, ast.AugAssign) and isinstance(last.target, ast.Name):
            way = _WAYS.get(type(last.op), "")
            if not way or last.target.id in names(last.value):
                raise _UnableError
            return _Kept(last.target.id, way, last.value)
        if isinstance(last, ast.Assign) and len(last.targets) == 1:
            return self._written(last, last.targets[0], target)
        call = last.value if isinstance(last, ast.Expr) else None
        appends = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append"
        name = dotted(call.func.value) if appends else ""  # type: ignore[union-attr]
        if isinstance(call, ast.Call) and name in self._filled and len(call.args) == 1:
            return _Kept(name, "append", call.args[0])
        raise _UnableError

    def _written(self, last: ast.Assign, written: ast.expr, target: ast.expr) -> _Kept:
        """`total = total + x`, or `rows[i] = x` of an array that the loop fills."""
        value = last.value
        if isinstance(written, ast.Name) and isinstance(value, ast.BinOp) and dotted(value.left) == written.id:
            way = _WAYS.get(type(value.op), "")
            if way and written.id not in names(value.right):
                return _Kept(written.id, way, value.right)
        if not isinstance(written, ast.Subscript) or dotted(written.value) not in self._filled:
            raise _UnableError
        index = written.slice.elts if isinstance(written.slice, ast.Tuple) else [written.slice]
        rest = [ast.unparse(one) for one in index[1:]]
        plain = set(rest) in (set(), {"0"}, {":"}) and ast.unparse(index[0]) == ast.unparse(target)
        if not plain or not self._all_rows:
            raise _UnableError
        return _Kept(dotted(written.value), "row", value, rest.count("0"))

    def _over(self, node: ast.expr) -> list[tuple[str, Described]]:
        """What a loop goes through: texts of tensors, and what one row of each is."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy":
            node = node.func.value
        if isinstance(node, ast.Call) and not node.keywords:
            called = dotted(node.func)
            if called == "zip":
                return [pair for one in node.args for pair in self._over(one)]
            if called == "enumerate" and len(node.args) == 1:
                rows = self._over(node.args[0])
                if len(rows) == 1 and rows[0][0] in self._tensors:
                    return [(f"{self.tf}.range({self.tf}.shape({rows[0][0]})[0])", Described("int32", ())), *rows]
            if called == "range":
                sizes = [self._size(one) for one in node.args]
                if not any(self.tf in one or set(names(syntax.expression(one))) & self._tensors for one in sizes):
                    raise _UnableError
                return [(f"{self.tf}.range({', '.join(sizes)})", Described("int32", ()))]
        if isinstance(node, ast.Name) and node.id in self._tensors:
            value = self._spot.value(node.id)
            shape = shape_of(value)
            return [(node.id, Described(dtype_of(value) or self.dtype, shape[1:] if shape else None))]
        raise _UnableError

    def _targets(self, target: ast.expr, kinds: list[Described]) -> list[str]:
        """The names of a loop's elements, which are known from here on."""
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        found = [one.id for one in parts if isinstance(one, ast.Name)]
        if len(found) != len(parts) or len(found) != len(kinds):
            raise _UnableError
        for name, kind in zip(found, kinds):
            self._tensors.add(name)
            self._know(name, kind)
        return found

    def _know(self, name: str, value: Described) -> None:
        self._spot = dataclasses.replace(self._spot, variables={**self._spot.variables, name: value})

    def _free(self, name: str) -> str:
        taken = {one.id for one in ast.walk(self._source.tree) if isinstance(one, ast.Name)}
        while name in taken:
            name += "_"
        return name

    def _is_tensor(self, node: ast.AST) -> bool:
        return any(name in self._tensors or name in self.sizes for name in names(node)) or any(
            dotted(one) in self._tensors for one in ast.walk(node) if isinstance(one, ast.Attribute)
        )

    def _is_size(self, node: ast.AST) -> bool:
        """Whether an expression is the size of a batch."""
        text = ast.unparse(node)
        return text in self.sizes or self.sized(node) is not None

    def sized(self, node: ast.AST) -> str | None:
        """The tensor whose number of rows an expression is."""
        if isinstance(node, ast.Call) and dotted(node.func) == "len" and len(node.args) == 1:
            return _tensor(node.args[0], self._tensors)
        if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "0":
            of = node.value
            if isinstance(of, ast.Attribute) and of.attr == "shape":
                return _tensor(of.value, self._tensors)
            if isinstance(of, ast.Call) and dotted(of.func).endswith("int_shape") and of.args:
                return _tensor(of.args[0], self._tensors)
        return None

    def _size(self, node: ast.expr) -> str:
        """A number of rows, or one computed with it, as a tensor of whole numbers."""
        made = self._with_sizes(node, whole=True)
        if any(isinstance(one, ast.Call) and not dotted(one.func).startswith(f"{self.tf}.") for one in ast.walk(made)):
            raise _UnableError
        return ast.unparse(made)

    def _with_sizes(self, node: ast.expr, whole: bool) -> ast.expr:
        """An expression with the batch's size as an op: of the dtype that it is computed with."""
        body, first = self, next(iter(sorted(self._tensors & set(parameters(self._function)))), "")

        class Sizes(ast.NodeTransformer):
            def visit(self, one: ast.AST) -> ast.AST:
                of = body.sized(one) or (first if isinstance(one, ast.Name) and one.id in body.sizes else None)
                if of is None:
                    return self.generic_visit(one)
                text = f"{body.tf}.shape({of})[0]"
                return syntax.expression(text if whole else f"{body.tf}.cast({text}, {body.tf}.{body.dtype})")

        found: ast.expr = Sizes().visit(copied(node))  # type: ignore[assignment]
        return found

    def _text(self, node: ast.expr) -> str:
        """An expression as ops."""
        made = self._loops_inside(node)
        if any(_joins(one, self._collected) for one in ast.walk(made)):
            raise _UnableError  # the parts along another axis
        made = self._with_sizes(made, whole=False)
        if not self._is_tensor(made):
            return ast.unparse(made)
        inner = self._spot
        text = as_ops(ast.copy_location(made, node), inner, conditions=True, also=tuple(self._tensors), same=True)
        if text is None or any(part in text for part in (".numpy()", "py_function")):
            raise _UnableError
        if self.dtype == "float32":  # wide numbers are NumPy's way to be exact, and what is beside them is not
            text = re.sub(rf"{self.tf}\.cast\((\w+), {self.tf}\.float64\)", r"\1", text)
        left = syntax.expression(text)
        if any(_loops(one, self._tensors) for one in ast.walk(left)):
            raise _UnableError
        return text

    def _loops_inside(self, node: ast.expr) -> ast.expr:
        """An expression with its comprehensions over rows as tf.map_fn."""
        body = self

        class Comprehensions(ast.NodeTransformer):
            def visit_Call(self, one: ast.Call) -> ast.AST:
                inside = body.of_own(one)
                if inside is not None:
                    return self.visit(inside)  # type: ignore[no-any-return]
                rows = one.args[0] if len(one.args) == 1 and not one.keywords else None
                stacks = dotted(one.func).rpartition(".")[2] in ("stack", "array", "asarray", "list")
                if stacks and isinstance(rows, (ast.ListComp, ast.GeneratorExp)):
                    return self.visit(rows)  # type: ignore[no-any-return] # tf.map_fn stacks
                return self.generic_visit(one)

            def visit_ListComp(self, one: ast.ListComp) -> ast.AST:
                return body.comprehension(one)

            def visit_GeneratorExp(self, one: ast.GeneratorExp) -> ast.AST:
                return body.comprehension(one)

        return Comprehensions().visit(copied(node))  # type: ignore[no-any-return]

    def of_own(self, call: ast.Call) -> ast.expr | None:
        """What a call of a function of the file gives, where that is one expression of its arguments."""
        name = dotted(call.func)
        own = [one for one in self._source.tree.body if isinstance(one, ast.FunctionDef) and one.name == name]
        if len(own) != 1 or own[0] is self._function or len(own[0].body) > 2 or own[0].decorator_list:
            return None
        last, inputs = own[0].body[-1], parameters(own[0])
        given = dict(zip(inputs, call.args)) | {one.arg: one.value for one in call.keywords if one.arg}
        if not isinstance(last, ast.Return) or last.value is None or set(given) != set(inputs):
            return None
        if len(own[0].body) == 2 and not isinstance(own[0].body[0], ast.Expr):
            return None

        class Given(ast.NodeTransformer):
            def visit_Name(self, one: ast.Name) -> ast.AST:
                return copied(given[one.id]) if one.id in given else one

        return Given().visit(copied(last.value))  # type: ignore[no-any-return]

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> ast.expr:
        loop = node.generators[0]
        if len(node.generators) > 1 or loop.ifs:
            raise _UnableError
        before, tensors = self._spot, set(self._tensors)
        given = self._over(loop.iter)
        targets = self._targets(loop.target, [one for _, one in given])
        result = self._text(node.elt)
        kind = self._kind(result)
        self._spot, self._tensors = before, tensors
        over = ", ".join(text for text, _ in given)
        signature = f"fn_output_signature={self.tf}.{kind}"
        return syntax.expression(self._mapped(targets, result, over, signature))


def _one_by_one(statement: ast.stmt) -> list[ast.stmt]:
    """`a, b = x, y` as two assignments, where neither reads what the other makes; any other as it is."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Tuple):
        return [statement]
    value = statement.value
    if not isinstance(value, ast.Tuple) or len(value.elts) != len(target.elts):
        return [statement]
    made = [one.id for one in target.elts if isinstance(one, ast.Name)]
    own = all(
        name not in names(one) or place == made.index(name) for place, one in enumerate(value.elts) for name in made
    )
    if len(made) != len(target.elts) or not own:
        return [statement]
    return [ast.copy_location(ast.Assign([each], one), one) for each, one in zip(target.elts, value.elts)]


def _added(line: str) -> _Kept:
    """What a loop inside a loop adds up, by the line that does."""
    name, _, made = line.partition(" ")
    if not made.startswith(("+= ", "-= ")):
        raise _UnableError
    return _Kept(name, made[0], syntax.expression(made[3:]))


def _tensor(node: ast.AST, tensors: set[str]) -> str | None:
    text = dotted(node)
    return text if text in tensors else None


def _loops(node: ast.AST, tensors: set[str]) -> bool:
    return isinstance(node, ast.comprehension) and bool(set(names(node.iter)) & tensors)


def _stored(function: ast.FunctionDef) -> set[str]:
    """Names that a function assigns."""
    return {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _joins(node: ast.AST, collected: set[str]) -> bool:
    """Whether a call puts the elements of a list together in another way than along a new first axis."""
    if not isinstance(node, ast.Call) or not node.args or dotted(node.args[0]) not in collected:
        return False
    name = dotted(node.func).rpartition(".")[2]
    rest = [*node.args[1:], *(one.value for one in node.keywords)]
    first = all(isinstance(one, ast.Constant) and one.value == 0 for one in rest)
    return name in _JOINS or (name in ("stack", "array") and not first)


def _filled(function: ast.FunctionDef) -> set[str]:
    """Names of lists and arrays that begin empty, and that loops fill."""
    return {
        target.id for one in ast.walk(function) if isinstance(one, ast.Assign) and _is_empty(one.value)
        for target in one.targets if isinstance(target, ast.Name)
    }  # fmt: skip


def _is_empty(node: ast.expr) -> bool:
    if isinstance(node, ast.List) and not node.elts:
        return True
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _EMPTY


def _is_session(node: ast.expr) -> bool:
    """Whether an expression makes, or gets, a session of TensorFlow 1."""
    name = dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
    return name.endswith(("Session", "get_session", "default_session", "as_default"))
