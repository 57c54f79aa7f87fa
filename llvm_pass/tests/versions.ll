; SPDX-License-Identifier: Apache-2.0
; A small function gets a plain version, for processes that are not measured, and a separate counted version.
; RUN: %quipu -S %s | %check %s

$inline = comdat any

; CHECK: @quipu_measuring = external global i32

; A function with variable arguments cannot be copied. It has only the counted version.
; CHECK-LABEL: define void @varies(ptr %p, ...)
; CHECK: call ptr @quipu_enter(
define void @varies(ptr %p, ...) nounwind {
  call void @unknown()
  ret void
}

; Counted versions call counted versions.
; CHECK-LABEL: define internal i32 @outer.quipu(i32 %n)
; CHECK: call i32 @inline.quipu(i32 %n)
; CHECK: ret i32
define i32 @outer(i32 %n) nounwind {
  %r = call i32 @inline(i32 %n)
  ret i32 %r
}

; The linker keeps one of the copies of an inline function, so the counted version must be visible to other files.
; CHECK-LABEL: define linkonce_odr hidden i32 @inline.quipu(i32 %n) unnamed_addr {{.*}}comdat
define linkonce_odr i32 @inline(i32 %n) nounwind comdat {
  %r = mul i32 %n, 3
  ret i32 %r
}

declare void @unknown()

; If plain code calls the function, the plain version and the decision are separate functions. The function that decides
; has the name of the source.
; CHECK-LABEL: define linkonce_odr i32 @inline(i32 %{{.*}}) {{.*}}comdat
; CHECK: load i32, ptr @quipu_measuring
; CHECK: tail call i32 @inline.quipu.plain(
; CHECK: quipu.measured:
; CHECK: tail call i32 @inline.quipu(
; CHECK-LABEL: define linkonce_odr hidden i32 @inline.quipu.plain(i32 %n) unnamed_addr {{.*}}comdat
; CHECK-NEXT: mul i32
; CHECK-NEXT: ret i32
; A function with calls also gets a separate entry, because an entry without calls saves no registers.
; CHECK-LABEL: define i32 @outer(i32 %{{.*}})
; CHECK-NEXT: load i32, ptr @quipu_measuring
; CHECK-NEXT: icmp eq
; CHECK-NEXT: br
; CHECK: tail call i32 @outer.quipu.plain(i32
; CHECK: quipu.measured:
; CHECK-NEXT: tail call i32 @outer.quipu(i32
; CHECK-NEXT: ret i32
; CHECK-LABEL: define internal i32 @outer.quipu.plain(i32 %n)
; CHECK: call i32 @inline.quipu.plain(i32 %n)
; CHECK-NEXT: ret i32
