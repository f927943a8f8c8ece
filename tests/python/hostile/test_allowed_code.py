"""The oracle of generated code sees what it should: each of these texts is one that an attack would make."""

from __future__ import annotations

import re

import pytest
from allowed_code import NotAllowed, allowed_names, check_python, check_script

HEAD = '"""A model."""\n\nimport torch\nfrom torch import nn\n\n\n'
GOOD = "class Model(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n".replace("relu", "abs")
BAD_BODIES = [
    "return eval('1')",
    "return exec(x)",
    "return open(x)",
    "return __import__('os')",
    "return getattr(x, 'y')",
    "return torch.load(x)",
    "return torch.ops.load_library(x)",
    "return torch.ops.mine.g.default(x)",
    "return torch.jit.load(x)",
    "return torch.hub.load(x)",
    "return x.__class__",
    "return x.numpy()",
    "return x.storage()",
    "return self.__dict__",
    "return (lambda: x)()",
    "import os",
    "from os import system",
    "global x",
    "del x",
    "raise x",
    "assert x",
    "try:\n            pass\n        finally:\n            pass",
    "return f'{x}'",
    "yield x",
    "return (y := x)",
    "x.y = 1; return torch.compile(x)",
    "torch = x; return torch.abs(x)",
    "len = x; return x",
    "return unbound",
    "@torch.abs\n        def f(y):\n            return y",
    "def f(y: eval('1')):\n            return y",
    "class Other: pass",
]
BAD_FILES = [
    HEAD + GOOD + "\nprint(1)\n",
    HEAD + "import os\n" + GOOD,
    HEAD + GOOD.replace("Model(nn.Module)", "Model(nn.Module, metaclass=torch.abs)"),
    HEAD + "@torch.abs\n" + GOOD,
    HEAD + GOOD.replace("class Model(nn.Module):", "class Model(nn.Module):\n    x = torch.abs(1)"),
    HEAD + GOOD.replace("self, x", "self, x=open('y')"),
    HEAD.replace('"""A model."""', "1 + 1") + GOOD,
    HEAD.replace("from torch import nn", "from torch import *") + GOOD,
]
BAD_SCRIPTS = [
    "def f(x: Tensor) -> Tensor:\n  return ops.aten.from_file(x)\n",
    "def f(x: Tensor) -> Tensor:\n  return torch.from_file(x)\n",
    "def f(x: Tensor) -> Tensor:\n  return torch.save(x)\n",
    "def f(x: Tensor) -> Tensor:\n  return print(x)\n",
    "def f(x: Tensor) -> Tensor:\n  return fork(x)\n",
    "import torch\n",
    "class A(Other):\n  pass\n",
    "class A(Module):\n  x : int = 3\n",
    "x = 3\n",
]


def test_good_code_is_taken() -> None:
    check_python(HEAD + GOOD)
    check_script(
        "class A(Module):\n  __parameters__ = []\n  x : int\n  def f(self, x: Tensor) -> Tensor:\n    return torch.abs(x)\n"
    )


@pytest.mark.parametrize("body", BAD_BODIES)
def test_bad_statements_are_seen(body: str) -> None:
    with pytest.raises(NotAllowed):
        check_python(HEAD + f"class Model(nn.Module):\n    def forward(self, x):\n        {body}\n")


@pytest.mark.parametrize("file", BAD_FILES)
def test_bad_files_are_seen(file: str) -> None:
    with pytest.raises(NotAllowed):
        check_python(file)


@pytest.mark.parametrize("script", BAD_SCRIPTS)
def test_bad_scripts_are_seen(script: str) -> None:
    with pytest.raises(NotAllowed):
        check_script(script)


def test_the_list_names_nothing_that_reaches_out() -> None:
    words = {"load", "save", "file", "open", "exec", "system", "import", "library", "compile", "jit", "hub", "numpy"}
    known = {".load_state_dict", "torch.ops.aten.nonzero_numpy", "torch.ops.aten.numpy_T"}
    known |= {"script torch.nonzero_numpy", "script torch.numpy_T"}
    assert [name for name in sorted(allowed_names() - known) if words & set(re.split(r"[\W_]+", name))] == []
