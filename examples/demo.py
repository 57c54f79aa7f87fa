# SPDX-License-Identifier: Apache-2.0
"""make demo: the whole chain on the five example programs, in about three minutes.

First it simulates heat with 1 to 64 ranks, its computation driven by effort, predicts 1024 ranks from that, simulates
these as well, and prints both side by side. Then it measures the five programs with at most as many ranks as this
machine has processors and several sizes of the problem, fits models, prints a tree, models and predictions for a larger
problem, writes Score-P filter files and HTML reports to demo-out/, and builds heat again with its filter.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
OUT = EXAMPLES.parent / "demo-out"
SCRIPTS = Path(sys.executable).parent

# Sizes that the measured programs are asked about: twice the largest one that is measured.
TARGETS = {"heat": 128, "cg": 64, "samplesort": 131072, "wavefront": 32, "jacobi_py": 512}
MOST_RANKS = 4
"""More ranks would make the demo longer on a large machine, and show nothing else."""

# What is simulated: the command, and the sizes of one rank, without simulation, that rates are fitted to.
SIMULATED = "./heat 12 2 2"
ONE_RANK = "./heat {m}x{n}x{n} 2 2", [[24, 24], [32, 32], [40, 20]]
RANKS, TARGET = (1, 2, 4, 8, 16, 32, 64), 1024
ROWS = 6


def say(heading: str, explanation: str = "") -> None:
    """Print a heading, and what the reader is about to see."""
    print(f"\n\033[1m── {heading}\033[0m" if sys.stdout.isatty() else f"\n── {heading}")
    if explanation:
        print(textwrap.fill(explanation, 100))
    sys.stdout.flush()


def run(command: str, folder: Path, quiet: bool = False, errors: int | None = None) -> None:
    """Print a command and run it; end the demo if it fails. quiet: show only what it writes to standard error.

    errors: where that goes instead, as `subprocess` has it.
    """
    print(f"$ {command}", flush=True)
    # Open MPI 5 tries TCP between the ranks of one host, and prints an error for each network interface. Without TCP,
    # libfabric would take its place, and MPI_Finalize a second.
    environment = {"OMPI_MCA_btl": "^tcp,ofi", **os.environ, "PATH": f"{SCRIPTS}:{os.environ['PATH']}"}
    output = subprocess.DEVNULL if quiet else None
    done = subprocess.run(shlex.split(command), cwd=folder, env=environment, stdout=output, stderr=errors, check=False)
    if done.returncode:
        sys.stdout.buffer.write(done.stderr or b"")
        sys.exit(f"demo: `{command}` in {folder} ended with exit code {done.returncode}")


def copy(name: str) -> Path:
    """Copy the sources of an example to demo-out; earlier measurements there stay and are taken up again."""
    folder = OUT / name
    ignored = shutil.ignore_patterns("*.o", "*.d", ".compiler", name, "build", "*.runs", "__pycache__", "*_cache")
    shutil.copytree(EXAMPLES / name, folder, ignore=ignored, dirs_exist_ok=True)
    return folder


def processors() -> int:
    """Return how many ranks have a processor of their own here."""
    from quipu.agent.launch.kernel import physical_cores

    allowed = len(os.sched_getaffinity(0))
    return min(physical_cores() or allowed, allowed)


def ranks_measured(available: int) -> int:
    """Return 1, 2 or 4 ranks, at most as many as there are processors: others would wait for one."""
    return min(MOST_RANKS, 1 << available.bit_length() - 1)


def with_ranks(campaign_file: str, ranks: int) -> str:
    """Return the campaign of an example with this number of ranks, over n alone; part 1 varies the ranks."""
    return re.sub(r"^p = .*\n", "", campaign_file, flags=re.MULTILINE).replace("{p}", str(ranks))


def campaign(folder: Path, name: str, parameters: list[str], points: list[list[int]], settings: str) -> Path:
    """Write a campaign file, run it, and return the folder of its runs."""
    lines = [f"parameters = {json.dumps(parameters)}", "[experiment]", f'name = "{name}"', f'directory = "{name}.runs"']
    text = "\n".join([*lines, f"points = {json.dumps(points)}", settings, ""])
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    run(f"quipu campaign --quiet {name}.toml", folder, quiet=True)
    return folder / f"{name}.runs"


def simulate() -> list[Path]:
    """Predict heat at TARGET ranks from simulations of RANKS, and print it beside what is simulated there."""
    folder = copy("heat")
    say(
        f"1. How long does heat take with {TARGET} ranks? A prediction, and its check",
        "heat is an example program: it solves the 3-D heat equation with MPI. First it runs with one rank, built with "
        "Quipu's compiler wrapper, which counts its work (effort): this gives the time of an instruction and of a byte "
        f"on this machine. Then it is simulated with {RANKS[0]} to {RANKS[-1]} ranks on a described network; in a "
        "simulation, computation takes as long as its effort says.",
    )
    run("make -s clean", folder, quiet=True)
    run("make -s MPICC=quipu-mpicc", folder)
    command, sizes = ONE_RANK
    rates = campaign(folder, "one", ["n", "m"], sizes, f'repetitions = 3\ncommand = "mpirun -n 1 {command}"')
    run(f"quipu rates {rates.name} -o heat.rates --force", folder, quiet=True, errors=subprocess.PIPE)
    run("make -s clean", folder, quiet=True)
    run("make -s MPICC=quipu-smpicc", folder)
    settings = f'launcher = "smpi"\nranks = "{{p}}"\ncompute = "effort"\nrates = "heat.rates"\ncommand = "{SIMULATED}"'
    few = campaign(folder, "simulated", ["p"], [[p] for p in RANKS], settings)
    many = campaign(folder, "check", ["p"], [[TARGET]], settings)
    say(
        f"heat with {TARGET} ranks: predicted from at most {RANKS[-1]} ranks, and simulated",
        f"Each line is a call path: a function and who called it. The second column was not used for the first: "
        f"{TARGET} ranks were simulated only to check the prediction. Two steps of the solver are simulated, so that "
        "this takes seconds; setting up (MPI_Cart_create) is therefore a large part.",
    )
    print(side_by_side(few, many), flush=True)
    run(f"quipu report {few.name} --at p={TARGET} -o simulated.html", folder)
    return [folder / "simulated.html", folder / "heat.rates", few, many]


def side_by_side(few: Path, many: Path) -> str:
    """Return the call paths that take longest at TARGET ranks, and the program, as predicted and as simulated."""
    from quipu.agent.merge.experiment import load_experiment
    from quipu.modeling.analysis import analyze
    from quipu.modeling.evaluation import evaluate

    simulated = load_experiment(many)
    known = evaluate(analyze(load_experiment(few)), dict(zip(simulated.parameters, simulated.points[0], strict=True)))
    tree, place = known.analysis.tree, {simulated.tree.key(path): path for path in range(len(simulated.tree))}
    times = simulated.values["time"][:, 0, 0]
    rows = [("the program", known.total.value, float(simulated.tree.program_total(times)))]
    for entry in known.ranking()[:ROWS]:
        there = place.get(tree.key(entry.path))
        rows.append((entry.label, entry.value, float(times[there]) if there is not None else 0.0))
    lines = [f"{'predicted':>12} {'simulated':>12} {'difference':>10}   call path (seconds per rank)"]
    for label, predicted, truth in rows:
        off = f"{100 * (predicted / truth - 1):+.1f} %" if truth else "-"
        lines.append(f"{predicted:12.4g} {truth:12.4g} {off:>10}   {label}")
    return "\n".join(lines)


def measure(name: str, ranks: int, size: int) -> list[Path]:
    """Measure an example, model it, write its report and its filter; return what was written."""
    folder, runs, at = copy(name), f"{name}.runs", f"n={size}"
    file = folder / "campaign.toml"
    file.write_text(with_ranks(file.read_text(encoding="utf-8"), ranks), encoding="utf-8")
    run("quipu campaign campaign.toml", folder, quiet=True)
    if name == "heat":
        say(
            "heat: the call tree of one run",
            "Time and effort of each call path, mean over ranks; blocks are basic blocks that were executed.",
        )
        run(f"quipu show {runs}/n=64.r1 --depth 3", folder)
    run(f"quipu model {runs} --all -o models.json", folder, quiet=True)  # fitted once, read by all that follows
    if name == "heat":
        say(
            "heat: how the work of two functions grows",
            "In each of 20 steps a sweep visits the n³ cells of a rank, and the exchange sends the n² cells of each of "
            "its six faces. Quipu finds that from the counts. Counts are the same in every run, so their formulas are "
            "exact; times are not, and SMAPE says how far the measured ones are from the formula.",
        )
        run("quipu model models.json --metric blocks,time --path '*stencil_sweep*'", folder)
        run("quipu model models.json --metric bytes_sent --path '*halo_exchange*'", folder)
    say(f"{name}: what takes the time at {at}, with twice the largest n that was measured")
    run(f"quipu predict models.json --at {at} --top 6", folder)
    run(f"quipu report {runs} --at {at} -o report.html", folder)
    written = [folder / "report.html", folder / runs, folder / "models.json"]
    if name != "jacobi_py":  # Python functions have no place in a filter of compiled regions
        run(
            f"quipu filter models.json --at {at} -o score-p.filter",
            folder,
            quiet=name != "heat",
            errors=None if name == "heat" else subprocess.PIPE,
        )
        written.append(folder / "score-p.filter")
    return written


def main() -> None:
    """Run the demo."""
    started = time.monotonic()
    written = simulate()
    ranks = ranks_measured(processors())
    names = ", ".join(TARGETS)
    say(
        f"2. Five programs, measured on this machine: {names}",
        f"Each runs with {ranks} {'rank' if ranks == 1 else 'ranks'}, for which this machine has processors, and "
        "with five problem sizes (n), twice each. A model is fitted to every call path: how its work and its time grow "
        "with n.",
    )
    for name, size in TARGETS.items():
        say(f"{name}: measure")
        written += measure(name, ranks, size)
    folder = OUT / "heat"
    say(
        "3. heat, built once more with its filter",
        "The filter, in the format of Score-P, keeps the functions that matter at the target; only these are measured.",
    )
    run("make -s clean", folder)
    run("make -s MPICC='quipu-mpicc --quipu-filter=score-p.filter'", folder)
    run(f"quipu run --param n=64 -o filtered -- mpirun -n {ranks} ./heat 64 20 5", folder)
    run("quipu show filtered", folder)
    written.append(folder / "filtered")
    say(
        f"done in {time.monotonic() - started:.0f} s",
        "Open the reports (*.html) in a browser; the folders hold the runs, for `quipu show`, `quipu model` and so on.",
    )
    for path in sorted(written, key=lambda path: path.suffix != ".html"):
        print(f"  {path.relative_to(OUT.parent)}")


if __name__ == "__main__":
    main()
