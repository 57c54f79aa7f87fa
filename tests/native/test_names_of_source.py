# SPDX-License-Identifier: Apache-2.0
"""Call paths have the functions of the source: what compilers make beside them is part of these."""

from __future__ import annotations

import pytest

MAIN = "main"

UNMATCHED = """
#include <cstdio>
#include <stdexcept>
struct BadFormat : std::runtime_error { using runtime_error::runtime_error; };
__attribute__((noinline)) double solve(int n) { double s = 0; for (int i = 0; i < n; i++) s = s * .999 + i; return s; }
__attribute__((noinline)) int value(int n) { if (n > 1) throw std::invalid_argument("many"); return n; }
__attribute__((noinline)) int parse(int n) { try { return value(n); } catch (const BadFormat &) { return -1; } }
int main(int count, char **) {
    double s = 0;
    for (int i = 0; i < 3; i++) {
        try { s += parse(count + i); } catch (const std::exception &) { s += 1; }
        s += solve(100 + i);
    }
    std::printf("%d\\n", s > 0);
}
"""


@pytest.mark.parametrize("level", [("-O0",), ("-O1",), ("-O2",), ("-O2", "-fno-inline"), ("-O2", "--quipu-naive")])
def test_an_exception_that_a_handler_is_not_for_ends_its_function(workshop, level: tuple[str, ...]) -> None:
    source = workshop.folder / "unmatched.cpp"
    source.write_text(UNMATCHED)
    tree = workshop.run(workshop.build(source, *level)).tree
    visits = {path: int(counted["visits"]) for path, counted in tree.items() if path}
    assert visits == {
        (MAIN,): 1,
        (MAIN, "parse(int)"): 3,
        (MAIN, "parse(int)", "value(int)"): 3,
        (MAIN, "solve(int)"): 3,
    }


COROUTINE = """
#include <coroutine>
#include <cstdio>
struct Numbers {
    struct promise_type {
        long value;
        Numbers get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(long x) { value = x; return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };
    std::coroutine_handle<promise_type> handle;
};
Numbers produce(long n) {
    for (long i = 0; i < n; i++) {
        long s = 0;
        for (long j = 0; j < 100; j++) s += j * i ^ s;
        co_yield s;
    }
}
__attribute__((noinline)) long consume(Numbers all) {
    long s = 0;
    for (all.handle.resume(); !all.handle.done(); all.handle.resume()) s += all.handle.promise().value;
    all.handle.destroy();
    return s;
}
int main() { std::printf("%ld\\n", consume(produce(20))); }
"""


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-Oz"])
def test_a_coroutine_is_one_function(workshop, level: str) -> None:
    source = workshop.folder / "coroutine.cpp"
    source.write_text(COROUTINE)
    tree = workshop.run(workshop.build(source, level, "-std=c++20")).tree
    names = {name for path in tree for name in path}
    assert "produce(long)" in names
    assert not {name for name in names if "produce" in name} - {"produce(long)"}
    work = sum(counted["blocks"] for path, counted in tree.items() if path and path[-1] == "produce(long)")
    assert work > 2000


INLINED_COROUTINE = """
#include <coroutine>
#include <cstdio>
struct Numbers {
    struct promise_type {
        long value;
        Numbers get_return_object() { return Numbers{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(long x) { value = x; return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };
    explicit Numbers(std::coroutine_handle<promise_type> made) : handle(made) {}
    ~Numbers() { handle.destroy(); }
    bool next() { handle.resume(); return !handle.done(); }
    std::coroutine_handle<promise_type> handle;
};
static Numbers produce(int n) {
    for (int i = 0; i < n; i++) {
        long s = 0;
        for (int j = 0; j < 100; j++) s += j * i ^ s;
        co_yield s;
    }
}
int main(int count, char **) {
    long s = 0;
    for (auto all = produce(20 * count); all.next();) s += all.handle.promise().value;
    std::printf("%ld\\n", s);
}
"""


@pytest.mark.parametrize("level", [("-O0",), ("-O1",), ("-O2",), ("-O3",), ("-O2", "--quipu-naive")])
def test_a_coroutine_that_its_only_user_has_on_the_stack_is_a_call_path(workshop, level: tuple[str, ...]) -> None:
    source = workshop.folder / "coroutine.cpp"
    source.write_text(INLINED_COROUTINE)
    tree = workshop.run(workshop.build(source, *level, "-std=c++20")).tree
    made, resumed = (MAIN, "produce(int)"), (MAIN, "Numbers::next()", "produce(int)")
    assert tree[made]["visits"] == 1
    assert tree[resumed]["visits"] >= 1  # how often is lost where the loop that resumes it becomes its own
    assert tree[resumed]["blocks"] > 0.9 * sum(counted["blocks"] for counted in tree.values())


