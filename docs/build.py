"""Builds docs/reference.md from the docstrings: `python -m docs.build`. With `--check` it only says what is wrong.

Reads sources, imports nothing of the package but its list of public names. A public name without what a reader needs
(arguments, results, errors, fields, an example) is an error: tests/test_reference.py holds that and the file's state.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference.md"
RECORDS = "pyfunc_debug.records"
BESIDE = {
    ("pyfunc_debug.api.live", "LiveRecording"): ("start", "stop"),
    ("pyfunc_debug.stops.rules", "Breakpoint"): ("disable", "enable", "remove"),
}
"""Classes of objects that public functions return, with their methods that are for users."""
SECTIONS = ("Args", "Returns", "Yields", "Raises", "Attributes", "Example")
_HEAD = """# Reference

Built from the docstrings by `python -m docs.build`; a test fails when it is stale. Times are in ns of
`time.monotonic_ns()` and sizes in bytes, unless stated otherwise. `None` means not known, never 0.

```python
import pyfunc_debug as pfd
```
"""

Definition = ast.FunctionDef | ast.ClassDef


@dataclass
class Doc:
    """A docstring in Google form, taken apart: its text, and its sections as text or as entries by name."""

    text: str = ""
    parts: dict[str, str] = field(default_factory=dict)

    def entries(self, section: str) -> dict[str, str]:
        """Name and description of each entry of a section; `min, max:` stands for two."""
        found: dict[str, str] = {}
        for line in self.parts.get(section, "").splitlines():
            entry = re.match(r"([*\w.]+(?:, [*\w.]+)*)(?: \([^)]*\))?:(?: |$)(.*)", line)
            if entry:
                names = entry[1].split(", ")
                found |= dict.fromkeys(names, entry[2])
            elif line.strip() and found:
                for name in names:
                    found[name] += " " + line.strip()
        return found


def take_apart(docstring: str | None) -> Doc:
    """The parts of a docstring."""
    doc = Doc()
    section = ""
    for line in inspect.cleandoc(docstring or "").splitlines():
        head = re.fullmatch(rf"({'|'.join(SECTIONS)}):", line)
        if head:
            section = head[1]
        elif section:
            doc.parts[section] = doc.parts.get(section, "") + line.removeprefix("  ") + "\n"
        else:
            doc.text += line + "\n"
    doc.text = doc.text.strip()
    return doc


def public() -> list[tuple[str, str, str]]:
    """What users see: the name that they type, the module, and the name there."""
    from pyfunc_debug import _PUBLIC, __all__

    found = [(name, *_PUBLIC[name]) for name in __all__]
    found += [(name, module, name) for module, name in BESIDE]
    names = [one.name for one in module_of(RECORDS).body if isinstance(one, ast.ClassDef)]
    return found + [(name, RECORDS, name) for name in names if not name.startswith("_")]


def module_of(name: str) -> ast.Module:
    """A module's syntax tree."""
    path = ROOT.joinpath(*name.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


def definition(module: str, name: str) -> Definition:
    """The function or class of this name."""
    for one in module_of(module).body:
        if isinstance(one, ast.FunctionDef | ast.ClassDef) and one.name == name:
            return one
    raise LookupError(f"{module} defines no {name}")


def decorators(function: ast.FunctionDef) -> set[str]:
    """Last names of its decorators."""
    return {ast.unparse(one).rpartition(".")[2] for one in function.decorator_list}


def methods(one: ast.ClassDef) -> list[ast.FunctionDef]:
    """Public methods and properties."""
    found = [m for m in one.body if isinstance(m, ast.FunctionDef) and not m.name.startswith("_")]
    wanted = next((names for (_, name), names in BESIDE.items() if name == one.name), None)
    return [method for method in found if wanted is None or method.name in wanted]


def is_error(one: ast.ClassDef) -> bool:
    """Whether a class is an error or a warning."""
    return one.name.endswith(("Error", "Warning"))


def fields(one: ast.ClassDef) -> dict[str, str]:
    """Public fields of a dataclass with their types."""
    found = [item for item in one.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)]
    texts = {item.target.id: ast.unparse(item.annotation) for item in found if isinstance(item.target, ast.Name)}
    return {name: text for name, text in texts.items() if not name.startswith("_")}


