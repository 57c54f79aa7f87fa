# SPDX-License-Identifier: Apache-2.0
"""The program of the node agent: `python -I -S start_node.py RAW_DIR`.

It needs no installed packages (-S) and not the environment of the measured program (-I). The files of this folder are
imported as a separate package, without the rest of Quipu.
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
