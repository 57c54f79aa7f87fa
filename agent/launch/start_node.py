# SPDX-License-Identifier: Apache-2.0
"""Start the node agent: `python -I -S start_node.py RAW_DIR`.

The agent uses no installed packages (-S), and ignores the environment of the measured program (-I). The package quipu
is therefore not available. This script imports the files of this folder as a separate package, quipu_node.
"""

import os
import sys
from types import ModuleType

_PACKAGE = "quipu_node"
package = ModuleType(_PACKAGE)
package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules[_PACKAGE] = package

from quipu_node.node import main  # type: ignore[import-not-found]  # noqa: E402

sys.exit(main(sys.argv[1:]))
