"""The oracle of generated code: its syntax tree holds only what the writers may write, whatever the file said.

An allow-list, never a list of what is forbidden: kinds of nodes, imports, functions of PyTorch, methods, builtins. What
the writers learn to write is added to allowed_names.txt by someone who has looked at it.
"""

from __future__ import annotations

import ast
import functools
import keyword
import re
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path

NAMES = Path(__file__).with_name("allowed_names.txt")
IMPORTS = {
    "import itertools",
    "import math",
    "from collections import OrderedDict",
    "from pathlib import Path",
    "import torch",
    "import torch.nn.functional as F",
    "from torch import nn",
    "from safetensors.torch import load_file",
}
MODULES = {"torch", "nn", "F", "math", "itertools", "OrderedDict", "Path"}
BUILTINS = {
    "bool", "complex", "dict", "enumerate", "float", "int", "isinstance", "len", "list", "max", "min", "range",
    "reversed", "slice", "super", "tuple", "zip",
}  # fmt: skip
KNOWN_WORDS = MODULES | BUILTINS | {"__file__", "load_file", "EXTERNAL"}
SCRIPT_WORDS = {
    "CONSTANTS", "Dict", "List", "Module", "NoneType", "Optional", "Tensor", "Tuple", "annotate", "bool", "float",
    "getattr", "inf", "int", "isinstance", "len", "nan", "ops", "range", "str", "torch", "unchecked_cast",
    "uninitialized", "__torch__",
}  # fmt: skip
EXPRESSIONS = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.Dict, ast.DictComp, ast.GeneratorExp,
    ast.IfExp, ast.List, ast.ListComp, ast.Name, ast.Slice, ast.Starred, ast.Subscript, ast.Tuple, ast.UnaryOp,
    ast.keyword, ast.comprehension, *ast.operator.__subclasses__(), *ast.unaryop.__subclasses__(),
    *ast.boolop.__subclasses__(), *ast.cmpop.__subclasses__(),
)  # fmt: skip
STATEMENTS = (
    ast.Module, ast.ClassDef, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.If,
    ast.For, ast.While, ast.Break, ast.With, ast.withitem, ast.Expr, ast.Import, ast.ImportFrom, ast.alias, ast.Pass,
)  # fmt: skip
ALLOWED = frozenset(EXPRESSIONS + STATEMENTS)
CONTEXT = "ctx"  # load or store: the statement around tells


class NotAllowed(AssertionError):
    """The text says something that no writer may write."""


def require(condition: object, what: str) -> None:
    if not condition:
        raise NotAllowed(what)


