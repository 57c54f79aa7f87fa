; SPDX-License-Identifier: Apache-2.0
; A loop with a known trip count has no counter inside: its count is a closed form of %n, added at the exit.
; RUN: %quipu -S %s | %check %s

; Weights: a visit contains the blocks entry and done, without the iterations. One unit of the counter is an iteration:
; 6 instructions with one floating-point addition and one load of 8 bytes in order. Format of a packed row (quipu.h):
; mask of the columns that are not 0, then their values. The last column shows that a visit adds once to the counter.
; CHECK: @quipu.region.sum = private global {{.*}} i32 0, i32 0, i32 1, i32 0,
; CHECK: @quipu.details = private constant {{.*}}\83\08\02\03\01\B7\05\01\06\01\01\01\08\08

; CHECK-LABEL: define internal double @sum.quipu(
; CHECK: %quipu.frame = call ptr @quipu_enter(ptr @quipu.region.sum)
; CHECK: loop:
; CHECK-NEXT: phi i64
; CHECK-NEXT: phi double
; CHECK-NOT: phi
; CHECK: done:
; CHECK: [[COUNT:%.*]] = add i64 {{%.*}}, %n
; CHECK: store i64 [[COUNT]], ptr %quipu.counters
; CHECK: call void @quipu_exit(ptr %quipu.frame)
; CHECK-NEXT: ret double

define double @sum(ptr %a, i64 %n) memory(read) {
entry:
  %positive = icmp sgt i64 %n, 0
  call void @llvm.assume(i1 %positive)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr double, ptr %a, i64 %i
  %x = load double, ptr %p
  %t = fadd double %s, %x
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret double %t
}

; The function writes memory now.
; CHECK-NOT: attributes #0 = { memory(read) }

declare void @llvm.assume(i1)
