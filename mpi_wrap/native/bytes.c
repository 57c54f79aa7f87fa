#include "bytes.h"

#include "mpi_at_hand.h"

#include <string.h>

_Thread_local struct quipu_mpi_known_type quipu_mpi_known_type __attribute__((tls_model("initial-exec")));

static uint64_t type_size(MPI_Datatype datatype) {
#ifdef QUIPU_MPI_HAVE_Type_size_x
    MPI_Count size = 0;
    int result = PMPI_Type_size_x(datatype, &size);
#else
    int size = 0;
    int result = PMPI_Type_size(datatype, &size);
#endif
    return result == MPI_SUCCESS && size > 0 ? (uint64_t)size : 0;
}

uint64_t quipu_mpi_ask_type_size(MPI_Datatype datatype) {
    if (datatype == MPI_DATATYPE_NULL) /* an error that the call itself will find */
        return 0;
    const uint64_t size = type_size(datatype);
#ifndef SMPI_H /* it has no MPI_Type_get_envelope */
    int integers, addresses, types, combiner = MPI_UNDEFINED;
    if (size > 0 && PMPI_Type_get_envelope(datatype, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
        combiner == MPI_COMBINER_NAMED)
        quipu_mpi_known_type = (struct quipu_mpi_known_type){datatype, size};
#endif
    return size;
}

static int64_t count_at(const void *counts, size_t width, int index) {
    if (width == sizeof(int))
        return ((const int *)counts)[index];
    int64_t count;
    memcpy(&count, (const char *)counts + width * (size_t)index, sizeof count);
    return count;
}

uint64_t quipu_mpi_sum(const void *counts, size_t width, int length, struct quipu_mpi_types types) {
    uint64_t total = 0;
    if (types.each == NULL && types.fortran == NULL) {
        for (int i = 0; i < length; i++)
            total += (uint64_t)count_at(counts, width, i);
        return total > 0 ? total * type_size(types.all) : 0;
    }
    for (int i = 0; i < length; i++) {
        MPI_Datatype datatype = types.each != NULL ? types.each[i] : PMPI_Type_f2c(types.fortran[i]);
        total += quipu_mpi_bytes(count_at(counts, width, i), datatype);
    }
    return total;
}

uint64_t quipu_mpi_status_bytes(const MPI_Status *status) {
#ifdef QUIPU_MPI_HAVE_Get_elements_x
    MPI_Count bytes = 0;
    /* The cast is for an mpi.h whose status arguments are not const. */
    int result = PMPI_Get_elements_x((MPI_Status *)status, MPI_BYTE, &bytes);
#else
    int bytes = 0;
    int result = PMPI_Get_count((MPI_Status *)status, MPI_BYTE, &bytes);
#endif
    return result == MPI_SUCCESS && bytes > 0 ? (uint64_t)bytes : 0;
}
