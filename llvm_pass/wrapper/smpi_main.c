/* SPDX-License-Identifier: Apache-2.0 */
/* What SMPI calls for each rank of a Fortran program, in place of main, which flang ends with exit: of the whole
 * simulation. Part of every program that quipu-smpif90 links.
 *
 * As main does, it gives flang's runtime the command arguments and the environment. SMPI, which is built by gfortran,
 * gives the arguments of the rank to the runtime of gfortran; they are taken from there.
 *
 * STOP, CALL EXIT and the end of the program call exit, which here ends the rank and no other: the linker prefers it to
 * that of the C library, for this program only. A rank has a copy of the program, and so of what is static here.
 */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WEAK __attribute__((weak))

extern char **environ;

/* Of gfortran's runtime; an SMPI that was built without Fortran does not load it. */
extern WEAK int32_t _gfortran_iargc(void);
extern WEAK void _gfortran_get_command_argument_i4(const int32_t *number, char *value, int32_t *length, int32_t *status,
                                                   size_t room);

/* Of flang's runtime, and the main program. */
extern void _FortranAProgramStart(int count, const char *arguments[], const char *environment[], const void *defaults);
extern void _FortranAProgramEndStatement(void);
extern void _QQmain(void);

/* Of libsimgrid: ends the rank, and the simulation, once all ranks have ended, with the status. */
extern void smpi_exit(int status);

static jmp_buf begin;
static int ended_with;

__attribute__((visibility("hidden"), noreturn)) void exit(int status) {
    ended_with = status;
    longjmp(begin, 1);
}

/* The argument with a number, 0 for the program's name, in memory of its own; NULL without memory. */
static char *argument(int32_t number) {
    int32_t length = 0;
    _gfortran_get_command_argument_i4(&number, NULL, &length, NULL, 0);
    char *text = malloc((size_t)length + 1);
    if (text == NULL)
        return NULL;
    _gfortran_get_command_argument_i4(&number, text, NULL, NULL, (size_t)length);
    text[length] = '\0';
    return text;
}

/* The runtime keeps the arguments: they are not freed. */
static const char **arguments;

static void give_arguments(void) {
    const int32_t count = _gfortran_iargc() + 1;
    arguments = (const char **)calloc((size_t)count + 1, sizeof *arguments);
    if (arguments == NULL)
        return;
    for (int32_t i = 0; i < count; i++)
        if ((arguments[i] = argument(i)) == NULL)
            return;
    _FortranAProgramStart(count, arguments, (const char **)environ, NULL);
}

void user_main_(void) {
    if (setjmp(begin) != 0) {
        if (ended_with != 0)
            smpi_exit(ended_with);
        return;
    }
    if (_gfortran_iargc != NULL && _gfortran_get_command_argument_i4 != NULL)
        give_arguments();
    _QQmain();
    _FortranAProgramEndStatement();
}
