/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to its output, then to files that it opens in the place of its output, then to its output again. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    const int kept = dup(1), file = open("first.txt", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (write(1, "12345", 5) != 5 || dup2(file, 1) != 1 || write(1, "1234567", 7) != 7)
        return 1;
    if (!freopen("second.txt", "w", stdout) || fputs("123456789", stdout) < 0 || fflush(stdout) != 0)
        return 2;
    if (dup2(kept, 1) != 1 || write(1, "1", 1) != 1)
        return 3;
    return 0;
}
