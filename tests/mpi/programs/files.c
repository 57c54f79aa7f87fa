/* SPDX-License-Identifier: Apache-2.0 */
/* MPI-IO: what is written and what is read, with a read past the end of the file. */
#include "expect.h"

enum { N = 5 };

static int out[4 * N], in[4 * N];
static MPI_File file;
static MPI_Request request;
static int rank, ranks;

static long long bytes(int count) { return 4LL * count; }

/* One block of n integers for each rank and step. */
static MPI_Offset place(int step) { return (MPI_Offset)bytes(N) * (step * ranks + rank); }

static void wait_for_request(void) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

static void writes(void) {
    MPI_File_write_at(file, place(0), out, N, MPI_INT, MPI_STATUS_IGNORE);
    expect("MPI_File_write_at", bytes(N), 0, 0, 0, ranks);
    MPI_File_write_at_all(file, place(1), out, N, MPI_INT, MPI_STATUS_IGNORE);
    expect("MPI_File_write_at_all", bytes(N), 0, 0, 0, ranks);
    MPI_File_iwrite_at(file, place(2), out, N, MPI_INT, &request);
    expect("MPI_File_iwrite_at", bytes(N), 0, 0, 0, ranks);
    wait_for_request();
    MPI_File_iwrite_at_all(file, place(3), out, N, MPI_INT, &request);
    expect("MPI_File_iwrite_at_all", bytes(N), 0, 0, 0, ranks);
    wait_for_request();
    MPI_File_write_at_all_begin(file, place(4), out, N, MPI_INT);
    expect("MPI_File_write_at_all_begin", bytes(N), 0, 0, 0, ranks);
    MPI_File_write_at_all_end(file, out, MPI_STATUS_IGNORE);
    MPI_File_seek(file, place(0), MPI_SEEK_SET);
    MPI_File_write(file, out, N, MPI_INT, MPI_STATUS_IGNORE);
    expect("MPI_File_write", bytes(N), 0, 0, 0, ranks);
    MPI_File_seek(file, place(1), MPI_SEEK_SET);
    MPI_File_write_all(file, out, N, MPI_INT, MPI_STATUS_IGNORE);
    expect("MPI_File_write_all", bytes(N), 0, 0, 0, ranks);
    MPI_File_seek(file, place(2), MPI_SEEK_SET);
    MPI_File_iwrite(file, out, N, MPI_INT, &request);
    expect("MPI_File_iwrite", bytes(N), 0, 0, 0, ranks);
    wait_for_request();
    MPI_File_seek(file, place(3), MPI_SEEK_SET);
    MPI_File_iwrite_all(file, out, N, MPI_INT, &request);
    expect("MPI_File_iwrite_all", bytes(N), 0, 0, 0, ranks);
    wait_for_request();
    MPI_File_seek(file, place(4), MPI_SEEK_SET);
    MPI_File_write_all_begin(file, out, N, MPI_INT);
    expect("MPI_File_write_all_begin", bytes(N), 0, 0, 0, ranks);
    MPI_File_write_all_end(file, out, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
}

static void reads(void) {
    MPI_Status status;
    MPI_File_read_at(file, place(0), in, N, MPI_INT, MPI_STATUS_IGNORE);
    expect("MPI_File_read_at", 0, bytes(N), 0, 0, ranks);
    MPI_File_read_at_all(file, place(1), in, N, MPI_INT, &status);
    expect("MPI_File_read_at_all", 0, bytes(N), 0, 0, ranks);
    MPI_File_iread_at(file, place(2), in, N, MPI_INT, &request);
    expect("MPI_File_iread_at", 0, bytes(N), 0, 0, ranks);
    wait_for_request();
    MPI_File_iread_at_all(file, place(3), in, N, MPI_INT, &request);
    expect("MPI_File_iread_at_all", 0, bytes(N), 0, 0, ranks);
    wait_for_request();
    MPI_File_read_at_all_begin(file, place(4), in, N, MPI_INT);
    expect("MPI_File_read_at_all_begin", 0, 0, 0, 0, ranks);
    MPI_File_read_at_all_end(file, in, MPI_STATUS_IGNORE);
    expect("MPI_File_read_at_all_end", 0, bytes(N), 0, 0, ranks);
    MPI_File_seek(file, place(0), MPI_SEEK_SET);
    MPI_File_read(file, in, N, MPI_INT, MPI_STATUS_IGNORE);
    expect("MPI_File_read", 0, bytes(N), 0, 0, ranks);
    MPI_File_seek(file, place(1), MPI_SEEK_SET);
    MPI_File_read_all(file, in, N, MPI_INT, MPI_STATUS_IGNORE);
    expect("MPI_File_read_all", 0, bytes(N), 0, 0, ranks);
    MPI_File_seek(file, place(2), MPI_SEEK_SET);
    MPI_File_iread(file, in, N, MPI_INT, &request);
    expect("MPI_File_iread", 0, bytes(N), 0, 0, ranks);
    wait_for_request();
    MPI_File_seek(file, place(3), MPI_SEEK_SET);
    MPI_File_iread_all(file, in, N, MPI_INT, &request);
    expect("MPI_File_iread_all", 0, bytes(N), 0, 0, ranks);
    wait_for_request();
    MPI_File_seek(file, place(4), MPI_SEEK_SET);
    MPI_File_read_all_begin(file, in, N, MPI_INT);
    expect("MPI_File_read_all_begin", 0, 0, 0, 0, ranks);
    MPI_File_read_all_end(file, in, MPI_STATUS_IGNORE);
    expect("MPI_File_read_all_end", 0, bytes(N), 0, 0, ranks);
    /* The file ends two integers later. */
    MPI_Offset size = 0;
    MPI_File_get_size(file, &size);
    MPI_File_read_at(file, size - bytes(2), in, N, MPI_INT, MPI_STATUS_IGNORE);
    expect("MPI_File_read_at", 0, bytes(2), 0, 0, ranks);
}

/* All ranks share one file pointer. */
static void shared(void) {
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_write_shared(file, out, N, MPI_INT, MPI_STATUS_IGNORE);
    expect("MPI_File_write_shared", bytes(N), 0, 0, 0, ranks);
    MPI_File_iwrite_shared(file, out, N, MPI_INT, &request);
    expect("MPI_File_iwrite_shared", bytes(N), 0, 0, 0, ranks);
    wait_for_request();
    MPI_File_write_ordered(file, out, N, MPI_INT, MPI_STATUS_IGNORE);
    expect("MPI_File_write_ordered", bytes(N), 0, 0, 0, ranks);
    MPI_File_write_ordered_begin(file, out, N, MPI_INT);
    expect("MPI_File_write_ordered_begin", bytes(N), 0, 0, 0, ranks);
    MPI_File_write_ordered_end(file, out, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_shared(file, in, N, MPI_INT, MPI_STATUS_IGNORE);
    expect("MPI_File_read_shared", 0, bytes(N), 0, 0, ranks);
    MPI_File_iread_shared(file, in, N, MPI_INT, &request);
    expect("MPI_File_iread_shared", 0, bytes(N), 0, 0, ranks);
    wait_for_request();
    MPI_File_read_ordered(file, in, N, MPI_INT, MPI_STATUS_IGNORE);
    expect("MPI_File_read_ordered", 0, bytes(N), 0, 0, ranks);
    MPI_File_read_ordered_begin(file, in, N, MPI_INT);
    expect("MPI_File_read_ordered_begin", 0, 0, 0, 0, ranks);
    MPI_File_read_ordered_end(file, in, MPI_STATUS_IGNORE);
    expect("MPI_File_read_ordered_end", 0, bytes(N), 0, 0, ranks);
}

int main(int argc, char **argv) {
    char path[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(path, sizeof path, "%s/data", argv[1]);
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        fail("cannot open the file");
    writes();
    MPI_Barrier(MPI_COMM_WORLD);
    expect("MPI_Barrier", 0, 0, 0, 0, ranks);
    reads();
    MPI_Barrier(MPI_COMM_WORLD);
    shared();
    MPI_File_close(&file);
    write_expectations(argv[1]);
    MPI_Finalize();
    return 0;
}
