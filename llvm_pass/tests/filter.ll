; SPDX-License-Identifier: Apache-2.0
; A function that the filter excludes has no hooks: its work counts for the active call path. A function that the filter
; includes by its name has hooks, even if it is small.
; RUN: printf 'SCOREP_REGION_NAMES_BEGIN\nEXCLUDE *\nINCLUDE MANGLED\nkept\nSCOREP_REGION_NAMES_END\n' > %t.filter
; RUN: env QUIPU_FILTER=%t.filter %quipu -S %s | %check %s
; RUN: printf 'SCOREP_REGION_NAMES_BEGIN\nkept\n' > %t.bad
; RUN: env QUIPU_FILTER=%t.bad %not %quipu -S %s 2>&1 | %check --check-prefix=BAD %s
; RUN: env QUIPU_FILTER=%t.absent %not %quipu -S %s 2>&1 | %check --check-prefix=ABSENT %s

; BAD: quipu: {{.*}}.bad:2: pattern 'kept' before any INCLUDE or EXCLUDE (from QUIPU_FILTER)
; ABSENT: quipu: {{.*}}.absent: cannot read: No such file or directory (from QUIPU_FILTER)

; CHECK-LABEL: define internal void @kept.quipu()
; CHECK: call ptr @quipu_enter
; CHECK: call void @quipu_exit
define void @kept() {
  ret void
}

; CHECK-LABEL: define internal void @left_out.quipu()
; CHECK-NOT: quipu_enter
; CHECK: call ptr @quipu_count
; CHECK-NEXT: ret void
define void @left_out() {
  ret void
}

; CHECK-LABEL: define internal void @ends.quipu()
; CHECK: call ptr @quipu_count
; CHECK-NEXT: call void @exit(i32 0)
; CHECK-NOT: quipu.cleanup
declare void @exit(i32) noreturn
define void @ends() {
  call void @exit(i32 0) noreturn
  unreachable
}
