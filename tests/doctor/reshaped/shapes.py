"""Ways to write one program otherwise: each takes its text, and gives its files, or None where it changes nothing."""

from __future__ import annotations

import ast
import builtins
import copy
import re
from collections import Counter
from collections.abc import Callable, Iterator

MAIN = "program.py"
Files = dict[str, str]
Shape = Callable[[str], Files | None]
_DEFINED = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_RUN = 'if __name__ == "__main__":\n    main()\n'


def same(text: str) -> Files | None:
    """Without comments, and in one style."""
    return {MAIN: ast.unparse(ast.parse(text))}


def in_main(text: str) -> Files | None:
    """All but imports, functions, classes and the globals that these read, in a function."""
    kept, rest = _split(ast.parse(text))
    if not rest:
        return None
    return {MAIN: f"{_text(kept)}\n\n{_text([_function('main', rest)])}\n\n{_RUN}"}


def in_module(text: str) -> Files | None:
    """Functions and classes, with the globals that they read, in a module of their own."""
    kept, rest = _split(ast.parse(text))
    bound = [name for one in kept if not _is_import(one) for name in _bound(one)]
    wanted = [name for name in dict.fromkeys(bound) if any(name in _read(one) for one in rest)]
    if not wanted:
        return None
    imports = _text([one for one in kept if _is_import(one)])
    return {"parts.py": _text(kept), MAIN: f"{imports}\nfrom parts import {', '.join(wanted)}\n{_text(rest)}\n"}


