# SPDX-License-Identifier: Apache-2.0
"""Counts of forked children, next to threads of the parent and with separate threads."""

from __future__ import annotations

import pytest
from quipu.agent.profile.reader import ProfileState

from .conftest import MANY, profiles_of, raw_folder, tree_of, visits_of


@pytest.mark.parametrize(("way", "found"), [((), 0), (("walk",), 2 * MANY)], ids=["idle", "walk"])
def test_a_child_of_a_program_whose_threads_go_on(workshop, way: tuple[str, ...], found: int) -> None:
    """Call paths that another thread of the parent enters after the fork are not in the child's profile."""
    program = workshop.build("fork_beside_thread.c", "-O1", "--quipu-all")
    done, profiles = profiles_of(raw_folder(workshop), program, *way)
    assert (done.returncode, done.stderr) == (0, "")
    assert [(profile.state, profile.problems) for profile in profiles] == [(ProfileState.ENDED, ())] * 2
    child, parent = sorted(profiles, key=lambda profile: "forked_from" not in profile.attributes)
    assert (visits_of(child, "of_child"), visits_of(child, "f")) == (1, found)
    assert (visits_of(parent, "deepest"), visits_of(parent, "f")) == (1, 60 * 60)


THREAD_OF_CHILD = """#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int done;
__attribute__((noinline)) void in_thread(void) { done++; }
__attribute__((noinline)) void after_thread(void) { done++; }
static void *run(void *nothing) {
    in_thread();
    return nothing;
}
int main(void) {
    pthread_t thread;
    if (fork() != 0)
        return wait(0) < 0;
    if (pthread_create(&thread, 0, run, 0) != 0 || pthread_join(thread, 0) != 0)
        return 1;
    after_thread();
    return 0;
}
"""


@pytest.mark.parametrize("options", [(), ("-static",)], ids=["shared", "static"])
def test_a_thread_that_a_child_starts_before_all_else(workshop, options: tuple[str, ...]) -> None:
    """In the child, the new thread is below the call path that forked."""
    source = workshop.folder / "thread_of_child.c"
    source.write_text(THREAD_OF_CHILD)
    program = workshop.build(source, "-O1", "--quipu-all", *options)
    done, profiles = profiles_of(raw_folder(workshop), program)
    assert done.returncode == 0
    (child,) = [profile for profile in profiles if "forked_from" in profile.attributes]
    visits = {path: values["visits"] for path, values in tree_of(child).items() if values["visits"]}
    assert visits == {("main", "run"): 1, ("main", "run", "in_thread"): 1, ("main", "after_thread"): 1}
    assert child.problems == ()


def test_a_child_that_no_handler_hears_of(workshop) -> None:
    """The effort of a child of `_Fork` is not in the profile of its parent."""
    program = workshop.build("fork_without_handlers.c", "-O1", "--quipu-all")
    done, profiles = profiles_of(raw_folder(workshop), program, "_Fork")
    assert (done.returncode, done.stderr) == (0, "")
    assert [(profile.state, profile.problems) for profile in profiles] == [(ProfileState.ENDED, ())] * 2
    child, parent = sorted(profiles, key=lambda profile: "forked_from" not in profile.attributes)
    assert (visits_of(child, "of_child"), visits_of(child, "of_both")) == (1, 1)
    assert (visits_of(parent, "of_child"), visits_of(parent, "of_both")) == (0, 2)


def test_a_child_of_a_call_of_the_system_does_not_end_the_profile(workshop) -> None:
    program = workshop.build("fork_without_handlers.c", "-O1", "--quipu-all")
    done, (profile,) = profiles_of(raw_folder(workshop), program, "clone")
    assert (done.returncode, done.stderr) == (0, "")
    assert (profile.state, profile.problems) == (ProfileState.ENDED, ())


EMPTIES_ITS_ENVIRONMENT = """#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static volatile int done;
__attribute__((noinline)) void of_all(void) { done++; }
__attribute__((constructor(300), no_instrument_function)) static void overwrite(void) {
    for (char **one = environ; *one; one++)
        memset(*one, 'x', strlen(*one));
    clearenv();
}
int main(void) {
    of_all();
    if (fork() == 0) {
        of_all();
        return 0;
    }
    int status;
    return wait(&status) < 0 || status != 0;
}
"""


@pytest.mark.parametrize("options", [(), ("-static",)], ids=["shared", "static"])
def test_a_program_that_empties_its_environment(workshop, options: tuple[str, ...]) -> None:
    """The profile and those of child processes use the settings that the runtime read at the start."""
    source = workshop.folder / "empties_its_environment.c"
    source.write_text(EMPTIES_ITS_ENVIRONMENT)
    program = workshop.build(source, "-O1", "--quipu-all", *options)
    done, profiles = profiles_of(raw_folder(workshop), program)
    assert (done.returncode, done.stderr) == (0, "")
    assert [visits_of(profile, "of_all") for profile in profiles] == [1, 1]
