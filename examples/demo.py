"""make demo: the whole chain on the five example programs, in about five minutes.

Builds them with the compiler wrappers, measures them over two parameters, fits models, prints trees, models and
predictions, writes Score-P filter files and HTML reports to demo-out/, and builds heat again with its filter. At last
it simulates heat with 1 to 64 ranks, its computation driven by effort, predicts 1024 ranks from that, simulates these
as well, and prints both side by side.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
OUT = EXAMPLES.parent / "demo-out"
SCRIPTS = Path(sys.executable).parent

# Where each program is asked about: far outside of what is measured.
TARGETS = {
    "heat": "p=4096,n=256",
    "cg": "p=4096,n=128",
    "samplesort": "p=4096,n=1e6",
    "wavefront": "p=4096,n=32",
    "jacobi_py": "p=256,n=16384",
}

# What is simulated: the command, sizes of one rank that rates are fitted to, the size of a rank, and the variable of
# the makefile that holds the compiler.
SIMULATED = {
    "heat": ("./heat {m}x{n}x{n} 2 2", [[1, 24, 24], [1, 32, 32], [1, 40, 20]], [12, 12], "MPICC"),
}
RANKS, TARGET = (1, 2, 4, 8, 16, 32, 64), 1024
ROWS = 6


def say(text: str) -> None:
    """Print a heading."""
    print(f"\n\033[1m── {text}\033[0m" if sys.stdout.isatty() else f"\n── {text}", flush=True)


def run(command: str, folder: Path, quiet: bool = False) -> None:
    """Print a command and run it; end the demo if it fails."""
    print(f"$ {command}", flush=True)
    environment = {**os.environ, "PATH": f"{SCRIPTS}:{os.environ['PATH']}"}
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


def measure(folder: Path) -> None:
    """Run the campaign of an example, each point once: repetitions would double the time of the demo."""
    file = folder / "campaign.toml"
    lines = file.read_text(encoding="utf-8").splitlines()
    once = ["repetitions = 1" if line.startswith("repetitions") else line for line in lines]
    file.write_text("\n".join([*once, ""]), encoding="utf-8")
    run("quipu campaign campaign.toml", folder, quiet=True)


def campaign(folder: Path, name: str, points: list[list[int]], settings: str) -> Path:
    """Write a campaign file, run it, and return the folder of its runs."""
    names = json.dumps(["p", "n", "m"][: len(points[0])])
    lines = [f"parameters = {names}", "[experiment]", f'name = "{name}"', f'directory = "{name}.runs"']
    text = "\n".join([*lines, f"points = {json.dumps(points)}", settings, ""])
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    run(f"quipu campaign --quiet {name}.toml", folder, quiet=True)
    return folder / f"{name}.runs"


def simulate(name: str) -> list[Path]:
    """Predict an example at TARGET ranks from simulations of RANKS, and print it beside what is simulated there."""
    command, one, size, variable = SIMULATED[name]
    compiler = {"MPICC": ("quipu-mpicc", "quipu-smpicc"), "MPICXX": ("quipu-mpic++", "quipu-smpicxx")}[variable]
    folder = copy(name)
    say(f"{name}: rates of one rank, then simulations of {RANKS[0]} to {RANKS[-1]} ranks with the time of their effort")
    run("make -s clean", folder, quiet=True)
    run(f"make -s {variable}={compiler[0]}", folder)
    rates = campaign(folder, "one", one, f'repetitions = 5\ncommand = "mpirun -n {{p}} {command}"')
    run(f"quipu rates {rates.name} -o {name}.rates --force", folder)
    run("make -s clean", folder, quiet=True)
    run(f"make -s {variable}={compiler[1]}", folder)
    settings = f'launcher = "smpi"\nranks = "{{p}}"\ncompute = "effort"\nrates = "{name}.rates"\ncommand = "{command}"'
    few = campaign(folder, "scaling", [[p, *size] for p in RANKS], settings)
    many = campaign(folder, "target", [[TARGET, *size]], settings)
    say(f"{name}: {TARGET} ranks, predicted from at most {RANKS[-1]}, and simulated")
    print(side_by_side(few, many), flush=True)
    return [folder / f"{name}.rates", few, many]


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


def main() -> None:
    """Run the demo."""
    started = time.monotonic()
    written: list[Path] = []
    for name, target in TARGETS.items():
        folder = copy(name)
        runs = f"{name}.runs"
        say(f"{name}: build with the wrappers, measure over p and n, each point once")
        measure(folder)
        if name == "heat":
            say("heat: the call tree of one run")
            run(f"quipu show {runs}/p=8,n=64.r1 --depth 3", folder)
        run(f"quipu model {runs} --all -o models.json", folder, quiet=True)  # fitted once, read by all that follows
        if name == "heat":
            say("heat: what grows how (basic blocks, bytes, time)")
            run("quipu model models.json --metric blocks,bytes_sent,time --path '*stencil_sweep*'", folder)
            run("quipu model models.json --metric blocks,bytes_sent,time --path '*halo_exchange*'", folder)
        say(f"{name}: what will take the time at {target}")
        run(f"quipu predict models.json --at {target} --top 8", folder)
        run(f"quipu report {runs} --at {target} -o report.html", folder)
        written += [folder / runs, folder / "models.json", folder / "report.html"]
        if name != "jacobi_py":  # Python functions have no place in a filter of compiled regions
            run(f"quipu filter models.json --at {target} -o score-p.filter", folder)
            written.append(folder / "score-p.filter")

    folder = OUT / "heat"
    say("heat: built once more with its filter; only the selected regions are measured")
    run("make -s clean", folder)
    run("make -s MPICC='quipu-mpicc --quipu-filter=score-p.filter'", folder)
    run("quipu run --param p=2 --param n=64 -o filtered -- mpirun -n 2 ./heat 64 20 5", folder)
    run("quipu show filtered", folder)
    written.append(folder / "filtered")

    for name in SIMULATED:
        written += simulate(name)

    say(f"done in {time.monotonic() - started:.0f} s; written:")
    for path in written:
        print(f"  {path.relative_to(OUT.parent)}")


if __name__ == "__main__":
    main()
