# SPDX-License-Identifier: Apache-2.0
"""Terminal views: golden text, widths, numbers, characters."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import CallTree, Metric, Region, RegionKind
from quipu.report.json_views import checks_json, ranking_json, show_json
from quipu.report.model_views import RankingView
from quipu.report.terminal import (
    ASCII,
    UNICODE,
    Glyphs,
    Layout,
    call_tree,
    campaign_line,
    console_for,
    elide,
    head,
    layout_of,
    plain_names,
    plain_text,
    run_summary,
    shorten,
    shorten_apart,
)
from quipu.report.terminal.tables import check_table, model_table, ranking_table
from quipu.report.text import quantity
from quipu.report.views import CampaignStep, Check, ModelRow, RankedRow, RunView, TreeOptions, TreeView, statistics
from rich.cells import cell_len

REGIONS = (
    Region("main", "main", file="heat.c", line=3),
    Region("_Z5solve", "Solver<std::vector<double, std::allocator<double>>, Jacobi>::run(Grid const&, int)"),
    Region("MPI_Allreduce", "MPI_Allreduce", RegionKind.MPI),
    Region("evil", "ev\x1b[31mil [bold]"),
)
TREE = CallTree(REGIONS, np.array([0, 1, 3, 2, 2]), np.array([-1, 0, 1, 2, 0]))
METRICS = {
    "time": Metric("time", "s"),
    "visits": Metric("visits", "1", "effort"),
    "blocks": Metric("blocks", "1", "effort"),
    "comm_size": Metric("comm_size", "1", "effort", "max"),
}
VALUES = {
    "time": np.array([[0.1, 0.1], [1.0, 2.0], [0.02, 0.02], [0.0, 0.2], [np.nan, np.nan]]),
    "visits": np.array([[1.0, 1], [10, 10], [1000, 1000], [1000, 1000], [1, 1]]),
    "blocks": np.array([[30.0, 30], [1e9, 1e9], [1234567, 1234567], [0, 0], [0, 0]]),
    "comm_size": np.array([[0.0, 0], [0, 0], [0, 0], [2, 2], [2, 2]]),
}
VIEW = TreeView("run", TREE, METRICS, VALUES, facts=(("ranks", "2"),), notes=("rank 1 was killed",))


def lines(text: str) -> list[str]:
    return text.strip("\n").splitlines()


def test_tree_golden() -> None:
    assert lines(plain_text(call_tree(VIEW, TreeOptions(), Layout(92)))) == lines("""
