"""make demo: the whole chain on the five example programs, in about three minutes.

First it simulates heat with 1 to 64 ranks, its computation driven by effort, predicts 1024 ranks from that, simulates
these as well, and prints both side by side. Then it measures the five programs with at most as many ranks as this
machine has processors, fits models, prints a tree, models and predictions for a larger problem, writes Score-P filter
files and HTML reports to demo-out/, and builds heat again with its filter.
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
MOST_RANKS = 8
"""More ranks than this would make the demo longer on a large machine, and show nothing else."""

# What is simulated: the command, sizes of one rank that rates are fitted to, and the size of a rank.
COMMAND, ONE_RANK, SIZE = "./heat {m}x{n}x{n} 2 2", [[1, 24, 24], [1, 32, 32], [1, 40, 20]], [12, 12]
RANKS, TARGET = (1, 2, 4, 8, 16, 32, 64), 1024
ROWS = 6


def say(heading: str, explanation: str = "") -> None:
    """Print a heading, and what the reader is about to see."""
    print(f"\n\033[1m── {heading}\033[0m" if sys.stdout.isatty() else f"\n── {heading}")
    if explanation:
        print(textwrap.fill(explanation, 100))
    sys.stdout.flush()


def run(command: str, folder: Path, quiet: bool = False) -> None:
    """Print a command and run it; end the demo if it fails."""
    print(f"$ {command}", flush=True)
    # Open MPI 5 tries TCP between the ranks of one host, and prints an error for each network interface.
    environment = {"OMPI_MCA_btl": "^tcp", **os.environ, "PATH": f"{SCRIPTS}:{os.environ['PATH']}"}
    done = subprocess.run(
        shlex.split(command), cwd=folder, env=environment, stdout=subprocess.DEVNULL if quiet else None, check=False
    )
    if done.returncode:
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


def ranks_measured(available: int) -> list[int]:
    """Return the powers of two up to the number of processors, and to MOST_RANKS."""
    return [1 << power for power in range(min(available, MOST_RANKS).bit_length())]


def small_campaign(text: str, ranks: list[int]) -> str:
    """Return the campaign of an example with these numbers of ranks and one run of each point.

    Repetitions would multiply the time of the demo; more ranks than processors would wait for each other.
    """
    text = re.sub(r"^repetitions = .*$", "repetitions = 1", text, flags=re.MULTILINE)
    return re.sub(r"^p = .*$", f"p = {ranks}", text, flags=re.MULTILINE)


def campaign(folder: Path, name: str, points: list[list[int]], settings: str) -> Path:
    """Write a campaign file, run it, and return the folder of its runs."""
    names = json.dumps(["p", "n", "m"][: len(points[0])])
    lines = [f"parameters = {names}", "[experiment]", f'name = "{name}"', f'directory = "{name}.runs"']
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
    rates = campaign(folder, "one", ONE_RANK, f'repetitions = 3\ncommand = "mpirun -n {{p}} {COMMAND}"')
    run(f"quipu rates {rates.name} -o heat.rates --force", folder)
    run("make -s clean", folder, quiet=True)
    run("make -s MPICC=quipu-smpicc", folder)
    settings = f'launcher = "smpi"\nranks = "{{p}}"\ncompute = "effort"\nrates = "heat.rates"\ncommand = "{COMMAND}"'
    few = campaign(folder, "scaling", [[p, *SIZE] for p in RANKS], settings)
    many = campaign(folder, "target", [[TARGET, *SIZE]], settings)
    say(
        f"heat with {TARGET} ranks: predicted from at most {RANKS[-1]} ranks, and simulated",
        f"Each line is a call path: a function and who called it. The second column was not used for the first: "
        f"{TARGET} ranks were simulated only to check the prediction.",
    )
    print(side_by_side(few, many), flush=True)
    at = ",".join(f"{name}={value}" for name, value in zip(("p", "n", "m"), (TARGET, *SIZE), strict=True))
    run(f"quipu report {few.name} --at {at} -o simulated.html --force", folder)
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


def measure(name: str, ranks: list[int], size: int) -> list[Path]:
    """Measure an example, model it, write its report and its filter; return what was written."""
    folder, runs, at = copy(name), f"{name}.runs", f"p={ranks[-1]},n={size}"
    file = folder / "campaign.toml"
    file.write_text(small_campaign(file.read_text(encoding="utf-8"), ranks), encoding="utf-8")
    run("quipu campaign campaign.toml", folder, quiet=True)
    if name == "heat":
        say(
            "heat: the call tree of one run",
            "Time and effort of each call path, mean over ranks; blocks are basic blocks that were executed.",
        )
        run(f"quipu show {runs}/p={ranks[-1]},n=64.r1 --depth 3", folder)
    run(f"quipu model {runs} --all -o models.json --force", folder, quiet=True)  # fitted once, read by all that follows
    if name == "heat":
        say(
            "heat: how the work of two functions grows",
            "A sweep visits all n³ cells of a block; the exchange of its faces sends n² values. Effort is the same in "
            "every run, so its formulas are exact; times follow them with an uncertainty.",
        )
        for function in ("stencil_sweep", "halo_exchange"):
            run(f"quipu model models.json --metric blocks,bytes_sent,time --path '*{function}*'", folder)
    say(f"{name}: what takes the time at {at}, twice the largest n that was measured")
    run(f"quipu predict models.json --at {at} --top 6", folder)
    run(f"quipu report {runs} --at {at} -o report.html --force", folder)
    written = [folder / "report.html", folder / runs, folder / "models.json"]
    if name != "jacobi_py":  # Python functions have no place in a filter of compiled regions
        run(f"quipu filter models.json --at {at} -o score-p.filter --force", folder)
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
        f"Each runs with {' and '.join(map(str, ranks))} {'rank' if ranks == [1] else 'ranks'} (p; this machine has a "
        "processor for each) and five problem sizes (n), once each. A model is fitted to every call path.",
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
    most = ranks[-1]
    run(f"quipu run --param p={most} --param n=64 -o filtered -- mpirun -n {most} ./heat 64 20 5", folder)
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