@functools.cache
def allowed_names() -> frozenset[str]:
    lines = NAMES.read_text().splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def dotted(node: ast.expr) -> str | None:
    """`torch.nn.Linear` where the expression is that; None where it begins with anything but a name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        around = dotted(node.value)
        return f"{around}.{node.attr}" if around else None
    return None


def is_plain(name: str) -> bool:
    return (
        re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None and "__" not in name and not keyword.iskeyword(name)
    )


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def children(node: ast.AST) -> Iterator[ast.AST]:
    for field in node._fields:
        if field == CONTEXT:
            continue
        value = getattr(node, field)
        if isinstance(value, ast.AST):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, ast.AST))


def all_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    todo = [tree]
    while todo:
        yield (node := todo.pop())
        todo.extend(children(node))


def declarations(tree: ast.AST) -> set[ast.Name]:
    """Attributes that a class of TorchScript declares: they are known as such only, and self.Tensor is no type."""
    return {n.target for n in all_nodes(tree) if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}


def bound_names(tree: ast.AST, declared: Collection[ast.Name] = ()) -> set[str]:
    """Every name that the code itself gives a value: assigned, a parameter, or the name of a function."""
    names = set()
    for node in all_nodes(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store) and node not in declared:
                names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def attributes_set(tree: ast.AST) -> set[str]:
    """Attributes that the code itself gives a value: `self.layer = ...`, `self.register_buffer("mask", ...)`."""
    names = {n.attr for n in all_nodes(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    calls = (n for n in all_nodes(tree) if isinstance(n, ast.Call) and dotted(n.func) == "self.register_buffer")
    return names | {str(call.args[0].value) for call in calls if call.args and isinstance(call.args[0], ast.Constant)}


def methods_of(tree: ast.Module) -> set[str]:
    """What modules do in a branch or loop: `forward_else`."""
    functions = (part for each in tree.body if isinstance(each, ast.ClassDef) for part in each.body)
    names = (part.name for part in functions if isinstance(part, ast.FunctionDef))
    return {name for name in names if re.fullmatch(r"forward_(main|then|else|body)(_\d+)?", name, re.ASCII)}


class Checker:
    def __init__(self, tree: ast.Module, allow_ops: frozenset[str] = frozenset()) -> None:
        self.bound = bound_names(tree)
        self.methods = methods_of(tree)
        self.attributes = attributes_set(tree) | self.methods
        self.allow_ops = allow_ops
        self.learned: set[str] | None = None  # names that are not on the list, where somebody asks for them
        for name in self.bound - {"__init__"}:
            require(is_plain(name), f"the name {name!r}")
            require(name not in MODULES | BUILTINS, f"{name!r} hides what the code needs")

    def visit(self, node: ast.AST) -> None:
        rule = getattr(self, f"visit_{type(node).__name__}", None)
        (rule or self.generic_visit)(node)

    def generic_visit(self, node: ast.AST) -> None:
        if type(node) not in ALLOWED:
            raise NotAllowed(f"{type(node).__name__} in line {getattr(node, 'lineno', 0)}")
        for child in children(node):
            self.visit(child)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        raise NotAllowed(f"class {node.name} inside another")

    def visit_class(self, node: ast.ClassDef) -> None:
        bases = [ast.unparse(base) for base in node.bases]
        require(bases in (["nn.Module"], ["nn.Sequential"]), f"class {node.name}")
        require(not node.keywords and not node.decorator_list, "a class of another kind")
        methods = node.body[1:] if is_text(node.body[0]) else node.body
        require(all(isinstance(part, ast.FunctionDef) for part in methods), "a class that holds more than methods")
        for part in methods:
            self.visit(part)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            require(ast.unparse(decorator) == "classmethod" and node.name == "load", f"@{ast.unparse(decorator)}")
        for argument in ast.walk(node.args):
            require(not isinstance(argument, ast.arg) or argument.annotation is None, "an annotation")
        require(node.returns is None, "an annotation")
        for part in [node.args, *node.body]:
            self.visit(part)

    def visit_Import(self, node: ast.Import) -> None:
        require(ast.unparse(node) in IMPORTS, ast.unparse(node))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        require(ast.unparse(node) in IMPORTS, ast.unparse(node))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """The name of a member with its number: f"layer{i + 1}"."""
        require(re.fullmatch(r"""f(['"])[\w-]*\{i( \+ \d+)?\}\1""", ast.unparse(node), re.ASCII), ast.unparse(node))

    def visit_Name(self, node: ast.Name) -> None:
        is_known = node.id in self.bound or node.id in KNOWN_WORDS
        require(isinstance(node.ctx, ast.Store) or is_known, f"the name {node.id!r}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = dotted(node)
        root = path.split(".")[0] if path else ""
        if path in ("self", "cls") or (root == "self" and path and path.count(".") == 1):
            require(is_plain(node.attr), f"the attribute {path!r}")
        elif node.attr in self.attributes and not isinstance(node.value, ast.Name):
            require(is_plain(node.attr), f"the attribute {node.attr!r}")
        elif node.attr in self.methods and root in self.bound - MODULES:  # of a member that a loop is at
            pass
        elif root in MODULES and root not in self.bound:
            self.require_known(str(path))
            return
        elif node.attr == "__init__":
            require(ast.unparse(node.value) == "super()", "a call of __init__")
        else:
            self.require_known(f".{node.attr}")
        self.visit(node.value)

    def require_known(self, name: str) -> None:
        if name in allowed_names() or name in self.allow_ops:
            return
        require(
            self.learned is not None and all(map(is_plain, name.lstrip(".").split("."))), f"{name!r} is not allowed"
        )
        assert self.learned is not None
        self.learned.add(name)


class ScriptChecker(Checker):
    """TorchScript is Python in its syntax, with words and types of its own."""

    def __init__(self, tree: ast.Module, allow_ops: frozenset[str] = frozenset()) -> None:
        declared = declarations(tree)
        self.bound = bound_names(tree, declared)
        self.allow_ops = allow_ops
        self.learned = None
        for attribute in declared:
            require(is_plain(attribute.id), f"the attribute {attribute.id!r}")
        for name in self.bound - {"__parameters__", "__buffers__", "__annotations__"}:
            require(is_plain(name), f"the name {name!r}")
            require(name not in SCRIPT_WORDS, f"{name!r} hides what the code needs")

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.AnnAssign):
            require(node.value is None and isinstance(node.target, ast.Name), "a value for an annotation")
        else:
            require(type(node) in ALLOWED, type(node).__name__)
            require(not isinstance(node, ast.Import | ast.ImportFrom), "an import")
        for child in children(node):
            self.visit(child)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        require([ast.unparse(base) for base in node.bases] == ["Module"], f"class {node.name}")
        require(not node.keywords and not node.decorator_list, "a class of another kind")
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        require(not node.decorator_list, "a decorator")
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        is_known = node.id in self.bound or node.id in SCRIPT_WORDS or node.id == "__annotations__"
        require(isinstance(node.ctx, ast.Store) or is_known, f"the name {node.id!r}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = dotted(node) or ""
        root = path.split(".")[0]
        if root == "__torch__":
            require(all(map(is_plain, path.split(".")[1:])), f"the class {path!r}")
        elif root == "CONSTANTS":
            require(re.fullmatch(r"CONSTANTS\.c\d+", path), f"the constant {path!r}")
        elif root in ("torch", "ops"):
            self.require_known("script " + path)
        elif isinstance(node.value, ast.Name) and node.value.id == "self":
            require(is_plain(node.attr), f"the attribute {path!r}")
        else:
            require(is_plain(node.attr), f"the attribute {node.attr!r}")
            if (
                not path.startswith("self.") and node.attr not in self.bound
            ):  # methods of submodules are bound elsewhere
                self.require_known("script ." + node.attr)
            self.visit(node.value)

    def require_known(self, name: str) -> None:
        bare = name.removeprefix("script ")
        if name in allowed_names() or bare in self.allow_ops:
            return
        require(self.learned is not None, f"{name!r} is not allowed")
        assert self.learned is not None
        self.learned.add(name)


# what tests of --allow-op allow
OPERATORS_OF_TESTS = frozenset({"torch.ops.tonnx_tests.scaled.default", "torch.ops.mine.f.default", "ops.mine.f"})


def check_python(source: str, allow_ops: frozenset[str] = OPERATORS_OF_TESTS, learned: set[str] | None = None) -> None:
    """Throws NotAllowed, or SyntaxError; both are findings."""
    source.encode()  # no lone surrogates
    checker = Checker(tree := ast.parse(source), allow_ops)
    checker.learned = learned
    first, *rest = tree.body
    require(is_text(first), "a file that does not begin with its docstring")
    for part in rest:
        require(isinstance(part, ast.Import | ast.ImportFrom | ast.ClassDef), f"{type(part).__name__} beside the class")
        if isinstance(part, ast.ClassDef):
            checker.visit_class(part)
        else:
            checker.visit(part)


def check_script(source: str, allow_ops: frozenset[str] = OPERATORS_OF_TESTS, learned: set[str] | None = None) -> None:
    """The code of a TorchScript archive."""
    checker = ScriptChecker(tree := ast.parse(source), allow_ops)
    checker.learned = learned
    for part in tree.body:
        require(isinstance(part, ast.ClassDef | ast.FunctionDef), f"{type(part).__name__} beside classes and functions")
        checker.visit(part)


def check_archive(path: str | Path) -> None:
    """All code of a TorchScript archive; there is some."""
    with zipfile.ZipFile(path) as archive:
        files = [name for name in archive.namelist() if "/code/" in name and name.endswith(".py")]
        require(files, "an archive without code")
        for name in files:
            check_script(archive.read(name).decode())