STATIC_OBJECT = """
#include <cstdio>
#include <cstdlib>
struct Table {
    explicit Table(int n) : values(static_cast<long *>(std::malloc(n * sizeof(long)))) {
        for (int i = 0; i < n; i++) values[i] = i * 7919 % 503;
    }
    ~Table() { std::free(values); }
    long *values;
};
static Table table(std::getenv("QUIPU_DIR") ? 1000 : 1);
int main() { std::printf("%ld\\n", table.values[999]); }
"""


@pytest.mark.parametrize("level", [("-O0",), ("-O1",), ("-O2",), ("-O3", "--quipu-naive"), ("-O2", "-static")])
def test_the_constructor_of_a_static_object_is_a_call_path(workshop, level: tuple[str, ...]) -> None:
    source = workshop.folder / "static_object.cpp"
    source.write_text(STATIC_OBJECT)
    tree = workshop.run(workshop.build(source, *level)).tree
    assert tree[("Table::Table(int)",)]["visits"] == 1
    assert tree[("Table::Table(int)",)]["blocks"] >= 1000
    assert {path for path in tree if path} == {(MAIN,), ("Table::Table(int)",), ("Table::~Table()",)}


OTHER_BASE = """
#include <cstdio>
struct A { virtual double f(int) { return 1; } virtual ~A() {} };
struct B { virtual double g(int n) { return n; } virtual ~B() {} };
struct C : A, B { double g(int n) override { double s = 1; for (int i = 0; i < n; i++) s += i * s / 3; return s; } };
struct Pair {
    double x;
    double operator->*(int n) const { double s = x; for (int i = 0; i < n; i++) s += i; return s; }
};
__attribute__((noinline)) double through(B *b) { return b->g(10); }
__attribute__((noinline)) double pointed(double (*f)(int)) { return f(5) + f(6); }
int main() {
    C c;
    auto sum = [](auto n) __attribute__((noinline)) { auto s = n; for (int i = 0; i < 9; i++) s += n; return s; };
    double s = through(&c) + (Pair{2}->*7) + sum(1.5) + sum(2);
    s += pointed([](int n) { double t = 0; for (int i = 0; i < n; i++) t += i; return t; });
    std::printf("%g\\n", s);
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_thunks_and_pointers_to_lambdas_are_no_functions(workshop, level: str) -> None:
    source = workshop.folder / "bases.cpp"
    source.write_text(OTHER_BASE)
    tree = workshop.run(workshop.build(source, level, "-std=c++17")).tree
    names = {name for path in tree for name in path}
    assert {"C::g(int)", "Pair::operator->*(int) const", "through(B*)", "pointed(double (*)(int))"} <= names
    assert not [name for name in names if "thunk" in name or "__invoke" in name or name.startswith("_Z")]
    assert [path for path in tree if path[-2:] == ("through(B*)", "C::g(int)")]


REDUCTION = """
module m
contains
  subroutine work(a, b, n, t)
    integer, intent(in) :: n
    real(8), intent(in) :: a(:), b(:)
    real(8), intent(out) :: t
    integer :: i
    t = 0
    do i = 1, n
      t = t + sum(a*b) * i
    end do
  end subroutine
end module
program main
  use m
  real(8) :: a(6), b(6), t
  a = 1
  b = 2
  call work(a, b, 100, t)
  print *, t
end program
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_reductions_that_flang_writes_are_part_of_their_callers(workshop, level: str) -> None:
    source = workshop.folder / "reduction.f90"
    source.write_text(REDUCTION)
    tree = workshop.run(workshop.build(source, level, wrapper="quipu-fc")).tree
    assert {path for path in tree if path} == {
        (MAIN,),
        (MAIN, "main program"),
        (MAIN, "main program", "m::work"),
    }


def test_powers_that_flang_writes_are_part_of_their_callers(workshop) -> None:
    source = workshop.folder / "power.f90"
    source.write_text("program power\n  integer :: i, s = 0\n  do i = 1, 5\n    s = s + 2**i * i**i\n  end do\n")
    source.write_text(source.read_text() + "  print *, s\nend program\n")
    program = workshop.build(source, "-O0", wrapper="quipu-fc")
    assert b"__mlir_math_ipowi_i32" in program.read_bytes()
    assert {path for path in workshop.run(program).tree if path} == {(MAIN,), (MAIN, "main program")}
