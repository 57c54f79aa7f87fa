# SPDX-License-Identifier: Apache-2.0
"""Python functions of every kind, called known numbers of times; runs on any Python."""

import asyncio
import subprocess
import sys
import threading


def leaf(x):
    return x + 1


class Body:
    def method(self, n):
        return sorted(map(self.key, range(n)), key=lambda x: -x)  # C functions in between

    @staticmethod
    def key(x):
        return leaf(x)


class Other:
    def method(self):
        pass

    @property
    def size(self):
        return 0

    @size.setter
    def size(self, value):
        pass


def twice():
    pass


first = twice


def twice():  # type: ignore[no-redef]
    pass


def produce(n):
    for i in range(n):
        try:
            yield leaf(i)
        except KeyError:
            yield -1


def fails(depth):
    if depth == 0:
        raise ValueError(depth)
    fails(depth - 1)


def catches():
    try:
        fails(3)
    except ValueError:
        leaf(0)


def leaves_generator():
    generator = produce(10)
    next(generator)
    generator.throw(KeyError)
    generator.close()
    leaf(0)


async def waits():
    await asyncio.sleep(0)
    leaf(0)


def after_all():
    leaf(0)


def main():
    for _ in range(10):
        Body().method(5)
        list(produce(3))
        catches()
        leaves_generator()
    threads = [threading.Thread(target=Body().method, args=(7,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(waits())
    subprocess.run([sys.executable, "-c", "def child(): pass\nchild()"], check=True)
    first()
    twice()
    other = Other()
    other.method()
    other.size = other.size
    after_all()


main()