call path               time incl   share  time excl  visits  blocks incl
main                       1.72 s  100.0%     100 ms       1       1.00 G
├─ Solver<…>::run(…)       1.62 s   94.2%     1.50 s      10       1.00 G
│  └─ ev?[31mil [bold]     120 ms    7.0%    20.0 ms    1000       1.23 M
│     └─ MPI_Allreduce     100 ms    5.8%     100 ms    1000            0
└─ MPI_Allreduce                -       -          -       1            0
-: not measured
""")


def test_what_is_only_counted_has_no_time() -> None:
    """The time of a function without a hook is in that of its caller: its exclusive time is `-`, not 0 s."""
    regions = tuple(Region(name, name, RegionKind.FUNCTION) for name in ("main", "inlined", "timed", "never"))
    tree = CallTree(regions, np.array([0, 1, 2, 3]), np.array([-1, 0, 1, 0]))
    values = {
        "time": np.array([[0.9, 1.1], [0.0, 0.0], [0.5, 0.5], [0.0, 0.0]]),
        "visits": np.array([[1.0, 1], [7, 7], [7, 7], [0, 0]]),
    }
    view = TreeView("run", tree, METRICS, values)
    assert lines(plain_text(call_tree(view, TreeOptions(), Layout(92)))) == lines("""
call path   time incl   share  time excl  visits
main           1.50 s  100.0%     1.00 s       1
├─ inlined     500 ms   33.3%          -       7
│ └─ timed     500 ms   33.3%     500 ms       7
└─ never          0 s    0.0%        0 s       0
- in time: part of the caller's time
0 visits: not executed here
""")


def test_operations_of_mpi_that_take_no_time_have_a_time() -> None:
    """In simulations without times of MPI calls, their time is 0 and not part of their callers' time."""
    regions = (REGIONS[0], REGIONS[2])
    tree = CallTree(regions, np.array([0, 1]), np.array([-1, 0]))
    view = TreeView("run", tree, METRICS, {"time": np.array([[1.0], [0.0]]), "visits": np.array([[1.0], [60.0]])})
    assert lines(plain_text(call_tree(view, TreeOptions(), Layout(92)))) == lines("""
call path         time incl   share  time excl  visits
main                 1.00 s  100.0%     1.00 s       1
└─ MPI_Allreduce        0 s    0.0%        0 s      60
""")


def test_the_start_and_the_end_of_mpi_stand_apart() -> None:
    """They are below a line with their sum; inclusive values, shares and the program's total exclude them."""
    names = ("main", "MPI_Init", "solve", "MPI_Finalize", "start")
    regions = tuple(Region(name, name, RegionKind.MPI if "MPI" in name else RegionKind.FUNCTION) for name in names)
    tree = CallTree(regions, np.array([0, 4, 1, 2, 3]), np.array([-1, 0, 1, 0, 0]))
    times = {"time": np.array([[0.1], [0.2], [60.0], [0.7], [3.0]])}
    view = TreeView("run", tree, METRICS, times)
    assert lines(plain_text(call_tree(view, TreeOptions(), Layout(92)))) == lines("""
call path             time incl   share  time excl
main                     1.00 s  100.0%     100 ms
├─ solve                 700 ms   70.0%     700 ms
└─ start                 200 ms   20.0%     200 ms
start and end of MPI     63.0 s             63.0 s
├─ MPI_Init              60.0 s             60.0 s
└─ MPI_Finalize          3.00 s             3.00 s
""")
    shallow = plain_text(call_tree(view, TreeOptions(depth=0), Layout(92)))
    assert [line.split()[0] for line in lines(shallow)[1:]] == ["main", "start"]
    data = show_json(view, TreeOptions())
    assert [path["start_and_end"] for path in data["call_paths"]] == [False, False, True, False, True]
    assert data["call_paths"][0]["values"]["time"]["inclusive"]["value"] == pytest.approx(1.0)


def test_tree_ascii_exclusive_sorted_and_cut_at_a_depth() -> None:
    selection = TreeOptions(metrics=("blocks", "comm_size"), scope="exclusive", depth=1, sort="visits")
    text = plain_text(call_tree(VIEW, selection, Layout(80, ASCII)))
    assert text.isascii()
    assert [line.split()[0] for line in lines(text)[1:]] == ["main", "|-", "`-"]
    assert "blocks excl" in text
    assert "ev?" not in text


def test_spread_over_ranks() -> None:
    text = plain_text(call_tree(VIEW, TreeOptions(metrics=("time",), scope="inclusive", spread=True), Layout(100)))
    solver = next(line for line in lines(text) if "Solver" in line)
    assert solver.split()[-5:] != []
    assert "1.02 s" in solver
    assert "1.62 s" in solver
    assert "2.22 s" in solver
    assert "54.1%" in solver  # (2.22 - 1.62) / 2.22 * 2 / 1


def test_an_unknown_metric_lists_those_there_are() -> None:
    with pytest.raises(ModelingError, match="no metric 'nope'; choose one of: blocks, comm_size, time, visits"):
        call_tree(VIEW, TreeOptions(metrics=("nope",)), Layout(80))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("glyphs", [ASCII, UNICODE])
def test_no_line_is_wider_than_asked_for(width: int, glyphs: object) -> None:
    layout = Layout(width, ASCII if glyphs is ASCII else UNICODE)
    rows = [ModelRow(("main",) * 30, "time", "1.2e-8·n³·log2(p) + " * 9, 12.3, "25 configurations")]
    ranked = [RankedRow(("main",) * 30, 1.5, 0.75, "3·n³" * 40, 1.2, 1.9, {"p": 2.0})]
    for table in (
        call_tree(VIEW, TreeOptions(), layout),
        call_tree(VIEW, TreeOptions(spread=True), layout),
        model_table(rows, layout),
        ranking_table(ranked, "s", layout),
    ):
        text = plain_text(table, 500)
        assert max(cell_len(line) for line in lines(text)) <= max(80, width)


def test_models_and_ranking_golden() -> None:
    models = [
        ModelRow(("main", "sweep"), "time", "2e-8·n³/p + 0.001", 3.42, "effort"),
        ModelRow(("main",), "blocks", "", float("nan"), "measured", ("not measured",)),
    ]
    assert lines(plain_text(model_table(models, Layout(100)))) == lines("""
call path    metric  model              SMAPE  basis     note
main->sweep  time    2e-8·n³/p + 0.001   3.4%  effort
main         blocks                         -  measured  not measured
""")
    ranked = [
        RankedRow(("main", "sweep"), 12.5, 0.9, "2e-8·n³/p", 11.0, 14.0, {"p": 512.0, "n": 4.0}),
        RankedRow(("main", "wait"), 0.001, 0.1, beyond={"p": 2.0}, oversubscribed=True),
        RankedRow(("main",), 0.001, 0.1),
        RankedRow(("main", "inlined"), 0.0, 0.0, "0", 0.0, 0.0),
    ]
    outside = [RankedRow(("start and end of MPI",), 60.0, float("nan"))]
    assert lines(plain_text(ranking_table(ranked, "s", Layout(120), outside))) == lines("""
   call path             predicted  share  90 % interval     beyond                        model
1  main->sweep              12.5 s  90.0%  11.0 s .. 14.0 s  p 512×, n 4×                  2e-8·n³/p
2  main->wait              1.00 ms  10.0%                    p 2×          oversubscribed
3  main                    1.00 ms  10.0%
   start and end of MPI     60.0 s
""")


def test_checks_say_what_repairs() -> None:
    checks = [Check("mpicc", "ok", "4.1"), Check("flang", "missing", "", "quipu-fc", "apt-get install flang-19")]
    assert lines(plain_text(check_table(checks, Layout(80)))) == lines("""
ok       mpicc  4.1
missing  flang  needed for: quipu-fc
                fix with:  apt-get install flang-19
""")
    assert checks_json(checks)["ok"] is False


def test_run_summary_and_campaign_lines() -> None:
    run = RunView("heat/p=2.r1", 2, 5, 1.25, 137, True, ("rank 1 was killed",))
    assert lines(plain_text(run_summary(run, Layout(100)))) == lines("""
partial  heat/p=2.r1  2 ranks, 5 call paths, 1.25 s, exit code 137
note: rank 1 was killed
""")
    step = CampaignStep(3, 12, "p=2,n=64 (repetition 1)", "ok", 1.5, 100.0)
    assert plain_text(campaign_line(step, Layout(90, ASCII))) == (
        "#####...............  3/12  p=2,n=64 (repetition 1)  ok 1.50 s  about 2 min left"
    )
    assert plain_text(head("a\tb", [("k", "v")], ["n"], Layout(80))) == "a?b\nk  v\nnote: n"


class Stream(io.TextIOWrapper):
    """A text stream that may be a terminal."""

    def __init__(self, encoding: str, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(
    ("encoding", "columns", "width", "unicode"),
    [("utf-8", "", 120, True), ("ascii", "200", 200, False), ("latin-1", "20", 80, False), ("UTF-8", "²", 120, True)],
)
def test_plain_streams(encoding: str, columns: str, width: int, unicode: bool) -> None:
    console = console_for(Stream(encoding, False), {"COLUMNS": columns})
    layout = layout_of(console)
    assert (layout.width, layout.glyphs.unicode) == (width, unicode)
    assert console.no_color


@pytest.mark.parametrize(("environment", "plain"), [({}, False), ({"NO_COLOR": "1"}, True)])
def test_colour_on_terminals_unless_forbidden(
    environment: dict[str, str], plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert console_for(Stream("utf-8", True), environment).no_color is plain


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "s", "0 s"),
        (1.5, "s", "1.50 s"),
        (0.0123456, "s", "12.3 ms"),
        (9.9996e-4, "s", "1.00 ms"),
        (4e-9, "s", "4.00 ns"),
        (123456, "s", "1.235e+05 s"),
        (12345, "1", "12345"),
        (99999.7, "1", "100 k"),
        (1234567, "B", "1.23 MB"),
        (0.25, "1", "0.250"),
        (2.5e12, "B", "2.50 TB"),
        (float("nan"), "1", "-"),
        (-1234567, "1", "-1.23 M"),
        (1e-7, "1", "1.0e-07"),
    ],
)
def test_quantities(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@given(st.floats(allow_nan=True, allow_infinity=True), st.sampled_from(["1", "s", "B"]))
def test_quantities_are_short(value: float, unit: str) -> None:
    assert len(quantity(value, unit)) <= 14


@given(st.text(), st.integers(1, 40), st.sampled_from([ASCII, UNICODE]))
def test_elided_text_fits(text: str, width: int, glyphs: object) -> None:
    short = elide(text, width, ASCII if glyphs is ASCII else UNICODE)
    assert cell_len(short) <= width
    if cell_len(text) <= width:
        assert short == text


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        ("void fe::solve<Matrix<double>>(Matrix<double>&, int)", 30, "fe::solve<Matrix<double>>(…)"),
        ("void fe::solve<Matrix<double>>(Matrix<double>&, int)", 20, "fe::solve<…>(…)"),
        ("void fe::solve<Matrix<double>>(Matrix<double>&, int)", 14, "…solve<…>(…)"),
        ("void fe::solve<Matrix<double>>(Matrix<double>&, int)", 11, "…solve"),
        ("int fe::solve<Matrix<int>>(int) (omp line 106)", 32, "fe::solve<…>(…) (omp line 106)"),
        ("kernels::unpack_message_left (omp line 86)", 34, "…unpack_message_left (omp line 86)"),
        ("kernels::unpack_message_left (omp line 86)", 26, "…unpac…_left (omp line 86)"),
        ("std::map<int, int>::operator[](int const&)", 28, "std::map<…>::operator[](…)"),
        ("bool operator<(Point<int> const&, Point<int> const&)", 20, "operator<(…)"),
        ("std::shared_ptr<Grid>::operator->() const", 35, "std::shared_ptr<Grid>::operator->()"),
        ("run(int)::{lambda(int)#1}::operator()(int) const", 40, "run(…)::{lambda(…)#1}::operator()(…)"),
        ("void a::b::Apply<int>::operator()(int)", 24, "…Apply<…>::operator()(…)"),
        ("void a::b::smooth<int>(int)", 16, "…b::smooth<…>(…)"),
        ("(anonymous namespace)::sweep(Grid const&, int)", 36, "(anonymous namespace)::sweep(…)"),
        ("operator new(unsigned long)", 20, "operator new(…)"),
        ("omp parallel level 2", 12, "omp pa…vel 2"),
        ("main->int fe::run<A>(Box const&)->void fe::solve<A<int>>(B)", 40, "main->fe::run<…>(…)->fe::solve<…>(…)"),
        ("main->grid_create->MPI_Cart_create", 26, "main->…->MPI_Cart_create"),
        ("main->a->driver->exchange->MPI_Send", 30, "main->…->exchange->MPI_Send"),
        ("main->utils::parse_netlist(int)->MPI_Allreduce", 34, "…->…parse_netlist->MPI_Allreduce"),
        ("main->utils::parse_netlist(int)->MPI_Allreduce", 30, "…parse_netlist->MPI_Allreduce"),
        ("main->utils::parse_netlist(int)->MPI_Allreduce", 28, "…->parse…list->MPI_Allreduce"),
        ("main->utils::parse_netlist(int)->MPI_Allreduce", 22, "main->…->MPI_Allreduce"),
        ("numpy._core.multiarray.<module>", 20, "numpy._cor….<module>"),
        ("Finder.find_spec.<locals>.<lambda>", 26, "Finder.find_s…ls>.<lambda>"),
    ],
)
def test_names_keep_what_tells_them_apart(name: str, width: int, short: str) -> None:
    assert shorten(name, width) == short


