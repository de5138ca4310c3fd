/* What CPUs do to each other, in figures: across KIND CPUS [N]. Each prints one line of words and whole numbers.
 *
 * jobs: as many threads as N do the same work, shared out among so many CPUs; prints the time until the last one ends.
 * futex: two threads on two CPUs wake each other N times; prints the time of a round trip.
 * yield: two threads on two CPUs hand on a word N times, and wait for it with `pause`; prints the same.
 * lock: each CPU's thread takes a lock for some work N times, and does as much without it; prints the time until all end.
 * signal: thread 1 computes on CPU 1 and is signalled N times from CPU 0; prints how much later, by the clock, it sees
 * each on average, at most, and how often before it was sent.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pinned.h"

enum { MOST_CPUS = 16, WORK = 100000 };

static int cpus, rounds;
static const char *kind;
static _Atomic int word;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static _Atomic long sent, late_sum, late_most, early, seen_count;

static void work(long loops) {
  for (volatile long i = 0; i < loops; i++) {
  }
}

static void hand_on(int own) {
  for (int i = 0; i < rounds; i++) {
    while (atomic_load(&word) != own) {
      if (*kind == 'f')
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1 - own, NULL, NULL, 0);
      else
        __builtin_ia32_pause();
    }
    atomic_store(&word, 1 - own);
    if (*kind == 'f')
      syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  }
}

static void caught(int number) {
  (void)number;
  long late = now() - atomic_load(&sent);
  atomic_fetch_add(&late_sum, late);
  if (late > atomic_load(&late_most))
    atomic_store(&late_most, late);
  if (late < 0)
    atomic_fetch_add(&early, 1);
  atomic_fetch_add(&seen_count, 1);
}

static void *thread(void *argument) {
  int number = (int)(long)argument;
  pin(number % cpus);
  pthread_barrier_wait(&barrier);
  if (!strcmp(kind, "jobs")) {
    work(WORK * 20L);
  } else if (!strcmp(kind, "lock")) {
    for (int i = 0; i < rounds; i++) {
      pthread_mutex_lock(&mutex);
      work(1000);
      pthread_mutex_unlock(&mutex);
      work(1000L * (cpus - 1));
    }
  } else if (!strcmp(kind, "signal")) {
    while (atomic_load(&seen_count) < rounds)
      work(100);
  } else {
    hand_on(number);
  }
  return NULL;
}

int main(int count, char **words) {
  if (count < 3)
    return 2;
  kind = words[1];
  cpus = atoi(words[2]);
  rounds = count > 3 ? atoi(words[3]) : 1000;
  int threads = !strcmp(kind, "jobs") ? rounds : !strcmp(kind, "lock") ? cpus : 2;
  pthread_t made[256];
  if (!strcmp(kind, "signal")) {
    struct sigaction action = {.sa_handler = caught};
    sigaction(SIGUSR1, &action, NULL);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&made[1], NULL, thread, (void *)1L);
    pin(0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < rounds; i++) {
      work(5000 + 37 * i % 1000);
      atomic_store(&sent, now());
      pthread_kill(made[1], SIGUSR1);
      while (atomic_load(&seen_count) <= i)
        work(20);
    }
    pthread_join(made[1], NULL);
    printf("late %ld most %ld early %ld\n", atomic_load(&late_sum) / rounds, atomic_load(&late_most), atomic_load(&early));
    return 0;
  }
  pthread_barrier_init(&barrier, NULL, threads + 1);
  for (long i = 0; i < threads; i++)
    pthread_create(&made[i], NULL, thread, (void *)i);
  long began = now();
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < threads; i++)
    pthread_join(made[i], NULL);
  long took = now() - began;
  printf("ns %ld each %ld\n", took, took / (rounds > 0 ? rounds : 1));
  return 0;
}
