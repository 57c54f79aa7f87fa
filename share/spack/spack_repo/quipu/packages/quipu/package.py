# SPDX-License-Identifier: Apache-2.0
"""Quipu for Spack 1.0 and newer; bounds are those of pyproject.toml, which tests/share/test_recipes.py compares."""

from pathlib import Path

from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class Quipu(PythonPackage):
    """How parallel programs scale, and why: from a compiler wrapper to a scaling model."""

    git = str(Path(__file__).resolve().parents[6])  # the repository that this file is in

    license("Apache-2.0")

    version("main", branch="main")

    variant("notebook", default=False, description="Tables of pandas")
    variant("plots", default=False, description="Plots of matplotlib and plotly")
    variant("cube", default=False, description="Read profiles of Score-P")
    variant("schedulers", default=False, description="Campaigns as jobs of a batch system")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("py-scikit-build-core@1.0:", type="build")
    # The pass is a plugin of this LLVM, and the wrappers call its compilers.
    depends_on("llvm@19 +clang +flang", type=("build", "link", "run"))
    depends_on("mpi", type="run")

    with default_args(type=("build", "run")):
        depends_on("python@3.11:")
        depends_on("py-numpy@1.26:")
        depends_on("py-scipy@1.11:")
        depends_on("py-pyarrow@15:")
        depends_on("py-psutil@5.9:")
        depends_on("py-typer@0.12:0.28")
        depends_on("py-rich@13.7:")
        depends_on("py-jinja2@3.1:")
        depends_on("py-markupsafe@2.1:")
        depends_on("py-msgspec@0.18:")
        depends_on("py-scikit-learn@1.6:")
        depends_on("py-threadpoolctl@3.1:")
        depends_on("py-pandas@2.0:", when="+notebook")
        depends_on("py-matplotlib@3.8:", when="+plots")
        depends_on("py-plotly@5.20:", when="+plots")
        depends_on("py-pycubexr@2.1:2", when="+cube")
        depends_on("py-psij-python@0.9.9:", when="+schedulers")

    def config_settings(self, spec, prefix):
        """Let the build find the LLVM of Spack, whatever else the machine has."""
        llvm = spec["llvm"]
        return {
            "cmake.define.LLVM_DIR": llvm.prefix.lib.cmake.llvm,
            "cmake.define.QUIPU_LLVM_VERSION": str(llvm.version.up_to(1)),
        }

    def setup_run_environment(self, env):
        """Let CMake find quipu_instrument."""
        env.prepend_path("CMAKE_PREFIX_PATH", self.prefix)
