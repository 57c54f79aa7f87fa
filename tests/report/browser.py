"""Headless Chromium: the document of a page after its scripts ran, and what they wrote to the console."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=4000",
    "--enable-logging=stderr",
    "--dump-dom",
)


def document(page: Path, scratch: Path, width: int = 1400) -> tuple[str, str]:
    """Return the document of a page as HTML, and the lines of its console."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    assert browser is not None, "chromium is missing: apt-get install chromium"
    done = subprocess.run(
        [browser, *_FLAGS, f"--user-data-dir={scratch}", f"--window-size={width},900", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def instrumented(page: str, script: str) -> str:
    """Return a page with a further script at its end, and without the policy that forbids it."""
    start = page.index("<meta http-equiv")
    page = page[:start] + page[page.index(">", start) + 1 :]
    return page.replace("</body>", f"<script>{script}</script></body>")
