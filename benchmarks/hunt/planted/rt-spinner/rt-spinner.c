/* A thread with a high real-time priority polls for a result that a thread with a low one computes on the same CPU. It
   comes after the result: unless the other is late, and then never gets the CPU again. The twin sleeps. */
#include "../planted.h"

enum { ROUNDS = 20 };
static pthread_barrier_t begin;
static atomic_int result;
static int64_t base;

static void wait_until(int64_t ns) {
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {}
}

static void await_result(int wanted) {
    for (int seen; (seen = result) < wanted;)
        if (IS_FIXED) futex_wait(&result, seen);
}

static void *run(void *id) {
    struct sched_param priority = {.sched_priority = id ? 50 : 1};
    pin(0);
    require(!sched_setscheduler(0, SCHED_FIFO, &priority), "sched_setscheduler");
    for (int i = 1; i <= ROUNDS; i++) {
        if (pthread_barrier_wait(&begin) == PTHREAD_BARRIER_SERIAL_THREAD) base = now_ns() + 100000;
        pthread_barrier_wait(&begin);
        wait_until(base + (id ? 140000 : 0));
        if (id) {
            await_result(i);
            continue;
        }
        work(60);
        UNLUCKY(i == 7);
        result = i;
        futex_wake(&result, 1);
    }
    return NULL;
}

int main(void) {
    pthread_barrier_init(&begin, NULL, 2);
    run_threads(run, 2);
    return 0;
}
