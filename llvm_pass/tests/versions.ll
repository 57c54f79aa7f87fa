; SPDX-License-Identifier: Apache-2.0
; A small function keeps its code for processes that are not measured, and the counted version is a function beside it.
; RUN: %quipu -S %s | %check %s

$inline = comdat any

; CHECK: @quipu_measuring = external global i32

; The only version: what a visit costs is nothing beside what such a function does.
; CHECK-LABEL: define void @varies(ptr %p, ...)
; CHECK: call ptr @quipu_enter(
define void @varies(ptr %p, ...) nounwind {
  call void @unknown()
  ret void
}

; Counted functions call counted ones, and all else keeps the name.
; CHECK-LABEL: define internal i32 @outer.quipu(i32 %n)
; CHECK: call i32 @inline.quipu(i32 %n)
; CHECK: ret i32
define i32 @outer(i32 %n) nounwind {
  %r = call i32 @inline(i32 %n)
  ret i32 %r
}

; The linker keeps one of several copies, so that it has to be one that other files can call.
; CHECK-LABEL: define linkonce_odr hidden i32 @inline.quipu(i32 %n) unnamed_addr {{.*}}comdat
define linkonce_odr i32 @inline(i32 %n) nounwind comdat {
  %r = mul i32 %n, 3
  ret i32 %r
}

declare void @unknown()

; The name is that of an entry that decides, if plain code calls the function: that calls the code behind it.
; CHECK-LABEL: define linkonce_odr i32 @inline(i32 %{{.*}}) {{.*}}comdat
; CHECK: load i32, ptr @quipu_measuring
; CHECK: tail call i32 @inline.quipu.plain(
; CHECK: quipu.measured:
; CHECK: tail call i32 @inline.quipu(
; CHECK-LABEL: define linkonce_odr hidden i32 @inline.quipu.plain(i32 %n) unnamed_addr {{.*}}comdat
; CHECK-NEXT: mul i32
; CHECK-NEXT: ret i32
; An entry saves no registers: so code with calls is behind one, too.
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
