# SPDX-License-Identifier: Apache-2.0
"""Measure size, speed and accessibility of the report, and the start time of commands.

The last line is one JSON object:

- `bytes_500`: size of a report of 500 call paths.
- `interaction_ms_5000`: slowest interaction with a report of 5,000 call paths, until the page is drawn up to the first
  section below the call path.
- `longest_task_ms_5000`: longest time in which the page does not respond, also while scrolling.
- `axe_violations`: violations of WCAG 2.1 AA that axe-core finds, in both themes.
- `startup_ms`: for each command, the fastest of several `--help`.
- `interactions`: milliseconds of each interaction.
- `settled`: milliseconds until all visible parts are complete, including the interval of a curve over thousands of call
  paths.
"""

from __future__ import annotations

import argparse
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from npm_packages import installed
from quipu.agent.cli.main import COMMANDS
from quipu.report.html import html_report
from report_opening import planted

_COMMANDS = ("", *COMMANDS, *(f"tensor {name}" for name in ("fit", "predict", "tune", "explain")))
_INTERACTIONS = """
const times = {};
const settled = {};
const tasks = [];
new PerformanceObserver((list) => tasks.push(...list.getEntries().map((one) => one.duration)))
  .observe({ type: 'longtask', buffered: true });
const longest = () => Math.round(Math.max(0, ...tasks.splice(0)));
const pause = (least) => new Promise((done) => setTimeout(done, least));
const select = (id, value) => {
  const node = document.getElementById(id);
  node.value = value;
  node.dispatchEvent(new Event(node.tagName === 'SELECT' ? 'change' : 'input'));
};
const timed = async (name, work) => {
  const began = performance.now();
  work();
  document.body.offsetHeight;
  times[name] = Math.round(performance.now() - began);
  while (document.querySelector('[aria-busy="true"]')) await pause(1);
  settled[name] = Math.round(performance.now() - began);
  await pause(500);
};
const use = async () => {
  const rows = () => document.querySelectorAll('#tree .row');
  const opening = Math.round(performance.now());
  while (document.querySelector('[aria-busy="true"]')) await pause(1);
  await pause(1500);
  const opening_task = longest();
  await timed('path', () => rows()[2].click());
  await timed('whole program', () => rows()[0].click());
  await timed('metric', () => select('metric', 'blocks'));
  await timed('metric back', () => select('metric', 'time'));
  await timed('scope', () => select('scope', 'exclusive'));
  await timed('scope back', () => select('scope', 'inclusive'));
  await timed('configuration', () => select('configuration', '3'));
  const one = document.querySelector('#target input');
  one.scrollIntoView();
  await pause(500);
  await timed('target', () => {
    one.value = '4096';
    one.dispatchEvent(new Event('input'));
  });
  scrollTo(0, 0);
  await pause(500);
  await timed('axis', () => select('axis', '1'));
  await timed('search', () => select('search', 'step12'));
  await timed('search back', () => select('search', ''));
  document.getElementById('flame').scrollIntoView();
  await pause(500);
  await timed('flame', () => select('flame-kind', 'flame'));
  await timed('flame at target', () => select('flame-values', 'target'));
  const frame = document.querySelectorAll('#flame-graph .frame')[1];
  await timed('zoom', () => frame.dispatchEvent(new MouseEvent('dblclick', { bubbles: true })));
  await timed('fold', () => document.getElementById('collapse').click());
  await timed('unfold', () => document.getElementById('expand').click());
  document.getElementById('accuracy').scrollIntoView();
  await pause(500);
  await timed('metric below', () => select('metric', 'blocks'));
  give({ opening, opening_task, task: longest(), times, settled });
};
setTimeout(use);
"""
_AXE = """
window.dispatchEvent(new Event('beforeprint'));
axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }).then((found) => {
  give(found.violations.map((one) =>
    [one.id, one.help, one.nodes.length, one.nodes[0].html.slice(0, 200), one.nodes[0].failureSummary]));
});
"""


class _Served(BaseHTTPRequestHandler):
    """Serves one page, and receives the results of its script."""

    page = b""
    found: queue.Queue[bytes] = queue.Queue()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.page)

    def do_POST(self) -> None:
        self.found.put(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


def found_in(page: str, script: str, folder: Path, browser: str, theme: str = "light") -> object:
    """Return the result that a script at the end of the page passes to `give`."""
    start = page.index("<meta http-equiv")
    page = page[:start] + page[page.index(">", start) + 1 :]
    page = page.replace('<html lang="en">', f'<html lang="en" data-theme="{theme}">', 1)
    give = "const give = (found) => fetch('/found', { method: 'POST', body: JSON.stringify(found) });"
    _Served.page = page.replace("</body>", f"<script>{give}{script}</script></body>").encode()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Served) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--window-size=1400,900"]
        words = [browser, *flags, f"--user-data-dir={folder / 'profile'}", f"http://127.0.0.1:{server.server_port}/"]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            try:
                return json.loads(_Served.found.get(timeout=200))
            finally:
                running.terminate()
                server.shutdown()


def violations(page: str, folder: Path, browser: str) -> list[list[object]]:
    """Return the findings of axe-core in both themes: rule, help, number, first element, advice."""
    script = (installed() / "axe-core" / "axe.min.js").read_text(encoding="utf-8").replace("</script", "<\\/script")
    found: list[list[object]] = []
    for theme in ("light", "dark"):
        entries = found_in(page, script + _AXE, folder, browser, theme)
        assert isinstance(entries, list)
        found += [[theme, *entry] for entry in entries]
    return found


def startup(repetitions: int) -> dict[str, int]:
    """Return the fastest time of `quipu COMMAND --help` for each command, in ms."""
    program = Path(sys.executable).with_name("quipu")
    result = {}
    for command in _COMMANDS:
        times = []
        for _ in range(repetitions):
            began = time.perf_counter()
            subprocess.run([program, *command.split(), "--help"], capture_output=True, check=True)
            times.append(time.perf_counter() - began)
        result[command or "quipu"] = round(1000 * min(times))
    return result


def main() -> None:
    """Write the pages, use them, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--browser", default="chromium")
    parser.add_argument("--repetitions", type=int, default=5, help="of each start of a command")
    chosen = parser.parse_args()
    pages = {}
    for paths in (500, 5000):
        experiment, models = planted(paths)
        pages[paths] = html_report(experiment, models, target={"p": 1024})
    with tempfile.TemporaryDirectory() as folder:
        found = found_in(pages[5000], _INTERACTIONS, Path(folder), chosen.browser)
        wrong = violations(pages[500], Path(folder), chosen.browser)
    assert isinstance(found, dict)
    for entry in wrong:
        print(*entry, sep=" | ", file=sys.stderr)
    figures = {
        "bytes_500": len(pages[500].encode()),
        "interaction_ms_5000": max(found["times"].values()),
        "longest_task_ms_5000": found["task"],
        "axe_violations": len(wrong),
        "startup_ms": startup(chosen.repetitions),
        "opening_ms_5000": found["opening"],
        "opening_task_ms_5000": found["opening_task"],
        "interactions": found["times"],
        "settled": found["settled"],
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
