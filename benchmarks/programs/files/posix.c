/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the system by their own names: pieces, positions, vectors, appended and copied files, duplicated
 * descriptors. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

static void check(int ok) {
    if (!ok)
        perror("posix");
}

int main(void) {
    char data[8192];
    memset(data, 'z', sizeof data);
    int fd = open("pieces.bin", O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 200; i++)
        check(write(fd, data, (size_t)(100 + i)) > 0);
    for (int i = 0; i < 50; i++)
        check(pwrite(fd, data, 4096, i * 4096) > 0 && pread(fd, data, 512, i * 512) > 0);
    struct iovec parts[3] = {{data, 100}, {data + 100, 1000}, {data + 1100, 10}};
    check(writev(fd, parts, 3) == 1110);
    lseek(fd, 0, SEEK_SET);
    check(readv(fd, parts, 3) == 1110);
    while (read(fd, data, sizeof data) > 0) {
    }
    fsync(fd);
    const int twice = dup(fd);
    check(write(twice, data, 77) == 77);
    close(twice);
    close(fd);
    for (int step = 0; step < 20; step++) {
        char name[64];
        snprintf(name, sizeof name, "step%03d.dat", step);
        fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
        check(write(fd, data, 1000) == 1000);
        close(fd);
    }
    const int from = open("pieces.bin", O_RDONLY), to = open("copy.bin", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    check(sendfile(to, from, NULL, 10000) == 10000);
    check(copy_file_range(from, NULL, to, NULL, 20000, 0) == 20000);
    close(from);
    close(to);
    return 0;
}
