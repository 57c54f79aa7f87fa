; On x86-64 the usual way of entering and leaving a region is inline; the runtime is called otherwise.
; RUN: %quipu -S %s | %check %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK: @quipu_current = external thread_local(initialexec) global ptr

; CHECK-LABEL: define void @caller()
; CHECK: load ptr, ptr {{.*}}, align 8
; CHECK: quipu.fast:
; CHECK: call i64 @llvm.x86.rdtsc()
; CHECK: call ptr @quipu_enter(ptr @quipu.region.caller)
; CHECK: %quipu.frame = phi ptr
; CHECK: call void @callee()
; CHECK: call i64 @llvm.x86.rdtsc()
; CHECK: call void @quipu_exit(ptr %quipu.frame)
; CHECK: ret void
declare void @callee()
define void @caller() nounwind {
  call void @callee()
  ret void
}
