; SPDX-License-Identifier: Apache-2.0
; Bytes in order (last column): new bytes that an access reaches because its address grows by a constant stride. An
; address that is loaded from memory (gather) has no such bytes.
; RUN: %quipu -S %s | %check %s

; One iteration: 12 instructions, 2 floating-point operations, and 3 loads of 20 bytes in total, of which 12 are in
; order. Format of a packed row: see quipu.h. The columns 0, 1, 2, 4, 5, 7 and 9 are not 0.
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
