/* A mutex of a futex: 0 free, 1 taken, 2 taken and somebody may sleep. Unlocking looks for sleepers and then frees it in
   a second step: a sleeper that comes in between is never woken. */
#include "../planted.h"

enum { ROUNDS = 60 };
static atomic_uint met;
static atomic_int mutex;
static long sum;

static void lock(void) {
    int seen = 0;
    if (atomic_compare_exchange_strong(&mutex, &seen, 1)) return;
    while (atomic_exchange(&mutex, 2)) futex_wait(&mutex, 2);
}

static void unlock(bool is_unlucky) {
    (void)is_unlucky;
#ifdef FIXED
    bool has_sleepers = atomic_exchange(&mutex, 0) == 2;
#else
    bool has_sleepers = mutex == 2;
    UNLUCKY(is_unlucky);
    mutex = 0;
#endif
    if (has_sleepers) futex_wake(&mutex, 1);
}

static void *run(void *id) {
    pin((long)id);
    for (int i = 0; i < ROUNDS; i++) {
        meet(&met, 2);
        work(id ? 60 : 10);
        lock();
        sum++;
        work(5);
        unlock(!id && i == 7);
    }
    return NULL;
}

int main(void) {
    run_threads(run, 2);
    return sum != 2 * ROUNDS;
}
