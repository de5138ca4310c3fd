/* A barrier that counts threads, and begins anew with 0: whoever does not see the 0 before another comes to the next
   round waits for it for ever. The twin waits for the number of the round. */
#include "../planted.h"

enum { ROUNDS = 50, THREADS = 2 };
static atomic_int arrived, generation;

static void barrier(bool is_unlucky) {
    (void)is_unlucky;
    int mine = generation;
    if (atomic_fetch_add(&arrived, 1) == THREADS - 1) {
        arrived = 0;
        generation = mine + 1;
        return;
    }
    UNLUCKY(is_unlucky);
    for (unsigned spins = 0; IS_FIXED ? generation == mine : arrived != 0;)
        if (++spins > 100000) sched_yield();
}

static void *run(void *id) {
    pin((long)id);
    for (int i = 0; i < ROUNDS; i++) {
        bool is_first = (i % 2 == 0) == !id;
        work(is_first ? 40 : 75);
        barrier(i == 8);
    }
    return NULL;
}

int main(void) {
    run_threads(run, THREADS);
    return 0;
}
