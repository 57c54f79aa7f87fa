"""make demo: the whole chain on the five example programs, in about three minutes.

Builds them with the compiler wrappers, measures them over two parameters, fits models, prints trees, models and
predictions, writes Score-P filter files and HTML reports to demo-out/, and builds heat again with its filter.
"""

from __future__ import annotations

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


def main() -> None:
    """Run the demo."""
    started = time.monotonic()
    written: list[Path] = []
    for name, target in TARGETS.items():
        folder = copy(name)
        runs = f"{name}.runs"
        say(f"{name}: build with the wrappers, measure over p and n")
        run("quipu campaign campaign.toml", folder, quiet=True)
        if name == "heat":
            say("heat: the call tree of one run")
            run(f"quipu show {runs}/p=8,n=64.r1 --depth 3", folder)
            say("heat: what grows how (basic blocks, bytes, time)")
            run(f"quipu model {runs} --metric blocks,bytes_sent,time --path '*stencil_sweep*'", folder)
            run(f"quipu model {runs} --metric blocks,bytes_sent,time --path '*halo_exchange*'", folder)
        say(f"{name}: what will take the time at {target}")
        run(f"quipu predict {runs} --at {target} --top 8", folder)
        run(f"quipu model {runs} --all -o models.json", folder, quiet=True)
        run(f"quipu report {runs} --at {target} -o report.html", folder)
        written += [folder / runs, folder / "models.json", folder / "report.html"]
        if name != "jacobi_py":  # Python functions have no place in a filter of compiled regions
            run(f"quipu filter {runs} --at {target} -o score-p.filter", folder)
            written.append(folder / "score-p.filter")

    folder = OUT / "heat"
    say("heat: built once more with its filter; only the selected regions are measured")
    run("make -s clean", folder)
    run("make -s MPICC='quipu-mpicc --quipu-filter=score-p.filter'", folder)
    run("quipu run --param p=2 --param n=64 -o filtered -- mpirun -n 2 ./heat 64 20 5", folder)
    run("quipu show filtered", folder)
    written.append(folder / "filtered")

    say(f"done in {time.monotonic() - started:.0f} s; written:")
    for path in written:
        print(f"  {path.relative_to(OUT.parent)}")


if __name__ == "__main__":
    main()
