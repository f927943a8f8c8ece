"""Every code block of the README and of docs/ runs, and says what the page shows; links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from blocks import KINDS, PAGES, REPOSITORY, Block, blocks, commands, is_like
from setups import SETUPS, files

import tonnx
from tonnx import _registry
from tonnx.__main__ import run

ALL = list(blocks())


PRELUDE = Path(__file__).with_name("prelude.h")


def of_kind(*kinds: str) -> list[Any]:
    return [pytest.param(block, id=block.title) for block in ALL if block.kind in kinds]


def of_kind_on(page: str, kind: str) -> list[Any]:
    return [pytest.param(block, id=block.title) for block in ALL if block.kind == kind and block.page.name == page]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("docs")
    return folder, files(folder)


@pytest.fixture
def names(
    prepared: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any
) -> Iterator[dict[str, Any]]:
    """The folder of a block, which is the current one, and the names that its Python has."""
    for path in prepared[0].iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "listed").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(_registry, "_converters", {})
    found = dict(prepared[1])
    block: Block = request.getfixturevalue("block")
    if block.setup:
        SETUPS[block.setup](tmp_path, found)
    yield found
    found.get("_undo", lambda: None)()
    for name in [n for n in sys.modules if n.split(".")[0] in ("torchvision", "my_net", "my_package")]:
        del sys.modules[name]


def test_every_block_says_what_it_is() -> None:
    assert len(ALL) > 50
    for block in ALL:
        assert block.kind in KINDS, block.title
        assert not block.setup or block.setup in SETUPS, block.title


_NOT_OURS = ("pip", "git", "make", "export", "apt-get", "cmake")
_OF_THE_BUILD = ("build/", ".venv/", "PYTHONPATH=build")


@pytest.mark.parametrize("block", of_kind("sh", "console"))
def test_commands(block: Block, names: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    for command in commands(block):
        program, *arguments = command.arguments
        if program == "make":
            for target in [a for a in arguments if "=" not in a]:
                assert re.search(rf"^{target}:", makefile, re.M), target
        if program in _NOT_OURS or program.startswith(_OF_THE_BUILD) or "--on" in arguments:
            continue  # test_cluster.py has clusters
        assert program == "tonnx", block.title
        capfd.readouterr()
        code = run(arguments)
        said = "".join(capfd.readouterr())
        is_failure = any(line.startswith("error: ") for line in command.output) or "DIFFERENT" in command.output
        assert (code != 0) == is_failure, f"{' '.join(command.arguments)}: {said}"
        if block.kind == "console":
            assert is_like(command.output, said.splitlines()), f"{' '.join(command.arguments)}:\n{said}"


@pytest.mark.parametrize("block", of_kind("python"))
def test_python(block: Block, names: dict[str, Any]) -> None:
    if block.page.name == "torchscript.md":  # code of an archive, which is Python in its form alone
        compile(block.body, block.title, "exec")
        return
    exec(compile(block.body, block.title, "exec"), names)


@pytest.mark.parametrize("block", of_kind("yaml"))
def test_yaml(block: Block, names: dict[str, Any]) -> None:
    if "models:" not in block.body:
        import yaml

        assert yaml.safe_load(block.body).keys() == {"input_shapes"}
        return
    Path("block.yml").write_text(block.body)
    assert tonnx.run("block.yml", dry_run=True).results


def compiled_form(block: Block) -> str:
    """The block inside of a function, behind what it includes."""
    lines = block.body.splitlines()
    head = [line for line in lines if line.startswith("#include")]
    body = "\n".join(line for line in lines if not line.startswith("#include"))
    result = "std::pair<std::vector<std::byte>, std::string>" if re.search(r"^ *return \{", body, re.M) else "int"
    name = re.sub(r"\W", "_", block.title)
    return "\n".join([*head, f"{result} {name}() {{", f'#line {block.line + 1 + len(head)} "{block.page}"', body, "}"])


def test_blocks_of_cpp_compile(tmp_path: Path) -> None:
    """Their programs are in examples/cpp, where they are run."""
    chosen = [block for block in ALL if block.kind == "cpp" and block.page.name != "adding_an_operator.md"]
    assert len(chosen) > 5
    source = tmp_path / "blocks.cpp"
    source.write_text("\n".join([f'#include "{PRELUDE}"', *map(compiled_form, chosen)]))
    command = ["c++", "-std=c++20", "-fsyntax-only", "-Wno-return-type", f"-I{REPOSITORY / 'include'}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", [*of_kind("cmake"), *of_kind_on("adding_an_operator.md", "cpp")])
def test_code_of_the_tree_is_in_it(block: Block) -> None:
    """What is compiled and run has these words."""
    places = [*(REPOSITORY / "examples/cpp").iterdir(), *(REPOSITORY / "src/ops").rglob("*.cpp")]
    code = "\n".join(path.read_text() for path in places if path.suffix in (".cpp", ".txt"))
    words = re.findall(r"\w+", code)
    for word in re.findall(r"[A-Za-z_]\w{3,}", re.sub(r'"[^"]*"|//.*', "", block.body)):
        assert word in words or word in ("app", "convert"), f"{block.title}: {word}"


@pytest.mark.parametrize("block", of_kind("c"))
def test_code_in_c_is_that_of_the_example(block: Block) -> None:
    """Each line is one of examples/c, which is compiled and run."""
    lines = {line.strip() for line in (REPOSITORY / "examples/c/convert_model.c").read_text().splitlines()}
    for line in block.body.splitlines():
        assert line.strip() in lines, f"{block.title}: {line}"


_LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.S | re.M)
    for link in _LINK.findall(re.sub(r"`[^`]*`", "", text)):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_in_the_site() -> None:
    """`make site` finds dead links; a page that nobody can reach is one too."""
    listed = set(re.findall(r"[\w/]+\.md", (REPOSITORY / "mkdocs.yml").read_text()))
    assert listed == {str(page.relative_to(REPOSITORY / "docs")) for page in PAGES if page.parent != REPOSITORY}


def test_the_reference_has_all_that_is_public() -> None:
    listed = re.findall(r"^ +- (\w+)$", (REPOSITORY / "docs/reference.md").read_text(), re.M)
    assert sorted(listed) == sorted(set(tonnx.__all__) - {"__version__"})
    for name in tonnx.__all__:
        found = getattr(tonnx, name)
        assert name == "__version__" or (found.__doc__ or "").strip(), f"{name} has no docstring"
