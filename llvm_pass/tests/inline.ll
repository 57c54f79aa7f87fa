; SPDX-License-Identifier: Apache-2.0
; On x86-64, the common case of enter and exit, which reads no clock, is inline. For all other cases, the code calls
; functions of the runtime that preserve all registers.
; RUN: %quipu -S %s | %check %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-DAG: @quipu_current = external thread_local(initialexec) global ptr
; CHECK-DAG: @quipu_active_node = external thread_local(initialexec) global ptr

; CHECK-LABEL: define internal void @caller.quipu()
; CHECK: %quipu.visit = alloca [3 x i64]
; CHECK: quipu.linked:
; CHECK: store atomic ptr
; CHECK: call preserve_allcc ptr @quipu_enter_missed{{(_here)?}}(ptr {{(nest )?}}@quipu.region.caller,
; CHECK: call void @callee()
; CHECK-NOT: rdtsc
; CHECK: quipu.top:
; CHECK: store atomic ptr
; CHECK: call preserve_allcc void @quipu_exit_missed(ptr %quipu.visit)
; CHECK: ret void
declare void @callee()
define void @caller() nounwind {
  call void @callee()
  ret void
}

; A function without calls has one counter per path, and no counter of visits. The caller of the counted version passes
; the counters.
; CHECK-LABEL: define internal i32 @choose.quipu(i32 %a, i32 %b, ptr nest %quipu.counters)
; CHECK: %quipu.path = phi i64
; CHECK: getelementptr inbounds i64, ptr %quipu.counters, i64 %quipu.path
; CHECK: add i64 {{.*}}, 1
; CHECK-NOT: add i64
; CHECK: ret i32

; CHECK-LABEL: define i32 @choose(i32 %a, i32 %b)
; CHECK: load i32, ptr @quipu_own_measuring
; CHECK: quipu.measured:
; CHECK: icmp eq ptr
; CHECK: tail call i32 @choose.quipu.far(i32 %a, i32 %b)
; CHECK-NOT: add i64
; CHECK: tail call i32 @choose.quipu(i32 %a, i32 %b, ptr nest %quipu.counters)
; CHECK-LABEL: define private i32 @choose.quipu.far(i32 %0, i32 %1)
; CHECK: call preserve_allcc ptr @quipu_count_missed{{(_here)?}}(ptr {{(nest )?}}@quipu.region.choose
; CHECK-NOT: add i64
; CHECK: tail call i32 @choose.quipu(i32 %0, i32 %1, ptr nest %quipu.counters)
define i32 @choose(i32 %a, i32 %b) nounwind {
entry:
  %less = icmp slt i32 %a, %b
  br i1 %less, label %then, label %end
then:
  store volatile i32 %a, ptr @sink
  br label %end
end:
  %result = phi i32 [ %a, %then ], [ %b, %entry ]
  ret i32 %result
}
@sink = global i32 0
