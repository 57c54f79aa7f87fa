; SPDX-License-Identifier: Apache-2.0
; Code for shared libraries has no slots in thread-local memory. It finds the link to the region in a table of the
; runtime.
; RUN: %quipu -S %s | %check %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-NOT: @quipu.slots
; CHECK-LABEL: define i32 @accessor(
; CHECK: threadlocal.address.p0(ptr @quipu_current)
; CHECK: %quipu.thread = load ptr
; CHECK: quipu.known:
; CHECK: call preserve_allcc ptr @quipu_count_missed{{(_here)?}}(ptr {{(nest )?}}@quipu.region.accessor
; CHECK: br label
define i32 @accessor(ptr %p) {
  %v = load i32, ptr %p
  ret i32 %v
}

!llvm.module.flags = !{!0}
!0 = !{i32 8, !"PIC Level", i32 2}
