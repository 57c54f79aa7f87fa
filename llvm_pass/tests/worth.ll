; SPDX-License-Identifier: Apache-2.0
; A loop with a small constant bound is little work, whichever operand of the comparison is the bound. A loop with
; another bound may be much work, so the function gets places for hooks.
; RUN: %plain -passes=quipu-marks -S %s | %check %s

; CHECK-LABEL: define void @last_operand(
; CHECK-NOT: call void @llvm.var.annotation
; CHECK-LABEL: define void @first_operand(
; CHECK-NOT: call void @llvm.var.annotation
; CHECK-LABEL: define void @unknown(
; CHECK: call void @llvm.var.annotation
define void @last_operand(ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  store volatile i32 %i, ptr %p
  %next = add nsw i32 %i, 1
  %more = icmp slt i32 %next, 10
  br i1 %more, label %loop, label %done
done:
  ret void
}

define void @first_operand(ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  store volatile i32 %i, ptr %p
  %next = add nsw i32 %i, 1
  %more = icmp sgt i32 10, %next
  br i1 %more, label %loop, label %done
done:
  ret void
}

define void @unknown(ptr %p, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  store volatile i32 %i, ptr %p
  %next = add nsw i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
