/* What the planted bugs share. FIXED builds the correct twin. UNLUCKY marks the moments at which a bug can be hit: it
   is nothing unless PAUSE_US is defined, as the test does that proves each bug real. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef FIXED
#define IS_FIXED 1
#else
#define IS_FIXED 0
#endif

static inline int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static inline void stand_still(long us) {
    for (int64_t end = now_ns() + us * 1000; now_ns() < end;) {}
}

#ifdef PAUSE_US
#define UNLUCKY(when) \
    if (when) stand_still(PAUSE_US)
#else
#define UNLUCKY(when) \
    do {              \
    } while (0)
#endif

/* Compute: 500 instructions for each microsecond of a guest. */
static inline void work(long us) {
    for (long i = us * 250; i > 0; i--) __asm__ volatile("");
}

static inline void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static inline void require(bool succeeded, const char *what) {
    if (succeeded) return;
    perror(what);
    exit(2);
}

/* Stay on this CPU, if the machine has so many. */
static inline void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu % sysconf(_SC_NPROCESSORS_ONLN), &set);
    require(!sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
}

/* Wait until `n` threads are here. Each thread calls it equally often. */
static inline void meet(atomic_uint *met, unsigned n) {
    unsigned all = (atomic_fetch_add(met, 1) / n + 1) * n;
    for (unsigned spins = 0; (int)(atomic_load(met) - all) < 0;)
        if (++spins > 100000) sched_yield();
}

static inline long futex_wait(atomic_int *word, int expected) {
    return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static inline long futex_wake(atomic_int *word, int most) {
    return syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

typedef void *body(void *);

static inline pthread_t start(body *run, long id) {
    pthread_t thread;
    require(!pthread_create(&thread, NULL, run, (void *)id), "pthread_create");
    return thread;
}

/* Run `n` threads with the numbers 0 to n - 1, to their ends. */
static inline void run_threads(body *run, int n) {
    pthread_t threads[16];
    for (int i = 0; i < n; i++) threads[i] = start(run, i);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}
