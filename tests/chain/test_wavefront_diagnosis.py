# SPDX-License-Identifier: Apache-2.0
"""The wavefront on simulated ranks: its waiting grows like p^(1/3), and is found on the call path that waits."""

from __future__ import annotations

import json
from pathlib import Path

from example_programs import copy_sources

from .conftest import quipu


def test_waiting_behind_the_wave_is_diagnosed(tmp_path: Path) -> None:
    folder = copy_sources("wavefront", tmp_path)
    file = folder / "simulated.toml"
    wanted, fewer = "n = [8, 12, 16]", "n = [12]"
    text = file.read_text()
    assert wanted in text
    file.write_text(text.replace(wanted, fewer))
    quipu("campaign", file.name, cwd=folder)

    found = json.loads(quipu("diagnose", "simulated.runs", "--at", "p=65536,n=12", "--json", cwd=folder).stdout)
    (finding,) = (own for own in found["findings"] if own["label"].endswith("->MPI_Recv"))
    assert "receive_upwind" in finding["label"]
    assert (finding["cause"], finding["parameter"], finding["growth"]) == ("waiting", "p", "p^(1/3)")
    assert finding["lost"] > 0.8 * finding["predicted"]

    shown = quipu("diagnose", "simulated.runs", "-o", "waits.html", cwd=folder)
    assert "what will hurt at p=5488, n=12" in shown.stdout
    assert "p^(1/3)" in shown.stdout
    page = (folder / "waits.html").read_text(encoding="utf-8")
    assert "receive_upwind(std::array&lt;int, 3ul&gt; const&amp;)-&gt;MPI_Recv" in page
    assert "<script" not in page
