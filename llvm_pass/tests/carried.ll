; SPDX-License-Identifier: Apache-2.0
; Callers in the same file count for small functions: each execution of the call is a visit of the callee.
; RUN: %quipu -S %s | %check %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@sink = global i32 0
$inline = comdat any

; A function without branches needs no counter. The counted version therefore has the code and the attributes of the
; source.
; CHECK-LABEL: define internal i32 @same.quipu(i32 %n)
; CHECK-NEXT: mul i32
; CHECK-NEXT: ret i32
define i32 @same(i32 %n) nounwind willreturn memory(none) {
  %r = mul i32 %n, 3
  ret i32 %r
}

; Another file may contain a differently optimized copy, so the name contains a hash of the meaning of the counters.
; CHECK-LABEL: define linkonce_odr hidden i32 @inline.quipu.
; CHECK-SAME: (i32 %n, ptr nest %quipu.counters)
define linkonce_odr i32 @inline(i32 %n) nounwind willreturn comdat {
  %less = icmp slt i32 %n, 0
  br i1 %less, label %then, label %end
then:
  store volatile i32 %n, ptr @sink
  br label %end
end:
  ret i32 %n
}

; This function counts for all of its callees. It therefore needs no hook, and its callers may count for it.
; CHECK-LABEL: define internal i32 @outer.quipu(i32 %n, ptr nest %quipu.counters)
; CHECK-NOT: @quipu_
; CHECK: call i32 @same.quipu(i32 %n)
; CHECK: call i32 @inline.quipu.{{[0-9a-f]+}}(i32 %a, ptr nest %quipu.counters)
; CHECK: call i32 @inline.quipu.{{[0-9a-f]+}}(i32 %b, ptr nest %quipu.counters)
; CHECK-NOT: @quipu_
; CHECK: ret i32
define i32 @outer(i32 %n) nounwind {
  %a = call i32 @same(i32 %n)
  %b = call i32 @inline(i32 %a)
  %c = call i32 @inline(i32 %b)
  ret i32 %c
}

; An earlier call may not return. The caller therefore counts this call with a separate counter.
; CHECK-LABEL: define internal i32 @after.quipu(
; CHECK: call void @unknown()
; CHECK: add i64
; CHECK: call i32 @same.quipu(
define i32 @after(i32 %n) nounwind {
  call void @unknown()
  %r = call i32 @same(i32 %n)
  ret i32 %r
}
declare void @unknown()

; Callers do not count for functions that call themselves.
; CHECK-LABEL: define internal i32 @again.quipu(i32 %n)
; CHECK: @quipu_enter
; CHECK: call i32 @again.quipu(
define i32 @again(i32 %n) nounwind {
  %more = icmp sgt i32 %n, 0
  br i1 %more, label %then, label %end
then:
  %m = sub i32 %n, 1
  %r = call i32 @again(i32 %m)
  ret i32 %r
end:
  ret i32 %n
}

; Plain versions call plain versions directly, without the decision at the entry.
; CHECK-LABEL: define internal i32 @outer.quipu.plain(i32 %n)
; CHECK: call i32 @same.quipu(i32 %n)
; CHECK: call i32 @inline.quipu.plain(i32 %a)
