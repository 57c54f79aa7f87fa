# SPDX-License-Identifier: Apache-2.0
"""Evaluate counts in the formats of the kernel: recorded groups, multiplexed groups, and mapped pages.

A small program passes recorded bytes to the functions of the runtime and prints the results.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[2] / "agent/runtime"
SOURCE = """#include "perf_page.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
using namespace quipu;
int main(int, char **words) {
    static unsigned char bytes[8192];
    const size_t size = fread(bytes, 1, sizeof bytes, stdin);
    PerfTimes times = {};
    if (!strcmp(words[1], "group")) {
        uint64_t values[32], buffer[64];
        memcpy(buffer, bytes, sizeof buffer);
        const uint32_t events = (uint32_t)atoi(words[2]);
        if (!read_group(buffer, size, events, &times, values))
            return puts("refused"), 0;
        printf("%llu %llu", (unsigned long long)times.enabled, (unsigned long long)times.running);
        for (uint32_t i = 0; i < events; i++)
            printf(" %llu", (unsigned long long)values[i]);
    } else if (!strcmp(words[1], "scale")) {
        const PerfTimes passed = {strtoull(words[3], 0, 0), strtoull(words[4], 0, 0)};
        printf("%llu", (unsigned long long)scaled(strtoull(words[2], 0, 0), passed));
    } else {
        uint64_t value = 0;
        const uint64_t raw = strtoull(words[2], 0, 0), now = strtoull(words[3], 0, 0);
        auto *page = reinterpret_cast<perf_event_mmap_page *>(bytes);
        int readings = 0;
        const bool known = read_page(page, [&](uint32_t) { if (readings++ == 0 && words[4]) page->lock++; return raw; },
                                     [&] { return now; }, &times, &value);
        if (!known)
            return puts("refused"), 0;
        printf("%llu %llu ", (unsigned long long)times.enabled, (unsigned long long)times.running);
        printf("%lld %d", (long long)value, readings);
    }
    puts("");
}
"""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counting")
    (folder / "reader.cpp").write_text(SOURCE)
    program = folder / "reader"
    command = ["clang++-19", "-std=c++17", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover", f"-I{RUNTIME}"]
    subprocess.run([*command, folder / "reader.cpp", "-o", program], check=True)
    return program


def answer(reader: Path, content: bytes, *words: str) -> list[str]:
    done = subprocess.run([reader, *words], input=content, capture_output=True, check=True)
    return done.stdout.decode().split()


GROUPS = {
    # nr, time_enabled, time_running, values: what read() of a leader gave
    "skylake, four events": (4, 1_000_221, 1_000_221, 3_900_112, 7_118_004, 2_001_333, 41_877),
    "neoverse n1, six events": (6, 998_310, 998_310, 2_499_001, 4_100_222, 1_200_341, 30_112, 9_001, 811),
    "zen 3, multiplexed": (3, 4_000_900, 1_333_511, 811_002, 20_145, 5_512),
    "not scheduled yet": (2, 1_000_000, 0, 0, 0),
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups_of_several_processors(reader: Path, name: str) -> None:
    numbers = GROUPS[name]
    content = struct.pack(f"<{len(numbers)}Q", *numbers)
    assert answer(reader, content, "group", str(numbers[0])) == [str(number) for number in numbers[1:]]
    assert answer(reader, content[:-8], "group", str(numbers[0])) == ["refused"]
    assert answer(reader, content, "group", str(numbers[0] + 1)) == ["refused"]


@pytest.mark.parametrize(
    ("count", "enabled", "running", "expected"),
    [
        (1000, 4_000_000, 1_000_000, 4000),  # a fourth of the time on the processor
        (811_002, 4_000_900, 1_333_511, 2_433_228),
        (1000, 1_000_000, 1_000_000, 1000),
        (7, 1_000_000, 0, 7),
        (0, 1_000_000, 10, 0),
    ],
)
def test_counts_of_a_part_of_the_time_are_scaled(
    reader: Path, count: int, enabled: int, running: int, expected: int
) -> None:
    (found,) = answer(reader, b"", "scale", str(count), str(enabled), str(running))
    assert abs(int(found) - expected) <= 1


def page(index: int, offset: int, width: int, *, rdpmc: bool = True, time: bool = True) -> bytes:
    """Return the begin of struct perf_event_mmap_page (linux/perf_event.h)."""
    capabilities = (rdpmc << 2) | (time << 3)
    head = struct.pack("<IIIIqQQQ", 0, 0, 8, index, offset, 5_000_000, 4_000_000, capabilities)
    # pmc_width, time_shift, time_mult, time_offset: 2 GHz, half a nanosecond per tick
    return head + struct.pack("<HHIQ", width, 31, 1 << 30, 1000) + bytes(4096 - 64)


@pytest.mark.parametrize(
    ("width", "raw", "offset", "expected"),
    [
        (48, 1234, 10_000, 11_234),  # Intel, AMD
        (48, (1 << 48) - 100, 10_000, 9_900),  # begins below 0, so that it overflows in time
        (40, (1 << 40) - 1, 5, 4),
        (64, 77, 0, 77),  # Arm
    ],
)
def test_counters_are_read_in_user_space(reader: Path, width: int, raw: int, offset: int, expected: int) -> None:
    enabled, running, value, readings = answer(reader, page(1, offset, width), "page", str(raw), "2000000")
    assert int(value) == expected
    assert (int(enabled), int(running)) == (5_000_000 + 1_001_000, 4_000_000 + 1_001_000)
    assert readings == "1"


def test_a_page_that_the_kernel_changes_is_read_again(reader: Path) -> None:
    found = answer(reader, page(1, 10, 48), "page", "5", "0", "change")
    assert found[2:] == ["15", "2"]


def test_pages_without_a_counter_are_left_to_read(reader: Path) -> None:
    assert answer(reader, page(0, 10, 48), "page", "5", "0") == ["refused"]  # another event is on the processor
    assert answer(reader, page(1, 10, 48, rdpmc=False), "page", "5", "0") == ["refused"]
    assert answer(reader, page(1, 10, 48, time=False), "page", "5", "0") == ["refused"]  # how long it ran is not known
