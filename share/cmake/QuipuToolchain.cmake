# SPDX-License-Identifier: Apache-2.0
# cmake -DCMAKE_TOOLCHAIN_FILE=<prefix>/lib/cmake/Quipu/QuipuToolchain.cmake: Quipu's wrappers compile everything.
# A compiler that was chosen on the command line stays.
get_filename_component(_quipu_bin "${CMAKE_CURRENT_LIST_DIR}/../../../bin" ABSOLUTE)
foreach(_quipu_pair "C cc" "CXX c++" "Fortran fc")
  string(REPLACE " " ";" _quipu_pair "${_quipu_pair}")
  list(GET _quipu_pair 0 _quipu_language)
  list(GET _quipu_pair 1 _quipu_name)
  if(NOT CMAKE_${_quipu_language}_COMPILER)
    set(CMAKE_${_quipu_language}_COMPILER "${_quipu_bin}/quipu-${_quipu_name}")
  endif()
endforeach()