def parameters(function: ast.FunctionDef) -> list[str]:
    """Names of its parameters, with stars."""
    given = function.args
    names = [arg.arg for arg in [*given.posonlyargs, *given.args, *given.kwonlyargs] if arg.arg not in ("self", "cls")]
    return [*names, *(f"*{a.arg}" for a in [given.vararg] if a), *(f"**{a.arg}" for a in [given.kwarg] if a)]


def signature(name: str, function: ast.FunctionDef) -> str:
    """As a user reads it."""
    text = re.sub(r"^(self|cls)(, |$)", "", ast.unparse(function.args))
    result = f" -> {ast.unparse(function.returns)}" if function.returns is not None else ""
    return f"{name}({text}){result}"


def raised(function: ast.FunctionDef) -> set[str]:
    """Errors of this package that it raises itself."""
    found = set()
    for one in ast.walk(function):
        if isinstance(one, ast.Raise) and isinstance(one.exc, ast.Call) and isinstance(one.exc.func, ast.Name):
            found.add(one.exc.func.id)
    return {name for name in found if name.endswith("Error")}


def wrong_with_function(name: str, function: ast.FunctionDef, needs_example: bool) -> list[str]:
    """What its docstring lacks."""
    doc = take_apart(ast.get_docstring(function))
    if not doc.text:
        return [f"{name}: no docstring"]
    found = []
    named = set(doc.entries("Args"))
    asked = set(parameters(function))
    found += [f"{name}: Args lacks {', '.join(sorted(asked - named))}"] * bool(asked - named)
    found += [f"{name}: Args names {', '.join(sorted(named - asked))}, which it does not take"] * bool(named - asked)
    gives = function.returns is not None and ast.unparse(function.returns) not in ("None", "NoReturn")
    if gives and "property" not in decorators(function) and not {"Returns", "Yields"} & set(doc.parts):
        found.append(f"{name}: no Returns")
    silent = raised(function) - {error.rpartition(".")[2] for error in doc.entries("Raises")}
    found += [f"{name}: Raises lacks {', '.join(sorted(silent))}"] * bool(silent)
    found += [f"{name}: no Example"] * (needs_example and "Example" not in doc.parts)
    return found


def wrong_with_class(name: str, one: ast.ClassDef, needs_example: bool) -> list[str]:
    """What the docstrings of a class, its fields and its methods lack."""
    doc = take_apart(ast.get_docstring(one))
    if not doc.text:
        return [f"{name}: no docstring"]
    silent = set(fields(one)) - set(doc.entries("Attributes"))
    found = [f"{name}: Attributes lacks {', '.join(sorted(silent))}"] * bool(silent)
    found += [f"{name}: no Example"] * (needs_example and not is_error(one) and "Example" not in doc.parts)
    for method in methods(one):
        gives = "Returns" in take_apart(ast.get_docstring(method)).parts
        found += wrong_with_function(f"{name}.{method.name}", method, needs_example and gives)
    return found


def problems() -> list[str]:
    """What the public docstrings lack, a line each."""
    found = []
    for name, module, original in public():
        one = definition(module, original)
        if name == "open":  # another name of Recording
            continue
        needs_example = module != RECORDS and (module, original) not in BESIDE
        wrong = wrong_with_class if isinstance(one, ast.ClassDef) else wrong_with_function
        found += wrong(name, one, needs_example)  # type: ignore[operator]
    return found


