/* Work that differs in what one structure of a processor makes of it: structures KIND N STEPS. Prints ps of each step.
 *
 * chase KIB: loads that depend on each other, in the order of a cycle that looks random, in pages of 4 KiB; large: in
 * pages of 2 MiB; both: two such cycles side by side, each in half of it; row: one line after the other.
 * pages COUNT: such loads of one line of each page.
 * random, sorted KIB: a jump for each byte, which is as likely to be taken or in order.
 * columns, rows SIDE: the words of a matrix, one below the other or beside it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64, PAGE = 4096, LARGE = 2 << 20 };

static char *memory;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static uint64_t random_number(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

static void take(long bytes, int advice) {
  memory = mmap(NULL, bytes + LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    exit(1);
  memory = (char *)(((uintptr_t)memory + LARGE - 1) / LARGE * LARGE);
  madvise(memory, bytes, advice);
}

/* A cycle through all places: the next of a place is a times it and c, modulo their number, which is a power of 2. In
 * each page another line, so that pages do not share a set of the caches. */
static void link_places(char *begin, long places, long apart, long a, long c) {
  for (long place = 0; place < places; place++) {
    long next = (place * a + c) & (places - 1), spread = apart / LINE - 1;
    *(char **)(begin + place * apart + (place & spread) * LINE) = begin + next * apart + (next & spread) * LINE;
  }
}

static char *follow(char *at, long steps) {
  while (steps--)
    at = *(char *volatile *)at;
  return at;
}

int main(int count, char **words) {
  if (count < 4)
    return 2;
  const char *kind = words[1];
  long size = atol(words[2]), steps = atol(words[3]);
  volatile uint64_t sum = 0;
  uint64_t began = 0, state = 1;
  const long a = 1664525, c = 1013904223;
  if (!strcmp(kind, "random") || !strcmp(kind, "sorted")) {
    long bytes = size << 10;
    take(bytes, MADV_NOHUGEPAGE);
    for (long byte = 0; byte < bytes; byte++)
      memory[byte] = !strcmp(kind, "sorted") ? byte * 256 / bytes - 128 : (char)random_number(&state);
    began = now();
    for (long step = 0; step < steps; step++)
      if (*(volatile signed char *)(memory + step % bytes) >= 0)
        sum = sum + 1;
  } else if (!strcmp(kind, "columns") || !strcmp(kind, "rows")) {
    take(size * size * 8, MADV_NOHUGEPAGE);
    memset(memory, 1, size * size * 8);
    long by = !strcmp(kind, "rows") ? 1 : size;
    began = now();
    for (long step = 0, at = 0; step < steps; step++) {
      sum = sum + ((volatile uint64_t *)memory)[at];
      at += by;
      if (at >= size * size)
        at -= size * size - 1;
    }
  } else if (!strcmp(kind, "pages")) {
    take(size * PAGE, MADV_NOHUGEPAGE);
    link_places(memory, size, PAGE, a, c);
    began = now();
    sum = (uintptr_t)follow(memory, steps);
  } else {
    long bytes = size << 10, lines = bytes / LINE;
    take(bytes, !strcmp(kind, "large") ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (!strcmp(kind, "both")) {
      char *at = memory, *other = memory + bytes / 2;
      link_places(memory, lines / 2, LINE, a, c);
      link_places(other, lines / 2, LINE, a, c);
      began = now();
      for (long step = 0; step < steps; step += 2) {
        at = *(char *volatile *)at;
        other = *(char *volatile *)other;
      }
      sum = (uintptr_t)at ^ (uintptr_t)other;
    } else {
      int is_row = !strcmp(kind, "row");
      link_places(memory, lines, LINE, is_row ? 1 : a, is_row ? 1 : c);
      began = now();
      sum = (uintptr_t)follow(memory, steps);
    }
  }
  printf("ps %llu\n", (unsigned long long)((now() - began) * 1000 / steps));
  return sum == 1;
}
