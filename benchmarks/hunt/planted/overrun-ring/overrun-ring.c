/* A ring of eight items. The producer does not look whether it is full: items are lost if the consumer is late by more
   than the ring holds. The twin waits. */
#include "../planted.h"

enum { ITEMS = 400, SLOTS = 8 };
static atomic_int ring[SLOTS];
static atomic_int written, taken;
static atomic_uint met;

static void produce(void) {
    for (int i = 0; i < ITEMS; i++) {
        work(20);
        for (unsigned spins = 0; IS_FIXED && written - taken == SLOTS;)
            if (++spins > 100000) sched_yield();
        ring[i % SLOTS] = i;
        written = i + 1;
    }
}

static void consume(void) {
    for (int i = 0; i < ITEMS; i++) {
        for (unsigned spins = 0; written == i;)
            if (++spins > 100000) sched_yield();
        UNLUCKY(i == 70 || i == 71);
        if (ring[i % SLOTS] != i) fail("an item is lost");
        work(10);
        taken = i + 1;
    }
}

static void *run(void *id) {
    pin((long)id);
    meet(&met, 2);
    if (id)
        produce();
    else
        consume();
    return NULL;
}

int main(void) {
    run_threads(run, 2);
    return 0;
}
