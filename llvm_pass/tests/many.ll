; SPDX-License-Identifier: Apache-2.0
; If a file contains many calls of the runtime, these calls pass the region only, and a function of the file adds the
; slot. The region is in a register that programs rarely use (nest). Before LLVM 17, the calls pass the slot, because
; functions with preserve_all lost their result.
; RUN: %quipu -S %s | %check %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-LABEL: define internal void @caller0.quipu()
; CHECK: call preserve_allcc ptr @quipu_enter_missed{{(_here\(ptr nest |\(ptr )}}@quipu.region.caller0, ptr
; CHECK: call preserve_allcc void @quipu_exit_missed(ptr %quipu.visit)
; CHECK-LABEL: define internal void @caller7.quipu()
; CHECK: call preserve_allcc ptr @quipu_enter_missed{{(_here\(ptr nest |\(ptr )}}@quipu.region.caller7, ptr
declare void @callee()
define void @caller0() nounwind {
  call void @callee()
  ret void
}
define void @caller1() nounwind {
  call void @callee()
  ret void
}
define void @caller2() nounwind {
  call void @callee()
  ret void
}
define void @caller3() nounwind {
  call void @callee()
  ret void
}
define void @caller4() nounwind {
  call void @callee()
  ret void
}
define void @caller5() nounwind {
  call void @callee()
  ret void
}
define void @caller6() nounwind {
  call void @callee()
  ret void
}
define void @caller7() nounwind {
  call void @callee()
  ret void
}
