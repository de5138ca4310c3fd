/* The time by the clock, in ns, and one CPU for the thread that asks. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set)) {
    perror("sched_setaffinity");
    exit(1);
  }
}
