# SPDX-License-Identifier: Apache-2.0
"""Sampled counter sources: events of processors, permissions of the kernel, and archives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from quipu.agent.counters import kernel_events, papi
from quipu.agent.counters.choose import choose
from quipu.agent.counters.libpfm import Encoding, encode
from quipu.agent.counters.papi import Papi
from quipu.agent.counters.perf import Perf
from quipu.agent.counters.processors import PROCESSORS, processor_of, terms_of
from quipu.agent.counters.sampling import described, metric_of, request
from quipu.agent.counters.source import Wanted
from quipu.modeling.counters import COUNTERS, LEVELS
from quipu.modeling.errors import EnvironmentProblem, UsageError
from quipu.report.sampling import counter_facts, function_lines

INTEL = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Xeon\n"
AMD = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n"
ARM = "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n"


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [(INTEL, "Skylake"), (AMD, "Zen"), (ARM, "Neoverse"), ("model : x", ""), (INTEL + "", "Skylake")],
)
def test_processors_are_known_by_their_description(cpuinfo: str, name: str) -> None:
    found = processor_of(cpuinfo)
    assert (found.name if found else "").startswith(name)


def test_all_processors_count_all_levels() -> None:
    for processor in PROCESSORS:
        assert set(LEVELS.values()) <= set(processor.counters), processor.name
        assert set(processor.counters) <= set(COUNTERS)
        assert processor.source
    assert terms_of("cpu_cycles", None) == (Encoding(0, 0),)
    assert terms_of("l1_hits", None) == ()


@pytest.mark.parametrize(
    ("pmu", "row", "numbers"),
    [
        ("skx", 1, {"l1_hits": "4:0x1d1", "memory_accesses": "4:0x20d1", "stall_cycles": "4:0x140014a3"}),
        ("icx", 1, {"l2_hits": "4:0x2d1", "llc_hits": "4:0x4d1"}),
        ("bdw_ep", 0, {"l1_hits": "4:0x1d1", "stall_cycles": "4:0x60006a3"}),
        ("spr", 2, {"memory_accesses": "4:0x20d1", "stall_cycles": "4:0x50021a6"}),
    ],
)
def test_names_of_events_are_those_of_the_vendor(pmu: str, row: int, numbers: dict[str, str]) -> None:
    script = (
        "import sys\nfrom quipu.agent.counters.libpfm import encode\n"
        "for found in map(encode, sys.argv[1:]):\n    print(found if isinstance(found, str) else found.text())"
    )
    names = [str(PROCESSORS[row].counters[counter][0]) for counter in numbers]
    environment = {"LIBPFM_FORCE_PMU": pmu}
    done = subprocess.run(
        [sys.executable, "-c", script, *names], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == list(numbers.values())


def test_an_event_that_nobody_knows() -> None:
    assert isinstance(encode("NO_SUCH_EVENT.AT_ALL"), str)
    assert isinstance(encode("\udcff"), str)  # a byte of the command line that is no UTF-8
    with pytest.raises(UsageError, match="NO_SUCH_EVENT"):
        choose("NO_SUCH_EVENT.AT_ALL")


def test_what_the_runtime_is_given() -> None:
    arm = Path(__file__).parent / "none"
    assert Perf(arm).variables(Wanted(("cpu_cycles", "page_faults", "samples", "context_switches"))) == {
        "QUIPU_COUNTERS": "cpu_cycles=0:0x0;page_faults=1:0x2;context_switches=1:0x3k"
    }
    assert request({"a": ["4:0x1", "-", "4:0x2", "5:0x3"]}) == "a=4:0x1+-4:0x2+5:0x3"
    assert metric_of("MEM_LOAD_RETIRED.L1_HIT").name == "mem_load_retired_l1_hit"


def test_counters_of_arm_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(ARM)
    given = Perf(tmp_path / "cpuinfo").variables(Wanted(("l1_hits", "memory_accesses")))
    assert given == {"QUIPU_COUNTERS": "l1_hits=4:0x4+-4:0x3;memory_accesses=4:0x37"}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (13, "perf_event_paranoid is"),
        (2, "does not offer this hardware counter"),
        (38, "no perf events"),
        (22, "Invalid argument"),
        (0, ""),
    ],
)
def test_a_counter_that_the_kernel_refuses_is_named(monkeypatch: pytest.MonkeyPatch, code: int, message: str) -> None:
    monkeypatch.setattr(kernel_events, "_open", lambda event: code)
    problem = Perf().unavailable(("cpu_cycles",))
    assert message in problem
    assert problem.startswith("cpu_cycles cannot be counted") == bool(message)


def test_perf_comes_first_where_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_events, "_open", lambda event: 0)
    source, wanted = choose("cycles,instructions")
    assert (source.name, wanted.names) == ("perf", ("cpu_cycles", "cpu_instructions"))
    monkeypatch.setattr(kernel_events, "_open", lambda event: 2)
    monkeypatch.setattr(papi, "_refused", lambda event: "")
    assert choose("cycles,instructions")[0].name == "papi"
    monkeypatch.setattr(papi, "_refused", lambda event: "PAPI is not installed: apt-get install libpapi7.0")
    with pytest.raises(EnvironmentProblem, match="apt-get install libpapi"):
        choose("papi")
    with pytest.raises(
        EnvironmentProblem, match=r"perf: cpu_cycles cannot be counted: .*does not offer this hardware counter"
    ):
        choose("perf")


def test_papi_takes_presets_and_native_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(papi, "_refused", lambda event: "")
    given = Papi().variables(Wanted(("l1_hits", "perf::PAGE-FAULTS")))
    assert given == {"QUIPU_COUNTERS": "l1_hits=@PAPI_LST_INS+-@PAPI_L1_DCM;perf_page_faults=@perf::PAGE-FAULTS"}


@pytest.mark.parametrize(
    ("first", "second"), [("PAPI_TOT:INS", "PAPI_TOT_INS"), ("PAPI_" + 40 * "A", "PAPI_" + 41 * "A")]
)
def test_two_events_cannot_be_the_same_metric(monkeypatch: pytest.MonkeyPatch, first: str, second: str) -> None:
    monkeypatch.setattr(papi, "_refused", lambda event: "")
    with pytest.raises(UsageError, match=f"{first} and {second} would both be the metric papi_"):
        choose(f"papi,{first},{second}")


def test_software_events_count_here() -> None:
    assert Perf().unavailable(("task_clock", "page_faults")) == ""


def test_what_the_archive_says_of_samples() -> None:
    process = {
        "sample_period_ns": "1000000",
        "samples_lost": "2",
        "samples_late": "5",
        "sampled_by": "perf",
        "counter_times": "cpu_cycles:50/200 l1_hits:90/100 ",
    }
    facts, problems = described([process, {**process, "counter_times": "cpu_cycles:100/200 "}, {}])
    assert facts["samples_per_second"] == 1000
    assert facts["samples_lost"] == 4
    assert facts["counted_share"] == {"cpu_cycles": 0.25, "l1_hits": 0.9}
    assert problems == ["4 samples belong to no call path"]
    ((_, text),) = counter_facts({"source": "perf", **facts})
    assert "25" in text and "4 lost" in text
    assert counter_facts({"source": "effort"}) == []
    assert counter_facts({"samples_per_second": "many"}) == []


def test_functions_in_words() -> None:
    functions = [{"function": "dgemm", "library": "/lib/libblas.so", "samples": 3}, {"function": "", "samples": 1}, 7]
    ((_, text),) = function_lines({"functions": functions})
    assert text.startswith("75") and "dgemm in libblas.so" in text
    assert function_lines({"functions": "x"}) == []
