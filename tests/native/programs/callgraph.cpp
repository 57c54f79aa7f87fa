// SPDX-License-Identifier: Apache-2.0
// Calls of every kind, with what the call graph must say of them.
#include <cstdlib>
#include <pthread.h>

struct Shape {
    virtual ~Shape() {}
    virtual double area() const = 0;
    virtual double edge() const { return 1; }
};
struct Square : Shape {
    double area() const override { return 4; }
};
struct Circle : Shape {
    double area() const override { return 3; }
    double edge() const override { return 6; }
};

static int helper(int a) { return a + 1; }
int compute(int a) {
    int b = 2 * a;
    for (int i = 0; i < a; ++i) {
        b += i;
    }
    return b;
}
int choose(int a) {
    if (a > 3)
        return helper(a);
    return 7;
}
int outside(int a);
typedef int (*Operation)(int);
Operation operations[] = {choose, compute};
void *work(void *p) { return p; }
int even(int n);
int odd(int n) { return n == 0 ? 0 : even(n - 1); }
int even(int n) { return n == 0 ? 1 : odd(n - 1); }
int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
double never() { return 2; }

int main(int argc, char **) {
    Square square;
    Circle circle;
    Shape *shapes[] = {&square, &circle};
    double sum = 0;
    for (Shape *shape : shapes)
        for (int i = 0; i < 2; i++)
            sum += shape->area();
    int r[] = {3, 1, 2};
    qsort(r, 3, sizeof(int), compare);
    pthread_t thread;
    pthread_create(&thread, nullptr, work, nullptr);
    pthread_join(thread, nullptr);
    return sum + operations[argc & 1](argc) + outside(argc) + even(4) < 0;
}
