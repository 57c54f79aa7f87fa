"""make screenshots: pictures of every part of a report, for docs/images.

Simulates heat with up to 64 ranks, and the same program built without optimization as the earlier state; then takes a
picture of each part of the report with headless Chromium, and of the iterations of a refinement.
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
RANKS, SIZES, STEPS = (1, 8, 27, 64), (16, 24, 32), "4 2"
WIDTH, MOST = 1000, 1000  # pixels; longer parts are cut
TARGET = "p=1024,n=48"
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

# Only one part is left, drawn; its height is the answer.
_ALONE = """
window.dispatchEvent(new Event('beforeprint'));
for (const one of document.querySelectorAll('body > header, .controls, main > section, footer'))
  if (one.id !== PART) one.style.display = 'none';
document.querySelector('main').style.display = 'block';
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
    chromium(page, f"--screenshot={image}", f"--window-size={WIDTH},{min(MOST, int(found[1]))}")
    print(f"wrote {image.relative_to(ROOT)}")


def measure(name: str, flags: str) -> Path:
    """Build heat for the simulator with these flags, run it, and return the folder of its runs."""
    folder, runs = WORK / name, WORK / f"{name}.runs"
    shutil.copytree(
        ROOT / "examples" / "heat", folder, ignore=shutil.ignore_patterns("*.o", "*.d", ".compiler", "heat")
    )
    subprocess.run(["make", "--silent", f"CC={SCRIPTS / 'quipu-smpicc'}", f"CFLAGS={flags}"], cwd=folder, check=True)
    for ranks in RANKS:
        for size in SIZES:
            command = (
                f"run --launcher smpi -n {ranks} --param p={ranks} --param n={size} -o {runs} -- ./heat {size} {STEPS}"
            )
            subprocess.run([SCRIPTS / "quipu", *command.split()], cwd=folder, check=True, capture_output=True)
    return runs


def refined() -> Path:
    """Refine what is instrumented of a call-heavy program; return the folder of the iterations."""
    folder = WORK / "refined"
    shutil.copytree(ROOT / "benchmarks" / "programs" / "refinement", folder)
    (folder / "cycle.toml").write_text(CYCLE, encoding="utf-8")
    subprocess.run([SCRIPTS / "quipu", "refine", "cycle.toml"], cwd=folder, check=True, capture_output=True)
    return folder / "cycle"


def main() -> None:
    """Measure, write the reports, take the pictures."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    runs, before = measure("heat", "-O2 -g"), measure("before", "-O0 -g")
    report = written(f"{runs} --against {before} --kernels --at {TARGET}")
    for part in re.findall(r'<section class="card[^"]*" id="([\w-]+)"', report):
        name = part.removesuffix("-card")
        first = "document.getElementById('surface-extend').click();" if name == "surface" else ""
        take(report, part, IMAGES / f"report-{name}.png", first)
    take(written(str(refined())), "refinement", IMAGES / "report-refinement.png")


def written(arguments: str) -> str:
    """Return the report that these arguments ask for."""
    page = WORK / "report.html"
    subprocess.run([SCRIPTS / "quipu", "report", *arguments.split(), "-o", page], check=True)
    return page.read_text(encoding="utf-8")


main()
