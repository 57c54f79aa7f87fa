; SPDX-License-Identifier: Apache-2.0
; Bytes in order, the last column: what an address reaches anew that grows by a constant stride. What is gathered walks
; nowhere.
; RUN: %quipu -S %s | %check %s

; An iteration: 12 instructions, 2 operations, 3 loads of 20 bytes, of which 12 are in order.
; Packed (quipu.h): columns 0, 1, 2, 4, 5, 7 and 9.
; CHECK: @quipu.details = {{.*}}\B7\05\01\0C\02\02\03\14\0C\00"

define double @gather(ptr %values, ptr %columns, ptr %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr double, ptr %values, i64 %i
  %v = load double, ptr %p
  %q = getelementptr i32, ptr %columns, i64 %i
  %c = load i32, ptr %q
  %k = sext i32 %c to i64
  %r = getelementptr double, ptr %x, i64 %k
  %w = load double, ptr %r
  %m = fmul double %v, %w
  %t = fadd double %s, %m
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret double %t
}
