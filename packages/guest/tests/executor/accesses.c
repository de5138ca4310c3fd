/* Accesses to memory that can be reckoned by hand: WHAT KIB ROUNDS, all of fixed width.
 * chase: loads of one line after the other, in the order of a cycle that looks random; large: the same in pages of 2 MiB
 * (as far as the guest gives them); copy: STREAM's; matrix: a product of matrices of so many KiB each, the second by
 * columns. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define LINE 64
#define MOST (8L << 20)

static char memory[3 * MOST] __attribute__((aligned(1 << 21)));

static unsigned long random_number(unsigned long *state) {
    *state = *state * 6364136223846793005UL + 1442695040888963407UL;
    return *state >> 33;
}

/* Sattolo's algorithm: one cycle through all lines. */
static void link_lines(long lines) {
    unsigned long state = 1;
    for (long line = 0; line < lines; line++)
        *(long *)(memory + line * LINE) = line;
    for (long line = lines - 1; line > 0; line--) {
        long other = random_number(&state) % line;
        long kept = *(long *)(memory + line * LINE);
        *(long *)(memory + line * LINE) = *(long *)(memory + other * LINE);
        *(long *)(memory + other * LINE) = kept;
    }
}

static void chase(long lines, long rounds) {
    long line = 0;
    for (long left = lines * rounds; left > 0; left--)
        line = *(volatile long *)(memory + line * LINE);
}

static void copy(long words, long rounds) {
    for (long round = 0; round < rounds; round++)
        for (long word = 0; word < words; word++)
            ((volatile long *)(memory + MOST))[word] = ((volatile long *)memory)[word];
}

static void multiply(long rows, long rounds) {
    volatile double *a = (void *)memory, *b = (void *)(memory + MOST), *c = (void *)(memory + 2 * MOST);
    for (long round = 0; round < rounds; round++)
        for (long row = 0; row < rows; row++)
            for (long column = 0; column < rows; column++) {
                double sum = 0;
                for (long inner = 0; inner < rows; inner++)
                    sum += a[row * rows + inner] * b[inner * rows + column];
                c[row * rows + column] = sum;
            }
}

/* What was never written is one page of zeros, however large. */
static void fill(long kib) {
    for (long at = 0; at < 3 * MOST; at += MOST)
        for (long byte = 0; byte < kib << 10; byte += 4096)
            *(volatile char *)(memory + at + byte) = 0;
}

int main(int count, char **words) {
    (void)count;
    long kib = atol(words[2]), rounds = atol(words[3]), rows = 0;
    if (words[1][0] == 'l')
        madvise(memory, sizeof memory, MADV_HUGEPAGE);
    else
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    fill(kib);
    if (words[1][1] == 'h' || words[1][0] == 'l') {
        link_lines((kib << 10) / LINE);
        chase((kib << 10) / LINE, rounds);
    } else if (words[1][1] == 'o') {
        copy((kib << 10) / 8, rounds);
    } else {
        while ((rows + 1) * (rows + 1) * 8 <= kib << 10)
            rows++;
        multiply(rows, rounds);
    }
    return 0;
}
