# SPDX-License-Identifier: Apache-2.0
"""make screenshots: pictures of every part of a report, for docs/images; with `first`: of its first screen only.

The first screen, light and dark, is that of the README: of examples/heat with its scaling.toml.
Simulates heat with up to 64 ranks, and the same program built without optimization as the earlier state, both by
effort, so that what else the machine does is in no picture. Then takes a picture of each part of the report with
headless Chromium, and of the iterations of a refinement.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "screenshots"
IMAGES = ROOT / "docs" / "images"
SCRIPTS = Path(sys.executable).parent
RANKS, SIZES, STEPS, REPETITIONS = (1, 8, 27, 64), (12, 16, 24, 32), "4 2", 3
SCREEN = "1400,1000"  # of the picture of the first screen, in the README
WIDTH, LEAST, MOST = 1400, 150, 1000  # pixels; longer parts are cut, and lower windows are not drawn right
TARGET, OF_README = "p=1024,n=48", "p=1024,n=24"
CYCLE = f"""[experiment]
name = "cycle"
build = "{SCRIPTS / "quipu-c++"} -O2 hydro.cpp mesh.cpp -o hydro"
command = "./hydro {{n}} 100"
[parameters]
n = [40, 60, 80]
[refine]
strategy = "expand"
program = "hydro"
seconds = 0.01
"""

# Only one part is left, drawn for the width that it then has; its height is the answer.
_ALONE = """
for (const one of document.querySelectorAll('body > header, .controls, main > section, footer'))
  if (one.id !== PART) one.style.display = 'none';
document.querySelector('main').style.display = 'block';
window.dispatchEvent(new Event('resize'));
window.dispatchEvent(new Event('beforeprint'));
document.documentElement.dataset.height = Math.ceil(document.querySelector('main').getBoundingClientRect().bottom + 12);
"""


def chromium(page: Path, *flags: str) -> str:
    """Open a page and return its document after its scripts ran."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("chromium is missing: apt-get install chromium")
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--virtual-time-budget=4000",
    ]
    command += [f"--user-data-dir={WORK / 'browser'}", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def take(report: str, part: str, image: Path, first: str = "") -> None:
    """Take a picture of the part with this id; first: a script before it."""
    start = report.index("<meta http-equiv")  # the policy would forbid the script
    text = report[:start] + report[report.index(">", start) + 1 :]
    script = f"setTimeout(() => {{ {first} {_ALONE.replace('PART', json.dumps(part))} }}, 500)"
    page = WORK / "part.html"
    page.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    found = re.search(r'data-height="(\d+)"', chromium(page, "--dump-dom", f"--window-size={WIDTH},900"))
    if found is None:
        sys.exit(f"screenshots: {part} was not drawn")
    chromium(page, f"--screenshot={image}", f"--window-size={WIDTH},{min(MOST, max(LEAST, int(found[1])))}")
    print(f"wrote {image.relative_to(ROOT)}")


def build(name: str, flags: str, compiler: str) -> Path:
    """Build heat in a folder of its own and return that."""
    folder = WORK / name
    shutil.copytree(
        ROOT / "examples" / "heat", folder, ignore=shutil.ignore_patterns("*.o", "*.d", ".compiler", "heat")
    )
    flags += f" -ffile-prefix-map={folder}=heat"
    subprocess.run(["make", "--silent", f"CC={SCRIPTS / compiler}", f"CFLAGS={flags}"], cwd=folder, check=True)
    return folder


def quipu(arguments: str, folder: Path) -> None:
    """Run a command of Quipu in a folder."""
    subprocess.run([SCRIPTS / "quipu", *arguments.split()], cwd=folder, check=True, capture_output=True)


def measure(name: str, flags: str) -> Path:
    """Fit rates to one rank of heat built with these flags, simulate it by them, and return the folder of its runs."""
    one, runs, rates = build(f"{name}-one", flags, "quipu-mpicc"), WORK / f"{name}.runs", WORK / f"{name}.rates"
    for size in SIZES:
        quipu(f"run --rep {REPETITIONS} --param n={size} -o one.runs -- ./heat {size} {STEPS}", one)
    quipu(f"rates one.runs -o {rates}", one)
    folder = build(name, flags, "quipu-smpicc")
    simulated = f"run --launcher smpi --compute effort --rates {rates} -o {runs}"
    for ranks in RANKS:
        for size in SIZES:
            quipu(f"{simulated} -n {ranks} --param p={ranks} --param n={size} -- ./heat {size} {STEPS}", folder)
    return runs


def refined() -> Path:
    """Refine what is instrumented of a call-heavy program; return the folder of the iterations."""
    folder = WORK / "refined"
    shutil.copytree(ROOT / "benchmarks" / "programs" / "refinement", folder)
    (folder / "cycle.toml").write_text(CYCLE, encoding="utf-8")
    quipu("refine cycle.toml", folder)
    return folder / "cycle"


def first_screen() -> None:
    """Take the pictures of the README, light and dark."""
    folder = WORK / "scaling"
    ignored = shutil.ignore_patterns("*.o", "*.d", ".compiler", "heat", "*.runs")
    shutil.copytree(ROOT / "examples" / "heat", folder, ignore=ignored)
    campaign = (folder / "scaling.toml").read_text(encoding="utf-8")
    named = campaign.replace(
        "MPICC=quipu-smpicc", f"MPICC=quipu-smpicc CFLAGS='-O2 -g -ffile-prefix-map={folder}=heat'"
    )
    (folder / "scaling.toml").write_text(named, encoding="utf-8")
    quipu("campaign --quiet scaling.toml", folder)
    light = written(f"{folder / 'scaling.runs'} --at {OF_README}")
    for theme, name in (("light", "report"), ("dark", "report-dark")):
        page = WORK / f"{theme}.html"
        page.write_text(light.replace("<html ", f'<html data-theme="{theme}" ', 1), encoding="utf-8")
        chromium(page, f"--screenshot={IMAGES / name}.png", f"--window-size={SCREEN}")


def main() -> None:
    """Measure, write the reports, take the pictures."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    first_screen()
    if sys.argv[1:] == ["first"]:
        return
    runs, before = measure("heat", "-O2 -g"), measure("before", "-O0 -g")
    report = written(f"{runs.name} --against {before.name} --kernels --at {TARGET}")
    for part in re.findall(r'<section class="card[^"]*" id="([\w-]+)"', report):
        name = part.removesuffix("-card")
        first = "document.getElementById('surface-extend').click();" if name == "surface" else ""
        take(report, part, IMAGES / f"report-{name}.png", first)
    take(written(str(refined())), "refinement", IMAGES / "report-refinement.png")


def written(arguments: str) -> str:
    """Return the report that these arguments ask for."""
    page = WORK / "report.html"
    quipu(f"report {arguments} -o {page}", WORK)
    return page.read_text(encoding="utf-8")


main()
