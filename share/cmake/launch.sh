#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# CMake runs: launch.sh WRAPPER COMPILER ARGUMENT…; the wrapper takes the place of the compiler.
wrapper=$1
shift 2
exec "$wrapper" "$@"
