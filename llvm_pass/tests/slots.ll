; SPDX-License-Identifier: Apache-2.0
; A slot of a program contains the distance of a link from the thread pointer (address space 257). Its initial value is
; 0, so the program needs neither initial data nor relocations for slots.
; RUN: %quipu -S %s | %check %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK: @quipu.slots = private thread_local(initialexec) global [1 x ptr] zeroinitializer
; CHECK-LABEL: define internal void @caller.quipu()
; CHECK: %quipu.link = inttoptr i64 {{.*}} to ptr addrspace(257)
; CHECK: load ptr, ptr addrspace(257) %quipu.link
declare void @callee()
define void @caller() nounwind {
  call void @callee()
  ret void
}
