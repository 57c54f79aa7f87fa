# SPDX-License-Identifier: Apache-2.0
"""Fuzz every reader of files that may come from strangers, guided by coverage.

    pip install 'quipu[fuzz]'
    make bench-fuzz_readers                                    # all, one minute each
    make bench-fuzz_readers ARGS='--seconds 600 profile'       # one reader, ten minutes

Readers in Python run under Atheris, which instruments the code of Quipu, but no libraries. The reader of filter files
in the runtime runs under libFuzzer with AddressSanitizer and UBSan. A reader may only raise FormatError. It may take at
most 30 s and 2 GiB of memory. Inputs that fail are kept in build/fuzz-READER-*.

The last line is one JSON object: for each reader `runs`, `seconds`, `failures` (bound: 0).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNTIME = ROOT / "agent" / "runtime"
NATIVE = "runtime-filter"
NATIVE_ENTRY = """
#include "filter.h"
extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    quipu::Filter filter;
    quipu::FilterError error;
    if (quipu::parse_filter(reinterpret_cast<const char *>(data), size, filter, error))
        filter.includes("a/test/b.c", "_Z3barv", "bar()");
    filter.clear();
    return 0;
}
"""
LIMITS = ("-timeout=30", "-rss_limit_mb=2048", "-max_len=100000", "-verbosity=1")


def fuzz_python(name: str, options: list[str]) -> None:
    """Fuzz one reader in this process; does not return."""
    import atheris

    with atheris.instrument_imports(include=["quipu"]):
        from fuzz_targets import ALLOWED, TARGETS

    corpus = Path(tempfile.mkdtemp(prefix="corpus-", dir=os.environ["QUIPU_FUZZ_SCRATCH"]))
    scratch = Path(tempfile.mkdtemp(prefix="files-", dir=os.environ["QUIPU_FUZZ_SCRATCH"]))
    target = TARGETS[name](scratch)
    for number, seed in enumerate(target.seeds()):
        target.read(seed)
        (corpus / f"seed-{number}").write_bytes(seed)

    def one(data: bytes) -> None:
        try:
            target.read(data)
        except ALLOWED:
            return

    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()


def native_command(scratch: Path) -> list[str]:
    """Build the fuzzer of the runtime's filter reader and return its command."""
    from fuzz_targets import Filters

    source, program, corpus = scratch / "fuzz.cpp", scratch / "fuzz", scratch / "corpus"
    source.write_text(NATIVE_ENTRY)
    corpus.mkdir()
    for number, text in enumerate(Filters.TEXTS):
        (corpus / f"seed-{number}").write_text(text)
    compiler = os.environ.get("QUIPU_CXX", "clang++-19")
    checks = "-fsanitize=fuzzer,address,undefined"
    options = ["-g", "-O1", "-std=c++17", checks, "-fno-sanitize-recover=all", f"-I{RUNTIME}", "-D_GNU_SOURCE"]
    subprocess.run([compiler, *options, source, RUNTIME / "filter.cpp", "-o", program], check=True)
    return [str(program), str(corpus)]


def fuzz(name: str, seconds: int) -> dict[str, float]:
    """Fuzz one reader in a separate process with low priority."""
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="quipu-fuzz-") as scratch:
        environment = {**os.environ, "QUIPU_FUZZ_SCRATCH": scratch}
        options = [f"-max_total_time={seconds}", f"-artifact_prefix={build}/fuzz-{name}-", *LIMITS]
        if name == NATIVE:
            command = [*native_command(Path(scratch)), *options]
        else:
            command = [sys.executable, __file__, "--in-process", name, "--", *options]
        began = time.monotonic()
        done = subprocess.run(["nice", "-n", "19", *command], env=environment, stderr=subprocess.PIPE, check=False)
        took = time.monotonic() - began
    output = done.stderr.decode("utf-8", "replace")
    runs = re.findall(r"^(?:Done (\d+) runs|#(\d+)\t)", output, re.MULTILINE)
    failed = done.returncode != 0
    if failed:
        print("\n".join(output.splitlines()[-40:]), flush=True)
    count = int(next(filter(None, runs[-1]))) if runs else 0
    print(f"{name}: {count} runs in {took:.0f} s{', FAILED' if failed else ''}", flush=True)
    return {"runs": count, "seconds": round(took), "failures": int(failed)}


def main() -> None:
    if sys.argv[1:2] == ["--in-process"]:
        fuzz_python(sys.argv[2], sys.argv[4:])
        return
    from fuzz_targets import TARGETS

    names = [*TARGETS, NATIVE]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"of: {', '.join(names)} (default: all)")
    parser.add_argument("--seconds", type=int, default=60, help="for each reader")
    arguments = parser.parse_args()
    unknown = set(arguments.readers) - set(names)
    if unknown:
        parser.error(f"unknown reader {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
    result = {name: fuzz(name, arguments.seconds) for name in arguments.readers or names}
    print(json.dumps(result))
    sys.exit(any(entry["failures"] for entry in result.values()))


if __name__ == "__main__":
    main()
