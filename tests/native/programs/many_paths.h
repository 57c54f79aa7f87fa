/* SPDX-License-Identifier: Apache-2.0 */
// 60 functions that call each other in a ring: walk(depth) makes 60 chains of depth + 1 call paths each, depth < 60.
#define KEEP __attribute__((noinline, optnone))

extern void (*const functions[60])(int);

#define FUNCTION(n)                                                                                                    \
    static KEEP void f##n(int depth) {                                                                                 \
        if (depth)                                                                                                     \
            functions[(n + 7) % 60](depth - 1);                                                                        \
    }
#define TEN(apply, t)                                                                                                  \
    apply(t##0) apply(t##1) apply(t##2) apply(t##3) apply(t##4) apply(t##5) apply(t##6) apply(t##7) apply(t##8)        \
        apply(t##9)
#define SIXTY(apply) TEN(apply, ) TEN(apply, 1) TEN(apply, 2) TEN(apply, 3) TEN(apply, 4) TEN(apply, 5)
SIXTY(FUNCTION)

#define ADDRESS(n) f##n,
void (*const functions[60])(int) = {SIXTY(ADDRESS)};

static KEEP void walk(int depth) {
    for (int i = 0; i < 60; i++)
        functions[i](depth);
}
