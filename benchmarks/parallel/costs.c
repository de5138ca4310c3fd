/* What accesses to memory cost, by the clock: costs KIND WORDS. Each prints whole numbers: of ps, or of ns (move).
 *
 * chase KIB CPU [NODE]: a load of one line after the other, in the order of a cycle that looks random, on one CPU, from
 * memory of one node: each load.
 * share BYTES N CPU CPU: two threads add one N times, each to a word of its own, which are so many bytes apart: each.
 * pass LINES N CPU CPU: two threads hand so many lines on to each other, which each of them changes: each round trip.
 * move KIB N CPU CPU: a task reads its memory, on the one CPU or, after each time, on the other: each time.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pinned.h"

enum { LINE = 64, MPOL_BIND = 2, LEAST_LOADS = 20000 };

static char *memory;
static long bytes, lines, rounds;
static int cpus[2];
static pthread_barrier_t barrier;
static _Atomic int turn;
static long began[2], ended[2];

static void take_memory(long size) {
  memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    perror("mmap");
    exit(1);
  }
  for (long at = 0; at < size; at += 4096)
    memory[at] = 0;
}

/* Sattolo's algorithm: one cycle through all lines. */
static void link_lines(void) {
  unsigned long state = 1;
  for (long line = 0; line < lines; line++)
    *(long *)(memory + line * LINE) = line;
  for (long line = lines - 1; line > 0; line--) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    long other = (state >> 33) % line, kept = *(long *)(memory + line * LINE);
    *(long *)(memory + line * LINE) = *(long *)(memory + other * LINE);
    *(long *)(memory + other * LINE) = kept;
  }
}

static void chase(long loads) {
  long line = 0;
  while (loads--)
    line = *(volatile long *)(memory + line * LINE);
}

static void *add(void *argument) {
  int number = (int)(long)argument;
  volatile long *word = (long *)(memory + number * bytes);
  pin(cpus[number]);
  pthread_barrier_wait(&barrier);
  began[number] = now();
  for (long i = 0; i < rounds; i++)
    *word += 1;
  ended[number] = now();
  return NULL;
}

static void *hand_on(void *argument) {
  int own = (int)(long)argument;
  pin(cpus[own]);
  pthread_barrier_wait(&barrier);
  began[own] = now();
  for (long i = 0; i < rounds; i++) {
    while (atomic_load(&turn) != own)
      __builtin_ia32_pause();
    for (long line = 0; line < lines; line++)
      *(volatile long *)(memory + line * LINE) += 1;
    atomic_store(&turn, 1 - own);
  }
  ended[own] = now();
  return NULL;
}

static long of_two(void *(*does)(void *)) {
  pthread_t made[2];
  pthread_barrier_init(&barrier, NULL, 2);
  for (long i = 0; i < 2; i++)
    pthread_create(&made[i], NULL, does, (void *)i);
  for (long i = 0; i < 2; i++)
    pthread_join(made[i], NULL);
  return (ended[0] > ended[1] ? ended[0] : ended[1]) - (began[0] < began[1] ? began[0] : began[1]);
}

static long sweeps(int moves) {
  long spent = 0;
  for (long i = 0; i < rounds; i++) {
    if (moves)
      pin(cpus[i % 2]);
    long before = now();
    for (long line = 0; line < lines; line++)
      *(volatile long *)(memory + line * LINE) += 1;
    spent += now() - before;
  }
  return spent / rounds;
}

int main(int count, char **words) {
  if (count < 4)
    return 2;
  const char *kind = words[1];
  if (!strcmp(kind, "chase")) {
    pin(atoi(words[3]));
    if (count > 4) {
      unsigned long mask = 1UL << atoi(words[4]);
      if (syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 64)) {
        perror("set_mempolicy");
        return 1;
      }
    }
    lines = (atol(words[2]) << 10) / LINE;
    take_memory(lines * LINE);
    link_lines();
    long loads = lines > LEAST_LOADS ? lines : LEAST_LOADS;
    chase(lines);
    long before = now();
    chase(loads);
    printf("ps %ld\n", (now() - before) * 1000 / loads);
    return 0;
  }
  rounds = atol(words[3]);
  cpus[0] = atoi(words[4]);
  cpus[1] = atoi(words[5]);
  if (!strcmp(kind, "share")) {
    bytes = atol(words[2]);
    take_memory(4096);
    printf("ps %ld\n", of_two(add) * 1000 / rounds);
  } else if (!strcmp(kind, "pass")) {
    lines = atol(words[2]);
    take_memory(lines * LINE);
    printf("ps %ld\n", of_two(hand_on) * 1000 / rounds);
  } else {
    lines = (atol(words[2]) << 10) / LINE;
    take_memory(lines * LINE);
    pin(cpus[0]);
    sweeps(0);
    long stays = sweeps(0), moves = sweeps(1);
    printf("stays %ld moves %ld\n", stays, moves);
  }
  return 0;
}
