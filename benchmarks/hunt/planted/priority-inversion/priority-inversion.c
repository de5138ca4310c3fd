/* Three threads with real-time priorities on one CPU. The lowest holds a lock for a moment, the highest needs it, and
   the medium one computes until the highest is through. The twin's lock lends the priority of whoever waits. */
#include "../planted.h"

enum { ROUNDS = 15 };
static pthread_mutex_t lock;
static pthread_barrier_t begin;
static atomic_int through;
static int64_t base;

static void wait_until(int64_t ns) {
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {}
}

static void *run(void *id) {
    long rank = (long)id;
    struct sched_param priority = {.sched_priority = 10 * (rank + 1)};
    pin(0);
    require(!sched_setscheduler(0, SCHED_FIFO, &priority), "sched_setscheduler");
    for (int i = 1; i <= ROUNDS; i++) {
        if (pthread_barrier_wait(&begin) == PTHREAD_BARRIER_SERIAL_THREAD) base = now_ns() + 100000;
        pthread_barrier_wait(&begin);
        wait_until(base + 80000 * rank);
        if (rank == 1) {
            while (through < i) {}
            continue;
        }
        work(rank ? 0 : 10);
        pthread_mutex_lock(&lock);
        UNLUCKY(!rank && i == 7);
        work(2);
        pthread_mutex_unlock(&lock);
        if (rank) through = i;
    }
    return NULL;
}

int main(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (IS_FIXED) pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&lock, &attributes);
    pthread_barrier_init(&begin, NULL, 3);
    run_threads(run, 3);
    return 0;
}
