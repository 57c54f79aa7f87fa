# SPDX-License-Identifier: Apache-2.0
"""Configure lit for the tests of the IR that the pass writes. tests/native/test_pass.py runs them; by hand:

lit -D plugin=PATH/QuipuPass-19.so -D llvm=/usr/lib/llvm-19/bin llvm_pass/tests
"""

import os

import lit.formats

config.name = "quipu pass"
config.test_format = lit.formats.ShTest()
config.suffixes = [".ll"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = lit_config.params.get("output", os.path.join(config.test_source_root, "Output"))
tools = lit_config.params["llvm"]
config.substitutions += [
    ("%quipu", f"{tools}/opt -load-pass-plugin={lit_config.params['plugin']} -passes=quipu,instsimplify"),
    ("%plain", f"{tools}/opt -load-pass-plugin={lit_config.params['plugin']}"),
    ("%check", f"{tools}/FileCheck"),
    ("%not", f"{tools}/not"),
]
config.environment["PATH"] = f"{tools}:{os.environ['PATH']}"
