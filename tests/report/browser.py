# SPDX-License-Identifier: Apache-2.0
"""Run a page in headless Chromium, and return its document and its console output."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from patience import PATIENCE
from peers import require

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=20000",
    "--enable-logging=stderr",
    "--dump-dom",
)

# Frames run in real time and timers in virtual time, so conditions must not depend on the visible part of the page.
# Printing draws all parts.
_WAITING = """
window.until = (holds, then) => {
  const look = () => (holds() ? then() : setTimeout(look, 10));
  look();
};
window.whenDrawn = (then) => window.addEventListener("load", () => {
  for (const one of ["beforeprint", "afterprint"]) window.dispatchEvent(new Event(one));
  then();
});
"""


def document(page: Path, scratch: Path, width: int = 1400) -> tuple[str, str]:
    """Return the document of a page as HTML, and the lines of its console."""
    require("chromium")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    assert browser is not None
    done = subprocess.run(
        [browser, *_FLAGS, f"--user-data-dir={scratch}", f"--window-size={width},900", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def instrumented(page: str, script: str) -> str:
    """Return a page with a further script at its end, and without the policy that forbids it.

    The script can call `until(holds, then)`, which waits for a condition, and `whenDrawn(then)`, which lets
    the page draw all sections when it is loaded.
    """
    start = page.index("<meta http-equiv")
    page = page[:start] + page[page.index(">", start) + 1 :]
    return page.replace("</body>", f"<script>{_WAITING}{script}</script></body>")
