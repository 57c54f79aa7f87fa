; SPDX-License-Identifier: Apache-2.0
; In a function that calls setjmp, every block counts in memory. After the call, the frames that a longjmp has left end.
; RUN: %quipu -S %s | %check %s

declare i32 @setjmp(ptr) returns_twice
declare void @work()

; CHECK-LABEL: define i32 @caller(
; CHECK: call i32 @setjmp(
; CHECK-NEXT: call void @quipu_unwind(ptr %quipu.frame)
; CHECK: try:
; CHECK: store i64 {{.*}} !alias.scope
; CHECK: end:
; CHECK: store i64 {{.*}} !alias.scope
define i32 @caller(ptr %buffer) nounwind {
  %again = call i32 @setjmp(ptr %buffer) returns_twice
  %first = icmp eq i32 %again, 0
  br i1 %first, label %try, label %end
try:
  call void @work()
  br label %end
end:
  ret i32 %again
}
