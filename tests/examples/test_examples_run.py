# SPDX-License-Identifier: Apache-2.0
"""The examples verify their own results, agree over the number of ranks, and refuse bad arguments."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from example_programs import ALL, Program, campaign_arguments, campaign_values, make

RANKS = (1, 2, 3, 4, 8)


@pytest.mark.parametrize("name", ALL)
def test_corners_of_the_campaign_are_verified(name: str, programs: dict[str, Program]) -> None:
    values = campaign_values(name)
    for ranks in (values["p"][0], values["p"][-1]):
        for n in (values["n"][0], values["n"][-1]):
            assert programs[name].result(ranks, *campaign_arguments(name, n))["ranks"] == str(ranks)


def test_heat_is_the_same_on_all_ranks(programs: dict[str, Program]) -> None:
    # The same 24 x 24 x 24 grid, cut as MPI_Dims_create cuts it; 24^3 is not divisible for 5 or 7 ranks.
    boxes = {1: "24x24x24", 2: "12x24x24", 3: "8x24x24", 4: "12x12x24", 8: "12x12x12"}
    results = [programs["heat"].result(ranks, box, 30, 7) for ranks, box in boxes.items()]
    assert {result["cells"] for result in results} == {"24x24x24"}
    for field in ("residual", "norm"):
        assert [float(result[field]) for result in results] == pytest.approx([float(results[0][field])] * 5, rel=1e-13)


def test_cg_is_the_same_on_all_ranks(programs: dict[str, Program]) -> None:
    for preconditioner in ("none", "jacobi"):
        options = ("--preconditioner", preconditioner)
        results = [programs["cg"].result(ranks, 12, 20, "--planes", 24 // ranks, *options) for ranks in RANKS]
        assert {result["points"] for result in results} == {"12x12x24"}
        norms = [float(result["norm"]) for result in results]
        assert norms == pytest.approx([norms[0]] * len(norms), rel=1e-13)
        # The residual is a difference of nearly equal numbers: its error is relative to b, 1e6 times as large.
        residuals = [float(result["residual"]) for result in results]
        assert residuals == pytest.approx([residuals[0]] * len(residuals), rel=1e-8)


def test_wavefront_flux_is_that_of_the_linear_solution(programs: dict[str, Program]) -> None:
    # 16 groups, zones 0 … 5 in x on one rank, 0 … 11 on two: the sum of 1 + x + 2 y + 3 z over all zones.
    for ranks, length in ((1, 6), (2, 12), (3, 18)):
        result = programs["wavefront"].result(ranks, 6, 2)
        mean = 1 + (length - 1) / 2 + 2 * 5 / 2 + 3 * 5 / 2
        assert float(result["flux"]) == pytest.approx(16 * length * 36 * mean, rel=1e-13)


@pytest.mark.parametrize("key_range", [0, 1, 100])
def test_sort_is_the_same_on_all_ranks(key_range: int, programs: dict[str, Program]) -> None:
    results = [programs["samplesort"].result(ranks, 4800 // ranks, key_range) for ranks in RANKS]
    for field in ("keys", "checksum", "fingerprint"):
        assert len({result[field] for result in results}) == 1


def test_sets_of_keys_of_a_sort_differ(programs: dict[str, Program]) -> None:
    results = [programs["samplesort"].result(2, 100, 0, number) for number in (0, 1, 1000000)]
    assert len({result["checksum"] for result in results}) == 3
    assert results[0] == programs["samplesort"].result(2, 100)


def test_jacobi_is_bitwise_the_same_on_all_ranks(programs: dict[str, Program]) -> None:
    # 50 rows do not divide evenly by 3, 4 and 8.
    results = [programs["jacobi_py"].result(ranks, 50, 60) for ranks in RANKS]
    for field in ("points", "norm", "field"):
        assert len({result[field] for result in results}) == 1


@pytest.mark.parametrize(
    ("name", "ranks", "arguments"),
    [
        ("heat", 4, ("2", "1")),
        ("heat", 3, ("2x3x5", "11", "2")),
        ("cg", 4, ("2", "1", "--planes", "1")),
        ("cg", 1, ("2", "500", "--planes", "1", "--preconditioner", "none")),
        ("cg", 3, ("7", "90", "--tolerance", "1e-9")),
        ("samplesort", 4, ("32",)),
        ("samplesort", 3, ("33", "1")),
        ("wavefront", 4, ("1", "1")),
        ("wavefront", 3, ("5", "2")),
        ("jacobi_py", 4, ("4", "1")),
        ("jacobi_py", 1, ("1", "5")),
    ],
)
def test_smallest_and_odd_cases(
    name: str, ranks: int, arguments: tuple[str, ...], programs: dict[str, Program]
) -> None:
    programs[name].result(ranks, *arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "fault"),
    [
        ("heat", (), "number of arguments"),
        ("heat", ("16",), "number of arguments"),
        ("heat", ("1", "20"), "CELLS"),
        ("heat", ("8x8", "20"), "CELLS"),
        ("heat", ("8x8x8x8", "20"), "CELLS"),
        ("heat", ("99999999999999999999", "20"), "CELLS"),
        ("heat", ("16", "2.5"), "STEPS"),
        ("heat", ("16", "20", "0"), "INTERVAL"),
        ("cg", ("8",), "N and ITERATIONS"),
        ("cg", ("x", "20"), "wrong N 'x'"),
        ("cg", ("8", "0"), "wrong ITERATIONS '0'"),
        ("cg", ("8", "20", "--planes"), "'--planes' has no value"),
        ("cg", ("8", "20", "--speed", "9"), "unknown option '--speed'"),
        ("cg", ("8", "20", "--preconditioner", "ilu"), "'ilu'"),
        ("cg", ("8", "20", "--tolerance", "nan"), "wrong T 'nan'"),
        ("samplesort", (), "number of arguments"),
        ("samplesort", ("31",), "wrong KEYS '31'"),
        ("samplesort", ("1e5",), "wrong KEYS '1e5'"),
        ("samplesort", ("100", "-1"), "wrong RANGE '-1'"),
        ("samplesort", ("100", "0", "1000001"), "wrong SET '1000001'"),
        ("wavefront", ("8",), "number of arguments"),
        ("wavefront", ("0", "5"), "ZONES"),
        ("wavefront", ("8", "5x"), "SWEEPS"),
        ("jacobi_py", (), "number of arguments"),
        ("jacobi_py", ("0", "5"), "N is 0"),
        ("jacobi_py", ("64", "many"), "ITERATIONS is 'many'"),
        ("jacobi_py", ("64", "5", "0"), "INTERVAL is 0"),
    ],
)
def test_bad_arguments(name: str, arguments: tuple[str, ...], fault: str, programs: dict[str, Program]) -> None:
    done = programs[name].run_alone(*arguments)
    assert done.returncode == 2
    assert done.stdout.count("usage:") + done.stderr.count("usage:") == 1
    assert fault in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ALL)
def test_all_ranks_refuse_together(name: str, programs: dict[str, Program]) -> None:
    done = programs[name].run(3, "nonsense", "5")
    assert done.returncode == 2
    assert done.stderr.count("usage:") == 1


def test_cg_reports_a_missed_tolerance(programs: dict[str, Program]) -> None:
    done = programs["cg"].run(3, 8, 3, "--tolerance", "1e-12")
    assert done.returncode == 1
    assert "after 3 iterations is above the tolerance" in done.stderr


# One mistake for each program: a ghost layer that goes to the wrong place, a plane from the wrong neighbour, a merge
# that leaves one run out, a face that is read across, a boundary that is not exchanged.
MISTAKES = {
    "heat": ("halo.c", "grid->cells[d] + 1", "grid->cells[d]"),
    "cg": ("planes.cpp", "x.ghost_above()", "x.ghost_below()"),
    "samplesort": ("local.cpp", "while (bounds.size() > 2)", "while (bounds.size() > 3)"),
    "wavefront": (
        "sweep.cpp",
        "&faces[1][(static_cast<std::size_t>(i) * nz + k)",
        "&faces[1][(static_cast<std::size_t>(k) * nz + i)",
    ),
    "jacobi_py": ("jacobi.py", "recvbuf=field[0, inner]", "recvbuf=field[1, inner]"),
}


@pytest.mark.parametrize("name", ALL)
def test_a_mistake_is_found(name: str, programs: dict[str, Program], tmp_path: Path) -> None:
    file, right, wrong = MISTAKES[name]
    folder = shutil.copytree(programs[name].folder, tmp_path / name)  # make builds only what the mistake changes
    text = (folder / file).read_text(encoding="utf-8")
    assert text.count(right) == 1
    (folder / file).write_text(text.replace(right, wrong), encoding="utf-8")
    program = make(name, folder)
    done = program.run(2, *campaign_arguments(name, campaign_values(name)["n"][0]))
    assert done.returncode == 1
    assert done.stdout.rstrip().endswith(" WRONG")