def test_plain_names() -> None:
    assert plain_names("int fe::solve<Matrix<double>>(Matrix<double>&) (omp line 7)") == ("fe::solve", "solve")
    assert plain_names("fe::Apply<int>::operator()(int) const") == ("fe::Apply::operator()", "Apply::operator()")
    assert plain_names("kernels::pack (omp line 8)") == ("kernels::pack", "pack")
    assert plain_names("main program") == ("main program", "main program")


@given(st.text(alphabet="ab:<>()-, opertx", max_size=40), st.integers(1, 40), st.sampled_from([ASCII, UNICODE]))
def test_shortened_names_fit(text: str, width: int, glyphs: Glyphs) -> None:
    assert cell_len(shorten(text, width, glyphs)) <= width


def test_deep_trees_stay_trees() -> None:
    """If names have too little room, each level is indented by fewer than three columns."""
    depth = 14
    tree = CallTree((Region("step", "step"),), np.zeros(depth, np.int64), np.arange(-1, depth - 1))
    view = TreeView("run", tree, {"time": METRICS["time"]}, {"time": np.ones((depth, 1))})
    text = lines(plain_text(call_tree(view, TreeOptions(metrics=("time",)), Layout(60))))
    assert [line.split("step")[0] for line in text[1:]] == ["", *(" " * level + "└ " for level in range(depth - 1))]


