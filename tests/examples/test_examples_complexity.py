# SPDX-License-Identifier: Apache-2.0
"""complexity.toml is well-formed, and equals an independent counter."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from complexity import COUNTS, evaluate, read_complexity
from example_programs import ALL, EXAMPLES, Program, campaign_arguments, campaign_values, run


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library for LD_PRELOAD that counts MPI operations."""
    folder = tmp_path_factory.mktemp("counter")
    source = Path(__file__).with_name("count_mpi.c")
    library = folder / "libcount_mpi.so"
    done = run(["mpicc", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", str(library), str(source)], folder)
    assert done.returncode == 0, done.stderr
    return library


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("name", ALL)
def test_operations_are_as_documented(
    name: str, ranks: int, programs: dict[str, Program], counter: Path, tmp_path: Path
) -> None:
    complexity = read_complexity(EXAMPLES / name / "complexity.toml")
    n = campaign_values(name)["n"][1] + 1  # an odd number divides by nothing
    environment = {"LD_PRELOAD": str(counter), "COUNT_MPI_DIR": str(tmp_path)}
    programs[name].result(ranks, *campaign_arguments(name, n), environment=environment)
    counted = _read_counts(tmp_path, ranks)

    expected: dict[str, dict[str, list[float]]] = defaultdict(dict)
    totals: dict[tuple[str, str], float] = {}
    for operation in complexity.operations:
        for count, per_rank in complexity.expected(operation, {"p": ranks, "n": n}).items():
            so_far = expected[operation.name].get(count, [0] * ranks)
            expected[operation.name][count] = [a + b for a, b in zip(so_far, per_rank, strict=True)]
        for count in operation.sum_over_ranks:
            totals[operation.name, count] = complexity.expected_total(operation, {"p": ranks, "n": n})[count]

    assert set(counted) == set(expected)
    for operation_name, by_count in expected.items():
        for count, values in by_count.items():
            assert counted[operation_name][count] == values, (operation_name, count)
    for (operation_name, count), total in totals.items():
        assert sum(counted[operation_name][count]) == total


def _read_counts(folder: Path, ranks: int) -> dict[str, dict[str, list[int]]]:
    counted: dict[str, dict[str, list[int]]] = {}
    for rank in range(ranks):
        for line in (folder / str(rank)).read_text().splitlines():
            operation, *numbers = line.split()
            by_count = counted.setdefault(operation, {count: [0] * ranks for count in COUNTS})
            for count, number in zip(COUNTS, numbers, strict=True):
                by_count[count][rank] = int(number)
    return counted


@pytest.mark.parametrize("name", ALL)
def test_expressions_hold_at_all_points(name: str) -> None:
    complexity = read_complexity(EXAMPLES / name / "complexity.toml")
    values = campaign_values(name)
    assert set(values) == set(complexity.parameters)
    for p in values["p"]:
        for n in values["n"]:
            for region in complexity.regions:
                assert set(region.blocks) <= set(complexity.parameters)
                assert evaluate(region.calls, complexity.names({"p": p, "n": n}, 0)) >= 1
            sent = received = 0.0
            for operation in complexity.operations:
                totals = complexity.expected_total(operation, {"p": p, "n": n})
                assert all(value == int(value) and value >= 0 for value in totals.values())
                if operation.name in {"MPI_Isend", "MPI_Irecv", "MPI_Sendrecv", "MPI_Alltoallv"}:
                    sent += totals["bytes_sent"]
                    received += totals["bytes_received"]
            assert sent == received


@pytest.mark.parametrize("name", ALL)
def test_constants_are_those_of_the_campaign(name: str) -> None:
    complexity = read_complexity(EXAMPLES / name / "complexity.toml")
    given = [word for word in campaign_arguments(name, 12345) if word != "12345"]
    from_command = {"heat": ["steps", "interval"], "cg": ["iterations"], "jacobi_py": ["iterations", "interval"]}
    from_command["wavefront"] = ["sweeps"]
    assert given == [str(complexity.constants[key]) for key in from_command.get(name, [])]


def test_evaluate() -> None:
    names = {"n": 7, "p": 4, "rank": 3}
    assert evaluate("8 * n**2 // p + -1", names) == 97
    assert evaluate("(rank > 0) + (rank < p - 1)", names) == 1
    assert evaluate("n if rank == 0 else n / 2", names) == 3.5


@pytest.mark.parametrize("text", ["", "n +", "m", "__import__('os')", "n.real", "[n]", "'n'", "True", "0 < n < 9"])
def test_evaluate_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="'"):
        evaluate(text, {"n": 7})
