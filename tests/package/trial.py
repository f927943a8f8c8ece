#!/usr/bin/env python3
"""Tries what is installed: the prefix, the .deb, and tonnx inside another project; with CMake and with pkg-config.

trial.py BUILD SCRATCH [--libtorch PYTHON | --build-subproject] - BUILD is a finished build, SCRATCH a folder that is
made anew. What takes long is done on request, and nothing else then: the example that is compiled against libtorch,
and a build of tonnx inside another project, which otherwise is only configured.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
MODEL = REPOSITORY / "examples/cpp/relu.onnx"
PROGRAM = REPOSITORY / "tests/fuzz/corpus/pt2/static.pt2"
PROGRAMS = {
    "interface": (["cc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"], REPOSITORY / "tests/c/interface.c"),
    "changes": (["cc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"], REPOSITORY / "tests/c/changes.c"),
    "both_headers": (["c++", "-std=c++20"], REPOSITORY / "packaging/conan/test_package/test_package.cpp"),
}


class TrialFailed(Exception):
    pass


def expect(condition: bool, text: str) -> None:
    if not condition:
        raise TrialFailed(text)


def call(*command: object, **settings: str) -> str:
    """What the command prints; its settings are variables of the environment."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **settings})
    if done.returncode != 0:
        raise TrialFailed(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def needed(program: Path) -> set[str]:
    """The shared libraries that a program names."""
    listing = call("objdump", "-p", program)
    return {line.split()[1].split(".so")[0] for line in listing.splitlines() if "NEEDED" in line}


def require_own_names(library: Path) -> None:
    """What a static library defines has its own namespaces, so that it meets nothing that a program brings along."""
    lines = call("nm", "--defined-only", "--extern-only", "--demangle", library).splitlines()
    names = [match[1] for line in lines if (match := re.match(r"[0-9a-f]+ [TDBR] (.*)", line))]
    expect(len(names) > 100, f"{library} defines {len(names)} names")
    strange = [name for name in names if not re.search(r"\btonnx::|\bfmt::tonnx_|^tonnx_", name)]
    expect(not strange, f"{library} defines names that are not its own: {strange[:10]}")


def install_prefix(build: Path, scratch: Path) -> Path:
    """The prefix is moved after the installation: nothing in it may know where it was."""
    call("cmake", "--install", build, "--prefix", scratch / "first")
    (scratch / "first").rename(scratch / "prefix")
    require_own_names(scratch / "prefix/lib/libtonnx.a")
    return scratch / "prefix"


def install_deb(build: Path, scratch: Path) -> Path:
    """Installs the package into a root of its own, by dpkg; what it depends on is not in there."""
    call(
        "cpack",
        "--config",
        build / "CPackConfig.cmake",
        "-B",
        scratch / "cpack",
        "-D",
        f"CPACK_OUTPUT_FILE_PREFIX={scratch}",
    )
    (package,) = scratch.glob("*.deb")
    depends = call("dpkg-deb", "-f", package, "Depends")
    for name in ("libc6", "libstdc++6", "libyaml-cpp", "zlib1g"):
        expect(name in depends, f"the package does not depend on {name}: {depends}")
    root = scratch / "root"
    dpkg(root, "--install", package)
    return root / "usr"


def dpkg(root: Path, *command: object) -> str:
    for folder in ("updates", "info", "triggers", "tmp.ci"):
        (root / "var/lib/dpkg" / folder).mkdir(parents=True, exist_ok=True)
    for name in ("status", "available"):
        (root / "var/lib/dpkg" / name).touch()
    return call(
        "dpkg",
        f"--root={root}",
        "--force-depends",
        "--force-not-root",
        "--force-script-chrootless",
        "--log=/dev/null",
        *command,
    )


def remove_deb(root: Path) -> None:
    dpkg(root, "--purge", "tonnx")
    left = [str(path.relative_to(root)) for path in (root / "usr").rglob("*")] if (root / "usr").exists() else []
    expect(not left, f"the removed package leaves behind: {left}")


def version() -> str:
    header = (REPOSITORY / "include/tonnx/version.h").read_text()
    return ".".join(re.findall(r"#define TONNX_VERSION_\w+ (\d+)$", header, re.MULTILINE))


def try_program(prefix: Path, scratch: Path) -> None:
    printed = call(prefix / "bin/tonnx", "--version")
    expect(version() in printed, f"tonnx --version prints {printed!r}, and the version is {version()}")
    call(prefix / "bin/tonnx", "convert", MODEL, scratch / f"{prefix.name}_relu.py")


def try_man_page(prefix: Path) -> None:
    """It has every option that --help has, and nothing that roff does not understand."""
    page = prefix / "share/man/man1/tonnx.1"
    text = page.read_text().replace("\\-", "-")
    for command in ("convert", "simplify", "run", "print"):
        options = re.findall(r"^ +(?:-\w,)?(--[\w-]+)", call(prefix / "bin/tonnx", command, "--help"), re.MULTILINE)
        expect(len(options) > 1, f"tonnx {command} --help lists {options}")
        missing = [option for option in options if option not in text]
        expect(not missing, f"{page} lacks {missing} of {command}")
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-ww", "-z", page], capture_output=True, text=True)
        expect(done.returncode == 0 and not done.stderr, f"groff says of {page}: {done.stderr}")


def torch_settings(python: Path) -> list[str]:
    """For the example that runs a model with libtorch, by a Python that has it."""
    folder = call(python, "-c", "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])")
    return [f"-DEXAMPLE_PYTHON={python}", f"-DEXAMPLE_TORCH={folder.strip()}"]


def try_cmake(prefix: Path, scratch: Path, language: str, kind: str, more: list[str] | None = None) -> None:
    """The examples of a language, built by find_package(tonnx), and run."""
    build = scratch / f"examples_{language}_{kind}"
    shared = "ON" if kind == "shared" else "OFF"
    settings = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DBUILD_SHARED_LIBS={shared}"]  # not optimised: quicker
    call("cmake", "-S", REPOSITORY / "examples" / language, "-B", build, "-G", "Ninja", *settings, *(more or []))
    found = next(line for line in (build / "CMakeCache.txt").read_text().splitlines() if line.startswith("tonnx_DIR"))
    expect(str(prefix) in found, f"another tonnx was found: {found}")
    call("cmake", "--build", build)
    call("ctest", "--test-dir", build, "--output-on-failure")


def try_pkg_config(prefix: Path, scratch: Path, kind: str) -> None:
    """A program in C and one in C++, compiled with what pkg-config says."""
    asked = ["--static"] if kind == "static" else []
    folder = {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    flags = call("pkg-config", "--cflags", "tonnx", **folder).split()
    libraries = call("pkg-config", "--libs", *asked, "tonnx", **folder).split()
    if kind == "static":
        libraries = [f"{prefix}/lib/libtonnx.a" if word == "-ltonnx" else word for word in libraries]
    for name, (compiler, source) in PROGRAMS.items():
        program, output = scratch / f"{name}_{kind}", scratch / f"{name}_{kind}_output"
        call(*compiler, source, "-o", program, *flags, *libraries)
        expect(("libtonnx" in needed(program)) == (kind == "shared"), f"{program} needs {needed(program)}")
        output.mkdir()
        arguments = {"interface": [MODEL, PROGRAM, output], "changes": [output]}.get(name, [])
        call(program, *arguments, LD_LIBRARY_PATH=str(prefix / "lib"))


def archive_of_sources(scratch: Path) -> str:
    """The URL of an archive of what is checked in, with the changes that are not yet."""
    archive = scratch / "tonnx.tar.gz"
    files = call("git", "-C", REPOSITORY, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    names = scratch / "files_of_tonnx.txt"
    names.write_text("".join(f"{name}\n" for name in files if (REPOSITORY / name).exists()))
    call("tar", "-czf", archive, "-C", REPOSITORY, "--transform", "s,^,tonnx/,", "-T", names)
    return f"file://{archive}"


def try_subproject(scratch: Path, way: str, builds: bool, downloads: bool = False) -> None:
    """tonnx inside another project, which installs nothing of it."""
    build = scratch / f"subproject_{way}{'_downloaded' if downloads else ''}"
    more = [f"-DARCHIVE={archive_of_sources(scratch)}"] if downloads else []
    call("cmake", "-S", REPOSITORY / "tests/package/subproject", "-B", build, "-G", "Ninja", f"-DWAY={way}",
         f"-DREPOSITORY={REPOSITORY}", "-DCMAKE_BUILD_TYPE=Release", *more)  # fmt: skip
    if builds:
        call("cmake", "--build", build)
        call("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error")
        call("cmake", "--install", build, "--prefix", scratch / f"installed_{way}")
        expect(not (scratch / f"installed_{way}/lib").exists(), "the host installs the library")


def try_vcpkg(scratch: Path) -> None:
    """The steps of the port, up to the build: its options are those that there are."""
    manifest = json.loads((REPOSITORY / "packaging/vcpkg/vcpkg.json").read_text())
    expect(manifest["version"] == version(), f"the port is of {manifest['version']}, and the version is {version()}")
    for linkage, features in (("static", "program"), ("dynamic", "")):
        settings = [f"-DLINKAGE={linkage}", f"-DFEATURES={features}", f"-DSCRATCH={scratch / f'vcpkg_{linkage}'}"]
        call("cmake", *settings, "-P", REPOSITORY / "tests/package/vcpkg_steps.cmake")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--libtorch", type=Path, metavar="PYTHON", help="one that has PyTorch and ONNX Runtime")
    parser.add_argument("--build-subproject", action="store_true")
    given = parser.parse_args()
    build, scratch = given.build.resolve(), given.scratch.resolve()
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    if given.build_subproject:
        try_subproject(scratch, "FetchContent", builds=True, downloads=True)  # which calls add_subdirectory
        print("tonnx is built and run inside another project")
        return 0
    prefix = install_prefix(build, scratch)
    if given.libtorch:
        try_cmake(prefix, scratch, "cpp", "static", torch_settings(given.libtorch))
        print("a model that tonnx converts in memory runs in libtorch")
        return 0
    installed = install_deb(build, scratch)
    trials: list[Callable[[], None]] = [
        lambda: try_cmake(prefix, scratch, "cpp", "shared"),
        lambda: try_cmake(installed, scratch, "cpp", "static"),
        lambda: try_cmake(prefix, scratch, "c", "shared"),
        lambda: try_pkg_config(prefix, scratch, "static"),
        lambda: try_pkg_config(installed, scratch, "shared"),
        lambda: try_vcpkg(scratch),
        lambda: try_program(prefix, scratch),
        lambda: try_program(installed, scratch),
    ]
    trials += [
        lambda: try_man_page(prefix),
        lambda: try_man_page(installed),
        lambda: try_subproject(scratch, "FetchContent", builds=False, downloads=True),
    ]
    trials += [
        lambda way=way: try_subproject(scratch, way, builds=False) for way in ("add_subdirectory", "FetchContent")
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(trial) for trial in trials]:
            done.result()
    remove_deb(scratch / "root")
    print(f"{len(trials)} trials of the prefix, the .deb, the port and the subproject pass")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TrialFailed as failure:
        sys.exit(f"error: {failure}")