def test_statistics_of_nothing_are_not_numbers() -> None:
    found = statistics(np.array([[np.nan, np.nan], [1.0, 3.0], [0.0, 0.0]]), "sum")
    assert np.isnan(found.value[0])
    assert found.value[1] == 4
    assert found.imbalance[1] == pytest.approx((3 - 2) / 3 * 2)
    assert found.imbalance[2] == 0


def test_json_of_a_tree() -> None:
    data = show_json(VIEW, TreeOptions(metrics=("time",), depth=1, spread=True))
    assert data["call_paths"][0]["path"] == ["main"]
    assert len(data["call_paths"]) == 3
    last = data["call_paths"][-1]
    assert last["parent"] == 0
    assert last["region"]["kind"] == "mpi"
    assert last["values"]["time"]["exclusive"]["value"] is None
    first = data["call_paths"][0]["values"]["time"]
    assert first["inclusive"]["samples"] == [1.12, 2.3200000000000003]
    assert data["notes"] == ["rank 1 was killed"]


def test_json_of_a_ranking() -> None:
    row = RankedRow(("main",), 2.0, 1.0, "n", None, None, {"n": 2.5})
    start = RankedRow(("MPI_Init",), 3.0, float("nan"))
    view = RankingView(METRICS["time"], (row,), row, (start,), {"n": 2.5}, (), ("far",), ())
    data = ranking_json("heat", {"n": 10.0}, view)
    assert data["extrapolation"] is True
    assert data["beyond"] == data["ranking"][0]["beyond"] == {"n": 2.5}
    assert data["program"]["value"] == 2
    assert [entry["share"] for entry in data["start_and_end"]] == [None]
    assert data["ranking"][0]["value"] == 2
    assert data["ranking"][0]["low"] is None


