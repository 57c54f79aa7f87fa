# SPDX-License-Identifier: Apache-2.0
"""However a program is compiled, linked and loaded, it counts the same, and the same as one step per block."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from quipu.agent.installation import native_file, native_folders
from quipu.agent.source.functions import section

from .conftest import PROGRAMS, Tree, Workshop, effort

LINKED = sorted((PROGRAMS / "linked").glob("*.c*"))
PLUGINS = PROGRAMS / "plugins"

# Options of the compiler, and of the linker.
MODES = {
    "pie": ("-fPIE", "-pie"),
    "no-pie": ("-fno-pie", "-no-pie"),
    "static": ("", "-static"),
    "static-pie": ("-fPIE", "-static-pie"),
    "lld": ("", "-fuse-ld=lld"),
    "lto": ("-flto", "-flto -fuse-ld=lld -O2"),
    "lto-thin": ("-flto=thin", "-flto=thin -fuse-ld=lld -O2"),
    "lto-bfd": ("-flto", "-flto -fuse-ld=bfd"),
    "lto-thin-gold": ("-flto=thin", "-flto=thin -fuse-ld=gold"),
    "sections": ("-ffunction-sections -fdata-sections", "-Wl,--gc-sections -s"),
}


THIN_INDEX = ("-flto=thin", "-fuse-ld=lld", "-Wl,--thinlto-index-only")


def compile_parts(workshop: Workshop, sources: list[Path], *options: str) -> list[Path]:
    """Compile each file separately, like a build system."""
    objects = []
    for source in sources:
        objects.append(workshop.folder / f"{source.stem}.o")
        wrapper(
            workshop, "quipu-c++" if source.suffix == ".cpp" else "quipu-cc", *options, "-c", source, to=objects[-1]
        )
    return objects


def wrapper(workshop: Workshop, name: str, *arguments: str | Path, to: Path) -> Path:
    done = subprocess.run(
        [native_file(name), *arguments, "-o", to],
        env=workshop.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return to


def measure(workshop: Workshop, program: Path, *arguments: str | Path) -> tuple[str, Tree]:
    run = workshop.run(program, *map(str, arguments))
    assert run.returncode == 0
    return run.stdout, effort(run)


def visits(tree: Tree) -> dict[tuple[str, ...], float]:
    return {path: values["visits"] for path, values in tree.items()}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, built: Path):
    """Output and counts of a normal link in which each block has its own counter."""
    workshop = Workshop(tmp_path_factory.mktemp("reference"), "19", built)
    parts = compile_parts(workshop, LINKED, "-O2", "--quipu-naive")
    stdout, counted = measure(workshop, wrapper(workshop, "quipu-c++", *parts, to=workshop.folder / "program"))
    assert stdout == "71 267\n"
    assert counted[("main", "catches(int)", "for_each(int, void (*)(int))", "stop_at_ten(int)")]["visits"] == 22
    return stdout, counted


@pytest.mark.parametrize("mode", MODES)
def test_modes_of_linking(workshop: Workshop, reference, mode: str) -> None:
    compiling, linking = MODES[mode]
    parts = compile_parts(workshop, LINKED, "-O2", *compiling.split())
    program = wrapper(workshop, "quipu-c++", *linking.split(), *parts, to=workshop.folder / "program")
    assert measure(workshop, program) == reference


@pytest.mark.parametrize("mode", ["-flto", "-flto=thin"])
def test_compiling_and_linking_in_one_step(workshop: Workshop, reference, mode: str) -> None:
    """The pass instruments each file once, and does not instrument the linked module again."""
    shared = compile_parts(workshop, [source for source in LINKED if source.suffix == ".c"], "-O2", mode)
    sources = [source for source in LINKED if source.suffix == ".cpp"]
    options = ("-O2", mode, "-fuse-ld=lld")
    program = wrapper(workshop, "quipu-c++", *options, *sources, *shared, to=workshop.folder / "program")
    assert measure(workshop, program) == reference


def bitcode_of(workshop: Workshop, source: Path, *options: str, plainly: bool = False) -> Path:
    """Compile a file to LLVM bitcode, instrumented or (`plainly`) not optimized and without Quipu."""
    to = workshop.folder / f"{source.stem}{'.ll' if '-S' in options else '.bc'}"
    only = ["--quipu-off", "-Xclang", "-disable-llvm-passes"] if plainly else []
    name = "quipu-c++" if source.suffix == ".cpp" else "quipu-cc"
    return wrapper(workshop, name, *only, "-O2", *options, "-emit-llvm", source, to=to)


@pytest.mark.parametrize("plainly", [False, True], ids=["wrapper", "compiler"])
@pytest.mark.parametrize("form", ["-c", "-S"])
def test_intermediate_code_is_counted_once(workshop: Workshop, reference, form: str, plainly: bool) -> None:
    """The wrapper instruments bitcode of the plain compiler, but not bitcode that a wrapper wrote."""
    parts = [bitcode_of(workshop, source, form, plainly=plainly) for source in LINKED]
    program = wrapper(workshop, "quipu-c++", "-O2", *parts, to=workshop.folder / "program")
    assert measure(workshop, program) == reference
    assert section(program).count(b'"name":"main"') == 1


def test_modules_linked_of_counted_and_other_code(workshop: Workshop, reference) -> None:
    """Inlining between instrumented and plain code counts nothing twice and loses nothing."""
    for plain in LINKED:
        parts = [bitcode_of(workshop, source, "-c", plainly=source == plain) for source in LINKED]
        whole = workshop.folder / "whole.bc"
        subprocess.run([f"/usr/lib/llvm-{workshop.llvm}/bin/llvm-link", *parts, "-o", whole], check=True)
        program = wrapper(workshop, "quipu-c++", "-O2", whole, to=workshop.folder / "program")
        stdout, counted = measure(workshop, program)
        assert (stdout, visits(counted)) == (reference[0], visits(reference[1]))  # the optimizer now sees all files


def test_backends_of_lto_that_run_by_themselves(workshop: Workshop, reference) -> None:
    """Distributed ThinLTO: the linker writes the index and the wrapper compiles each file."""
    parts = compile_parts(workshop, LINKED, "-O2", "-flto=thin")
    wrapper(workshop, "quipu-c++", *THIN_INDEX, *parts, to=workshop.folder / "unused")
    compiled = []
    for part in parts:
        index = f"-fthinlto-index={part}.thinlto.bc"
        options = ("-O2", "-x", "ir", index, "-c", part)
        compiled.append(wrapper(workshop, "quipu-c++", *options, to=part.with_suffix(".native.o")))
    assert measure(workshop, wrapper(workshop, "quipu-c++", *compiled, to=workshop.folder / "program")) == reference


@pytest.mark.parametrize("lto", [(), ("-flto",)], ids=["plain", "lto"])
def test_exceptions_across_shared_libraries(workshop: Workshop, reference, lto: tuple[str, ...]) -> None:
    use = ("-fuse-ld=lld",) if lto else ()
    collatz, main, shapes = compile_parts(workshop, LINKED, "-O2", "-fPIC", *lto)
    library = workshop.folder / "libshapes.so"
    wrapper(workshop, "quipu-c++", "-shared", *lto, *use, shapes, collatz, to=library)
    place = f"-Wl,-rpath,{workshop.folder}"
    program = wrapper(workshop, "quipu-c++", *lto, *use, main, library, place, to=workshop.folder / "program")
    assert measure(workshop, program) == reference


def test_libraries_loaded_one_after_the_other(workshop: Workshop) -> None:
    """Regions of the same name in different libraries have separate weights, also at the same address."""
    results = []
    for counting in ((), ("--quipu-naive",)):
        libraries = []
        for name in ("first", "second"):
            to = workshop.folder / f"{name}.so"
            libraries.append(
                wrapper(workshop, "quipu-cc", "-O2", *counting, "-fPIC", "-shared", PLUGINS / f"{name}.c", to=to)
            )
        host = wrapper(workshop, "quipu-cc", "-O2", *counting, PLUGINS / "host.c", to=workshop.folder / "host")
        results.append(measure(workshop, host, *libraries))
    assert results[0] == results[1]
    stdout, counted = results[0]
    assert len(stdout.split()) == 6
    assert counted[("main", "run", "work")]["visits"] == 6


def test_a_plugin_of_a_program_that_is_not_measured(workshop: Workshop) -> None:
    """An instrumented library loads the runtime into a program of another compiler."""
    library = workshop.folder / "first.so"
    wrapper(workshop, "quipu-cc", "-O2", "-fPIC", "-shared", PLUGINS / "first.c", to=library)
    host = workshop.folder / "host"
    subprocess.run(["gcc", PLUGINS / "host.c", "-o", host], check=True)
    sanitizer = native_folders()[0].glob("sanitizer.so")  # docs/design/sanitizers.md
    run = workshop.run(host, str(library), LD_PRELOAD=":".join(map(str, sanitizer)))
    assert run.returncode == 0
    counted = effort(run)
    assert counted[("work",)]["visits"] == 3


def test_children_of_fork_have_profiles_of_their_own(workshop: Workshop) -> None:
    runs = workshop.run_all(workshop.build("forks.c", "-O2"), "100")
    work = [sum(v["blocks"] for path, v in effort(run).items() if path[-1] == "work") for run in runs]
    assert sorted(work) == [102, 202, 402, 802]  # the parent, its child, the child of that, and the executed program
    exact = workshop.run_all(workshop.build("forks.c", "-O2", "--quipu-naive", name="naive"), "100")
    measured = [
        sorted((one for one in map(effort, group) if one.get(("main",), {}).get("visits")), key=str)
        for group in (runs, exact)
    ]
    assert measured[0] == measured[1]