def examples() -> list[tuple[str, str]]:
    """Name and code of every example in the reference."""
    found = []
    for name, module, original in public():
        one = definition(module, original)
        inner = methods(one) if isinstance(one, ast.ClassDef) else []
        for title, item in [(name, one), *((f"{original}.{method.name}", method) for method in inner)]:
            code = take_apart(ast.get_docstring(item)).parts.get("Example")
            if code is not None and name != "open":
                found.append((title, textwrap.dedent(code)))
    return found


def shown_sections(doc: Doc, *, skip: str = "") -> list[str]:
    """Markdown of a docstring's sections."""
    lines: list[str] = []
    for section in SECTIONS:
        if section not in doc.parts or section == skip:
            continue
        entries = doc.entries(section)
        if section == "Example":
            lines += ["```python", textwrap.dedent(doc.parts[section]).strip("\n"), "```", ""]
        elif section in ("Returns", "Yields") or not entries:
            lines += [f"**{section}** " + " ".join(doc.parts[section].split()), ""]
        else:
            lines += [f"**{section}**", "", *(f"- `{name}`: {text.strip()}" for name, text in entries.items()), ""]
    return lines


def shown_text(doc: Doc) -> list[str]:
    """Markdown of the text before the sections: indented lines are code."""
    lines: list[str] = []
    for block in doc.text.split("\n\n"):
        if block.startswith("    "):
            lines += ["```python", textwrap.dedent(block), "```", ""]
        else:
            lines += [block, ""]
    return lines


def shown_function(title: str, name: str, function: ast.FunctionDef) -> list[str]:
    """Markdown of a function, method or property."""
    doc = take_apart(ast.get_docstring(function))
    if "property" in decorators(function):
        head = f"{name}: {ast.unparse(function.returns) if function.returns else ''}"
    else:
        head = signature(name, function)
    return [
        f"{title} `{name.rpartition('.')[2]}`",
        "",
        "```python",
        head,
        "```",
        "",
        *shown_text(doc),
        *shown_sections(doc),
    ]


def shown_class(title: str, name: str, one: ast.ClassDef) -> list[str]:
    """Markdown of a class, with its fields and methods."""
    doc = take_apart(ast.get_docstring(one))
    bases = ", ".join(ast.unparse(base) for base in one.bases)
    lines = [f"{title} `{name}`" + (f" ({bases})" if is_error(one) else ""), "", *shown_text(doc)]
    types = fields(one)
    if types:
        described = doc.entries("Attributes")
        lines += ["| field | type | |", "| --- | --- | --- |"]
        for name_, text in types.items():
            type_ = text.replace("|", "\\|")
            lines.append(f"| `{name_}` | `{type_}` | {described.get(name_, '').strip()} |")
        lines.append("")
    lines += shown_sections(doc, skip="Attributes" if types else "")
    for method in methods(one):
        lines += shown_function(f"{title}#", f"{name}.{method.name}", method)
    return lines


def build() -> str:
    """The text of the reference."""
    lines = [_HEAD]
    groups: dict[str, list[str]] = {"Functions": [], "Objects": [], "Records": [], "Errors and warnings": []}
    for name, module, original in public():
        one = definition(module, original)
        if isinstance(one, ast.FunctionDef):
            groups["Functions"] += shown_function("###", f"pfd.{name}", one)
        elif is_error(one):
            groups["Errors and warnings"] += shown_class("###", f"pfd.{name}", one)
        else:
            groups["Records" if module == RECORDS else "Objects"] += shown_class("###", original, one)
    for title, part in groups.items():
        lines += [f"## {title}", "", *part]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Writes the reference, or with `--check` says what is wrong with it."""
    found = problems()
    text = build()
    if "--check" in sys.argv[1:]:
        if not REFERENCE.exists() or REFERENCE.read_text(encoding="utf-8") != text:
            found.append("docs/reference.md is stale: run python -m docs.build and commit it")
    else:
        REFERENCE.write_text(text, encoding="utf-8")
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