def test_call_paths_that_would_look_alike_are_told_apart() -> None:
    paths = [
        "main->CG(SparseMatrix const&)->ComputeMG(SparseMatrix const&)->ComputeSYMGS(SparseMatrix const&)",
        "main->CG_ref(SparseMatrix const&)->ComputeMG(SparseMatrix const&)->ComputeSYMGS(SparseMatrix const&)",
        "main->initialize",
    ]
    assert shorten_apart(paths, 30) == [
        "main->CG->…->ComputeSYMGS",
        "main->CG_ref->…->ComputeSYMGS",
        "main->initialize",
    ]
    long = [
        f"main->setup->{name}->wait_for_all->MPI_Iprobe" for name in ("hypre_MatvecCommPkgCreate", "hypre_ParCSRFind")
    ]
    assert all(cell_len(own) <= 30 for own in shorten_apart(long, 30))
    assert len(set(shorten_apart(long, 30))) == 2
    assert shorten_apart(["a", "a"], 10) == ["a", "a"]


def test_functions_with_other_arguments_keep_their_name() -> None:
    at = "Array<double>::operator()"
    made = [
        f"main->solve(int)->{at}(int, int)",
        f"main->solve(int)->{at}(int, int, int)",
        f"main->flux(int)->{at}(int)",
    ]
    short = shorten_apart(made, 34)
    assert len(set(short)) == 3 and all(cell_len(own) <= 34 and "Array" in own for own in short)
    many = [f"main->{at}({', '.join(['int'] * number)})" for number in (4, 5, 6)]
    assert shorten_apart(many, 36) == [f"…->Array::operator()(…{', int' * number})" for number in (0, 1, 2)]


def test_call_paths_are_told_apart_by_callers_and_classes_of_the_same_name() -> None:
    made = ["main->dae::evaluate(double)->vec::vec(int)", "main->solver::gmres(mat*)->vec::vec(vec const&)"]
    assert shorten_apart(made, 17) == ["…->evaluate->…vec", "…->…gmres->…vec"]
    long = [path.replace("vec::vec", "distributed_vector::distributed_vector") for path in made]
    assert shorten_apart(long, 18) == ["…->eva…te->…di…tor", "…->gmres->…dis…tor"]
    added = [f"main->parse(int)->dev::mX_{kind}::add_device(int)" for kind in ("capacitor", "resistor")]
    assert shorten_apart(added, 18) == ["…->mX_capa…_device", "…->mX_resi…_device"]
