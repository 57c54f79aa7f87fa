/* SPDX-License-Identifier: Apache-2.0 */
/* Text and bytes through stdio: streams with and without buffers, seeks, lines, characters, and one that stays open. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_text(int files, int lines) {
    for (int file = 0; file < files; file++) {
        char name[64], block[10000];
        snprintf(name, sizeof name, "text-%d.txt", file);
        FILE *stream = fopen(name, "w");
        for (int line = 0; line < lines; line++)
            fprintf(stream, "%d of %d\n", line, lines);
        memset(block, 'x', sizeof block);
        fwrite(block, 1, sizeof block, stream);
        for (int i = 0; i < 5000; i++)
            putc('y', stream);
        fputs("\nend\n", stream);
        fclose(stream);
    }
}

static long read_text(void) {
    char line[20000], word[64];
    long sum = 0;
    int a, b;
    FILE *stream = fopen("text-0.txt", "r");
    for (int i = 0; i < 100 && fscanf(stream, "%d %63s %d", &a, word, &b) == 3; i++)
        sum += a + b;
    while (fgets(line, sizeof line, stream))
        sum += line[0];
    fclose(stream);
    stream = fopen("text-1.txt", "r");
    size_t got;
    while ((got = fread(line, 1, sizeof line, stream)) > 0)
        sum += (long)got;
    rewind(stream);
    for (int c; (c = getc(stream)) != EOF;)
        sum += c;
    fclose(stream);
    return sum;
}

static void write_unbuffered(void) {
    FILE *stream = fopen("unbuffered.log", "w");
    setvbuf(stream, NULL, _IONBF, 0);
    for (int i = 0; i < 50; i++)
        fputs("a line of the log\n", stream);
    fclose(stream);
    stream = fopen("lines.log", "w");
    setvbuf(stream, NULL, _IOLBF, 0);
    for (int i = 0; i < 50; i++)
        fputs("a line of the log\n", stream);
    fclose(stream);
}

int main(int argc, char **argv) {
    const int lines = argc > 1 ? atoi(argv[1]) : 3000;
    write_text(3, lines);
    const long sum = read_text();
    write_unbuffered();
    FILE *open = fopen("open.txt", "w");
    fprintf(open, "%ld\n", sum);
    printf("%ld\n", sum);
    return 0;
}
