; SPDX-License-Identifier: Apache-2.0
; The addition to the counter of a path moves to the edges that decide the path, where the index of the counter is
; constant.
; RUN: %plain -passes=quipu-path-edges -S %s | %check %s

; CHECK-LABEL: define i32 @paths(
; CHECK: entry:
; CHECK: br i1 %a, label %[[FIRST:.*]], label %other
; CHECK: [[FIRST]]:
; CHECK: getelementptr inbounds i64, ptr %counters, i64 0
; CHECK: br label %end
; CHECK: other:
; CHECK: getelementptr inbounds i64, ptr %counters, i64 2
; CHECK: br label %end
; CHECK: end:
; CHECK-NOT: store
; CHECK: ret i32
define i32 @paths(i1 %a, ptr %p, ptr %counters) {
entry:
  br i1 %a, label %end, label %other
other:
  %v = load i32, ptr %p
  br label %end
end:
  %path = phi i64 [ 0, %entry ], [ 2, %other ]
  %result = phi i32 [ 1, %entry ], [ %v, %other ]
  %place = getelementptr inbounds i64, ptr %counters, i64 %path
  %before = load i64, ptr %place, align 8, !alias.scope !0
  %after = add i64 %before, 1
  store i64 %after, ptr %place, align 8, !alias.scope !0
  ret i32 %result
}

; A store of the program (without the alias scope of counters) does not move.
; CHECK-LABEL: define void @other(
; CHECK: phi i64
; CHECK: store i64
define void @other(i1 %a, ptr %p) {
entry:
  br i1 %a, label %end, label %between
between:
  br label %end
end:
  %index = phi i64 [ 0, %entry ], [ 2, %between ]
  %place = getelementptr inbounds i64, ptr %p, i64 %index
  %before = load i64, ptr %place, align 8
  %after = add i64 %before, 1
  store i64 %after, ptr %place, align 8
  ret void
}

!0 = !{!1}
!1 = distinct !{!1, !2, !"quipu.counters"}
!2 = distinct !{!2, !"quipu"}
