; SPDX-License-Identifier: Apache-2.0
; A call that may throw becomes an invoke; its cleanup contains the exit of the region.
; RUN: %quipu -S %s | %check %s

declare void @callee()

; CHECK-LABEL: define internal void @caller.quipu()
; CHECK: %quipu.frame = call ptr @quipu_enter(ptr @quipu.region.caller)
; CHECK-NEXT: invoke void @callee()
; CHECK: quipu.cleanup:
; CHECK: landingpad
; CHECK: call void @quipu_exit(ptr %quipu.frame)
; CHECK-NEXT: resume
define void @caller() {
  call void @callee()
  ret void
}

; CHECK-LABEL: define internal void @cannot_throw.quipu()
; CHECK-NOT: invoke
; CHECK: call void @callee()
; CHECK: ret void
define void @cannot_throw() nounwind {
  call void @callee()
  ret void
}
