# SPDX-License-Identifier: Apache-2.0
"""The program of the node agent: `python -I -S start_node.py RAW_DIR`.

It needs nothing that is installed beside Python, so Python need not look for that (-S), nor at the environment of the
measured program (-I). The files of this folder are a package of their own here, without the rest of Quipu.
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
