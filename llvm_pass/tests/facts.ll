; SPDX-License-Identifier: Apache-2.0
; The pass writes one line of facts per function into a compressed section that is not loaded at run time.
; RUN: %quipu -S %s | %check %s

; CHECK: module asm ".pushsection .quipu.facts,\22\22,@progbits"
; CHECK: module asm ".ascii \22QPS1\22"
; CHECK: module asm ".popsection"

declare void @other()

define void @_Z4workv(ptr %f) {
  call void @other()
  call void %f()
  ret void
}

; CHECK-NOT: call ptr @quipu_enter(ptr @quipu.region.empty
define void @empty() naked {
  unreachable
}
