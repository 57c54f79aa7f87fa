; SPDX-License-Identifier: Apache-2.0
; A loop with a known trip count is not counted block by block: its exit value is a closed form of %n.
; RUN: %quipu -S %s | %check %s

; Weights: a visit is entry and done, without the iterations; 1 in the counter is an iteration of 6 instructions with an
; addition and a load of 8 bytes in order.
; Packed (quipu.h): columns that are not 0, and their values. A visit adds once to the counter: the last column.
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
