/* SPDX-License-Identifier: Apache-2.0 */
/* The main function of a rank of a Fortran program under SMPI; quipu-smpif90 links it into every program. It replaces
 * flang's main, which calls exit at its end and would thus end the whole simulation.
 *
 * Like flang's main, it passes the command arguments and the environment to flang's runtime. SMPI is built with
 * gfortran and passes the arguments of the rank to gfortran's runtime, where this function reads them.
 *
 * STOP, CALL EXIT and the end of the program call exit. This file defines an exit that ends only the rank; it replaces
 * exit of the C library in this program. Each rank has a copy of the program, and thus of the static variables here.
 */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WEAK __attribute__((weak))

extern char **environ;

/* Functions of gfortran's runtime; they are missing if SMPI was built without Fortran. */
extern WEAK int32_t _gfortran_iargc(void);
extern WEAK void _gfortran_get_command_argument_i4(const int32_t *number, char *value, int32_t *length, int32_t *status,
                                                   size_t room);

/* Functions of flang's runtime, and the main program. */
extern void _FortranAProgramStart(int count, const char *arguments[], const char *environment[], const void *defaults);
extern void _FortranAProgramEndStatement(void);
extern void _QQmain(void);

/* Function of libsimgrid: ends the rank. After all ranks have ended, the simulation ends with this status. */
extern void smpi_exit(int status);

static jmp_buf begin;
static int ended_with;

__attribute__((visibility("hidden"), noreturn)) void exit(int status) {
    ended_with = status;
    longjmp(begin, 1);
}

/* Returns a copy of the argument with this number (0: name of the program); NULL if there is no memory. */
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

/* Not freed, because the runtime keeps pointers to the arguments. */
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
