; SPDX-License-Identifier: Apache-2.0
; A small function without loops and calls has no hooks, except with QUIPU_ALL.
; RUN: %quipu -S %s | %check %s
; RUN: env QUIPU_ALL=1 %quipu -S %s | %check --check-prefix=ALL %s

; CHECK-LABEL: define internal i32 @accessor.quipu(
; CHECK: call ptr @quipu_count(
; CHECK-NOT: quipu_exit
; CHECK: ret i32
; ALL-LABEL: define internal i32 @accessor.quipu(
; ALL: call ptr @quipu_enter(
; ALL: call void @quipu_exit(
define i32 @accessor(ptr %p) {
  %v = load i32, ptr %p
  ret i32 %v
}
