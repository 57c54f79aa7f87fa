/* SPDX-License-Identifier: Apache-2.0 */
/* What is read and written by known calls; the working folder gets the files. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#define OWN __attribute__((noinline))

OWN static void pieces(void) {
    char data[4096] = "";
    const int fd = open("part-17.bin", O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 10; i++)
        if (write(fd, data, 100) != 100)
            abort();
    lseek(fd, 0, SEEK_SET);
    while (read(fd, data, 512) > 0) {
    }
    fsync(fd);
    close(fd);
}

OWN static void lines(void) {
    FILE *stream = fopen("part-18.bin", "w");
    for (int i = 0; i < 1000; i++)
        fprintf(stream, "line %6d of text\n", i); /* 20 bytes */
    fclose(stream);
    char line[64];
    int count = 0;
    stream = fopen("part-18.bin", "r");
    while (fgets(line, sizeof line, stream))
        count++;
    fclose(stream);
    if (count != 1000)
        abort();
}

OWN static void copies(void) {
    const int from = open("part-17.bin", O_RDONLY), to = open("copy.bin", O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (sendfile(to, from, NULL, 600) != 600 || copy_file_range(from, NULL, to, NULL, 4096, 0) != 400)
        abort();
    char *data = mmap(NULL, 1000, PROT_READ, MAP_PRIVATE, to, 0);
    if (data == MAP_FAILED || munmap(data, 1000))
        abort();
    close(from);
    close(to);
}

OWN static void no_files(void) {
    int ends[2], pair[2];
    char data[16] = "";
    if (pipe(ends) || write(ends[1], data, 16) != 16 || read(ends[0], data, 16) != 16)
        abort();
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || write(pair[1], data, 8) != 8 || read(pair[0], data, 8) != 8)
        abort();
    if (write(2, "error\n", 6) != 6)
        abort();
    printf("output\n");
}

int main(void) {
    pieces();
    lines();
    copies();
    no_files();
    FILE *stream = fopen("left.txt", "w"); /* the C library writes it at the end */
    fputs("never closed\n", stream);
    return 0;
}
