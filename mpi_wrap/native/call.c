#include "call.h"

int quipu_mpi_on = 0;

#ifdef SMPI_H
bool quipu_mpi_concurrent = false; /* one rank runs at a time */
#else
bool quipu_mpi_concurrent = true;
_Thread_local void *quipu_mpi_active_wrapper __attribute__((tls_model("initial-exec"))) = NULL;
#endif