def in_class(text: str) -> Files | None:
    """What is made, in an object's __init__, and the last statement in a method."""
    kept, rest = _split(ast.parse(text))
    if len(rest) < 2:
        return None
    assigned = {
        one.id for statement in rest if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign))
        for one in ast.walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }  # fmt: skip
    bound = {name for one in rest for name in _bound(one)}
    inner = {
        one.arg for statement in rest for one in ast.walk(statement) if isinstance(one, ast.arg)
    } | {
        name.id for statement in rest for one in ast.walk(statement) if isinstance(one, ast.comprehension)
        for name in ast.walk(one.target) if isinstance(name, ast.Name)
    }  # fmt: skip
    local = bound - assigned
    if assigned & inner or any(name in _read(rest[-1]) for name in local) or any(map(_is_import, rest)):
        return None

    class Owned(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id not in assigned:
                return node
            return ast.Attribute(ast.Name("self", ast.Load()), node.id, node.ctx)

    made = [Owned().visit(copy.deepcopy(one)) for one in rest]
    init = _function("__init__", made[:-1], "self")
    job = ast.ClassDef("Job", [], [], [init, _function("run", made[-1:], "self")], [], **_params())
    return {MAIN: f'{_text(kept)}\n\n{_text([job])}\n\nif __name__ == "__main__":\n    Job().run()\n'}


def inlined(text: str) -> Files | None:
    """What is assigned once and given to one call, written into that call."""
    tree = ast.parse(text)
    reads = Counter(one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
    stores = Counter(one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    changed = False
    for place, statement in enumerate(list(tree.body)):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if reads[name] == stores[name] == 1:
                later = [one for one in tree.body[place + 1 :] if not isinstance(one, _DEFINED)]
                spot = next((one for one in later for one in _arguments(one) if _is_name(one, name)), None)
                if spot is None or isinstance(value, (ast.Constant, ast.Lambda)):
                    continue
                _replace(tree, {spot: value})
                tree.body.remove(statement)
                changed = True
    return {MAIN: _text(tree.body)} if changed else None


def named(text: str) -> Files | None:
    """The numbers in calls as constants of the module: `BATCH_SIZE = 32`."""
    return _with_numbers(text, lambda pairs: "\n".join(f"{one} = {value}" for one, value in pairs), lambda one: one)


def configured(text: str) -> Files | None:
    """The numbers in calls in a dict: `config["size"]`."""
    return _with_numbers(
        text,
        lambda pairs: f"config = {{{', '.join(f'{one.lower()!r}: {value}' for one, value in pairs)}}}",
        lambda one: f"config[{one.lower()!r}]",
    )


def by_options(text: str) -> Files | None:
    """The numbers in calls as options of the command line: `args.size`."""

    def head(pairs: list[tuple[str, str]]) -> str:
        lines = ["import argparse", "parser = argparse.ArgumentParser()"]
        lines += [f"parser.add_argument('--{one.lower()}', default={value})" for one, value in pairs]
        return "\n".join([*lines, "args = parser.parse_args([])"])

    return _with_numbers(text, head, lambda one: f"args.{one.lower()}")


def imported(text: str) -> Files | None:
    """`from tensorflow.keras.layers import Dense` for `tf.keras.layers.Dense`."""
    tree = ast.parse(text)
    taken = (
        {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}
        | {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
        | {one.name for one in ast.walk(tree) if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
    )
    found: dict[str, str] = {}
    pieces: dict[ast.AST, ast.expr] = {}
    for one in ast.walk(tree):
        match = re.fullmatch(
            r"(?:tf\.)?keras\.((?:\w+\.)*)(\w+)", ast.unparse(one) if isinstance(one, ast.Attribute) else ""
        )
        if match is None or not match[2][0].isupper() or match[2] in taken or hasattr(builtins, match[2]):
            continue
        module = f"tensorflow.keras.{match[1]}".rstrip(".")
        if found.setdefault(match[2], module) == module:
            pieces[one] = ast.Name(match[2], ast.Load())
    if not pieces:
        return None
    _replace(tree, pieces)
    lines = "\n".join(f"from {module} import {name}" for name, module in found.items())
    place = max((n for n, one in enumerate(tree.body) if _is_import(one)), default=-1) + 1
    return {MAIN: f"{_text(tree.body[:place])}\n{lines}\n{_text(tree.body[place:])}\n"}


def whole_names(text: str) -> Files | None:
    """`import tensorflow` and `import numpy`, without the short names."""
    tree = ast.parse(text)
    short = {
        one.asname: one.name for statement in tree.body if isinstance(statement, ast.Import) for one in statement.names
        if one.asname and "." not in one.name
    }  # fmt: skip
    if not short or any(isinstance(one, ast.arg) and one.arg in short for one in ast.walk(tree)):
        return None
    for one in ast.walk(tree):
        if isinstance(one, ast.Name) and one.id in short:
            one.id = short[one.id]
        elif isinstance(one, ast.alias) and one.asname in short:
            one.asname = None
    return {MAIN: _text(tree.body)}


_PARAMETERS = {
    "fit": ("x", "y"), "evaluate": ("x", "y"), "predict": ("x",), "compile": ("optimizer", "loss"),
    "Dense": ("units",), "Conv2D": ("filters", "kernel_size"), "Conv1D": ("filters", "kernel_size"), "LSTM": ("units",),
    "GRU": ("units",), "Dropout": ("rate",), "Input": ("shape",), "Reshape": ("target_shape",), "Lambda": ("function",),
    "Embedding": ("input_dim", "output_dim"), "Model": ("inputs", "outputs"),
    "py_function": ("func", "inp", "Tout"), "numpy_function": ("func", "inp", "Tout"), "map": ("map_func",),
    "batch": ("batch_size",), "shuffle": ("buffer_size",), "repeat": ("count",), "filter": ("predicate",),
    "from_generator": ("generator", "output_types", "output_shapes"), "from_tensor_slices": ("tensors",),
    "flat_map": ("map_func",), "interleave": ("map_func",), "padded_batch": ("batch_size", "padded_shapes"),
    "reshape": ("tensor", "shape"), "cast": ("x", "dtype"), "constant": ("value", "dtype"),
    "apply_gradients": ("grads_and_vars",), "gradient": ("target", "sources"), "concat": ("values", "axis"),
    "stack": ("values", "axis"), "gather": ("params", "indices"), "map_fn": ("fn", "elems"),
    "while_loop": ("cond", "body", "loop_vars"), "cond": ("pred", "true_fn", "false_fn"),
    "function": ("func", "input_signature"), "TensorArray": ("dtype", "size"), "Variable": ("initial_value",),
    "parse_single_example": ("serialized", "features"), "decode_raw": ("input_bytes", "out_type"),
    "one_hot": ("indices", "depth"), "matmul": ("a", "b"),
}  # fmt: skip
_OF_MODULES = frozenset(
    ("reshape", "stack", "concat", "gather", "cast", "matmul", "one_hot", "decode_raw", "constant", "cond", "function",
     "Variable", "while_loop", "map_fn")
)  # fmt: skip
_OF_TENSORFLOW = ("tf.", "tensorflow.", "keras.", "layers.")


def keyworded(text: str) -> Files | None:
    """Arguments by their names."""
    tree, changed = ast.parse(text), False
    for one in ast.walk(tree):
        if not isinstance(one, ast.Call) or not one.args or any(isinstance(arg, ast.Starred) for arg in one.args):
            continue
        called = ast.unparse(one.func)
        name = called.rpartition(".")[2]
        of_library = called.startswith(_OF_TENSORFLOW)
        if (name in _OF_MODULES and not of_library) or called in ("filter", "map"):
            continue
        if name in _OF_MODULES and called.count(".") > 1:  # tf.ragged.constant has other names for them
            continue
        parameters = _PARAMETERS.get(name, ())
        if len(one.args) > len(parameters) or {k.arg for k in one.keywords} & set(parameters[: len(one.args)]):
            continue
        one.keywords = [ast.keyword(key, value) for key, value in zip(parameters, one.args)] + one.keywords
        one.args, changed = [], True
    return {MAIN: _text(tree.body)} if changed else None


def without_lambdas(text: str) -> Files | None:
    """Functions with names, above the statement, for lambdas."""
    tree, number = ast.parse(text), 0
    for body in list(_bodies(tree)):
        for statement in list(body):
            pieces: dict[ast.AST, ast.expr] = {}
            made: list[ast.stmt] = []
            for one in _outside(statement):
                if not isinstance(one, ast.Lambda):
                    continue
                number += 1
                name = f"apply_{number}"
                function = _function(name, [ast.Return(one.body)])
                function.args = one.args
                made.append(function)
                pieces[one] = ast.Name(name, ast.Load())
            if pieces:
                _replace(statement, pieces)
                place = body.index(statement)
                body[place:place] = made
    return {MAIN: _text(tree.body)} if number else None


def step_by_step(text: str) -> Files | None:
    """A statement for each call of a chain: `ds = ds.batch(2)`."""
    tree, changed = ast.parse(text), False
    modules = {one.asname or one.name.partition(".")[0] for s in tree.body if _is_import(s) for one in s.names}
    for place, statement in reversed(list(enumerate(tree.body))):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                target, whole = name, None
            case ast.For(iter=value):
                target, whole = "dataset", "iter"
            case _:
                continue
        links = []
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            links.append(value)
            value = value.func.value
        if links and ast.unparse(value).partition(".")[0] in modules:
            value = links.pop()
        if not links or (len(links) == 1 and isinstance(value, ast.Name) and whole is None):
            continue
        if any(
            _is_name(one, target) for link in links for part in (*link.args, *link.keywords) for one in ast.walk(part)
        ):
            continue
        lines: list[ast.stmt] = [] if isinstance(value, ast.Name) and value.id == target else [_assigned(target, value)]
        for link in reversed(links):
            call = ast.Call(
                ast.Attribute(ast.Name(target, ast.Load()), link.func.attr, ast.Load()), link.args, link.keywords
            )
            lines.append(_assigned(target, call))
        if whole:
            statement.iter = ast.Name(target, ast.Load())
            lines.append(statement)
        tree.body[place : place + 1] = lines
        changed = True
    return {MAIN: _text(tree.body)} if changed else None


def renamed(text: str) -> Files | None:
    """Variables with other names: `x_` for `x`."""
    tree = ast.parse(text)
    keywords = {one.arg for one in ast.walk(tree) if isinstance(one, ast.keyword)}
    methods = {
        one.arg
        for kind in ast.walk(tree)
        if isinstance(kind, ast.ClassDef)
        for one in ast.walk(kind)
        if isinstance(one, ast.arg)
    }
    imported_names = {name for one in ast.walk(tree) if _is_import(one) for name in _bound(one)}
    bound = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    bound |= {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
    shared = {name for one in ast.walk(tree) if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
    fields = {
        target.id for kind in ast.walk(tree) if isinstance(kind, ast.ClassDef) for one in kind.body
        if isinstance(one, (ast.Assign, ast.AnnAssign)) for target in ast.walk(one) if isinstance(target, ast.Name)
    }  # fmt: skip
    texts = {one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    bound -= keywords | methods | imported_names | shared | fields | texts | {"self"}  # a key may be an argument's name
    if not bound or any(isinstance(one, ast.JoinedStr) and "=" in ast.unparse(one) for one in ast.walk(tree)):
        return None
    for one in ast.walk(tree):
        if isinstance(one, ast.Name) and one.id in bound:
            one.id = f"my_{one.id}"
        elif isinstance(one, ast.arg) and one.arg in bound:
            one.arg = f"my_{one.arg}"
    return {MAIN: _text(tree.body)}


def documented(text: str) -> Files | None:
    """With docstrings, and something printed between the statements."""
    tree = ast.parse(text)
    for one in ast.walk(tree):
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(one) is None:
            one.body.insert(0, ast.Expr(ast.Constant("What it is for, in a sentence.")))
    lines: list[ast.stmt] = []
    for number, one in enumerate(tree.body):
        if not _is_import(one) and not isinstance(one, _DEFINED):
            lines.append(ast.parse(f"print('step {number}')").body[0])
        lines.append(one)
    tree.body = lines
    return {MAIN: _text(tree.body)}


def under_device(text: str) -> Files | None:
    """What is no definition, under `with tf.device(...)` and in a try with a finally."""
    kept, rest = _split(ast.parse(text))
    if not rest or not any(re.search(r"^import tensorflow as tf$", ast.unparse(one)) for one in kept):
        return None
    lines = _text(rest).replace("\n", "\n        ")
    return {MAIN: f'{_text(kept)}\ntry:\n    with tf.device("/cpu:0"):\n        {lines}\nfinally:\n    print("end")\n'}


def in_a_loop(text: str) -> Files | None:
    """The last statement in a loop of two rounds."""
    tree = ast.parse(text)
    if isinstance(tree.body[-1], _DEFINED):
        return None
    last = tree.body.pop()
    return {MAIN: f"{_text(tree.body)}\nfor round_number in range(2):\n{_indented(_text([last]))}\n"}


def by_loaders(text: str) -> Files | None:
    """Arrays and datasets from functions that make them."""
    tree, number = ast.parse(text), 0
    for place, statement in reversed(list(enumerate(tree.body))):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as value):
                called = ast.unparse(value)
                if not called.startswith(("np.", "tf.data.", "tf.random", "tf.constant")):
                    continue
                number += 1
                tree.body[place : place + 1] = [
                    _function(f"load_{name}_{number}", [ast.Return(value)]),
                    _assigned(name, ast.Call(ast.Name(f"load_{name}_{number}", ast.Load()), [], [])),
                ]
    return {MAIN: _text(tree.body)} if number else None


SHAPES: dict[str, Shape] = {
    one.__name__: one
    for one in (
        same, in_main, in_module, in_class, inlined, named, configured, by_options, imported, whole_names, keyworded,
        without_lambdas, step_by_step, renamed, documented, under_device, in_a_loop, by_loaders,
    )
}  # fmt: skip


def _params() -> dict[str, list[ast.AST]]:
    """What Python 3.12 and later ask of a function or class."""
    return {"type_params": []} if hasattr(ast, "type_param") else {}


def _function(name: str, body: list[ast.stmt], *parameters: str) -> ast.FunctionDef:
    arguments = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
    return ast.FunctionDef(name, arguments, body, [], None, **_params())


def _assigned(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _text(body: list[ast.stmt]) -> str:
    return ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else line for line in text.split("\n"))


def _is_import(one: ast.AST) -> bool:
    return isinstance(one, (ast.Import, ast.ImportFrom))


def _is_name(one: ast.AST, name: str) -> bool:
    return isinstance(one, ast.Name) and one.id == name


def _bound(statement: ast.AST) -> Iterator[str]:
    """The names that a statement binds in its own scope."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
        return
    for one in ast.walk(statement):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            yield one.id
        elif isinstance(one, ast.alias):
            yield one.asname or one.name.partition(".")[0]
        elif isinstance(one, ast.ExceptHandler) and one.name:
            yield one.name


def _read(statement: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(statement) if isinstance(one, ast.Name)}


def _split(tree: ast.Module) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Imports, functions and classes with the globals that these read, and the other statements."""
    kept = {place for place, one in enumerate(tree.body) if isinstance(one, _DEFINED)}
    needed: set[str] = set()
    while True:
        needed |= {name for place in kept for name in _read(tree.body[place])}
        more = {
            place for place, one in enumerate(tree.body) if place not in kept and needed & set(_bound(one))
        }  # fmt: skip
        if not more:
            break
        kept |= more
    parts: tuple[list[ast.stmt], list[ast.stmt]] = ([], [])
    for place, one in enumerate(tree.body):
        parts[place not in kept].append(one)
    return parts


def _arguments(statement: ast.AST) -> Iterator[ast.expr]:
    """What is given to calls of a statement, also in tuples and lists."""
    for one in ast.walk(statement):
        if isinstance(one, _SCOPES):
            return
    for call in ast.walk(statement):
        if isinstance(call, ast.Call):
            for given in (*call.args, *(one.value for one in call.keywords)):
                yield from given.elts if isinstance(given, (ast.Tuple, ast.List)) else (given,)


def _replace(tree: ast.AST, pieces: dict[ast.AST, ast.expr]) -> None:
    """Puts expressions in the places of others."""

    class Put(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return pieces[node] if node in pieces else self.generic_visit(node)

    Put().visit(tree)


def _outside(statement: ast.stmt) -> Iterator[ast.AST]:
    """The parts of a statement that are in no function, comprehension or block of it."""
    open_ = [statement]
    while open_:
        one = open_.pop(0)
        yield one
        if isinstance(one, _SCOPES) or (isinstance(one, ast.stmt) and hasattr(one, "body") and one is not statement):
            continue
        if one is statement and isinstance(one, (ast.FunctionDef, ast.ClassDef, ast.If, ast.While, ast.Try)):
            continue
        if one is statement and isinstance(one, (ast.For, ast.With)):
            open_ += [one.iter] if isinstance(one, ast.For) else [item.context_expr for item in one.items]
            continue
        open_ += ast.iter_child_nodes(one)


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """All blocks of a program but those of classes."""
    for one in ast.walk(tree):
        if isinstance(getattr(one, "body", None), list) and not isinstance(one, ast.ClassDef):
            yield one.body


def _with_numbers(
    text: str, head: Callable[[list[tuple[str, str]]], str], spelled: Callable[[str], str]
) -> Files | None:
    """Numbers that are given to calls of the module, by a name."""
    tree = ast.parse(text)
    pieces: dict[ast.AST, ast.expr] = {}
    pairs: list[tuple[str, str]] = []
    for statement in tree.body:
        if isinstance(statement, (*_DEFINED,)):
            continue
        for one in _arguments(statement):
            if isinstance(one, ast.Constant) and type(one.value) is int and one.value > 1:
                name = f"SIZE_{len(pairs) + 1}"
                pairs.append((name, str(one.value)))
                pieces[one] = ast.parse(spelled(name), mode="eval").body
    if not pieces:
        return None
    _replace(tree, pieces)
    place = max((n for n, one in enumerate(tree.body) if _is_import(one)), default=-1) + 1
    return {MAIN: f"{_text(tree.body[:place])}\n{head(pairs)}\n{_text(tree.body[place:])}\n"}
