/* Two threads count into one variable: each reads it, adds one, and writes it back. */
#include "../planted.h"

enum { ROUNDS = 25 };
static atomic_uint met;
static atomic_int count;

__attribute__((noinline)) static int next(int value, bool is_unlucky) {
    (void)is_unlucky;
    UNLUCKY(is_unlucky);
    return value + 1;
}

static void *run(void *id) {
    pin((long)id);
    unsigned random = (long)id;
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 5 == 0) {
            meet(&met, 2);
            work(id ? 40 : 10);
        }
        random = random * 1664525u + 1013904223u;
        work(20 + (random >> 16) % 64);
        if (IS_FIXED) {
            atomic_fetch_add(&count, 1);
        } else {
            int value = atomic_load_explicit(&count, memory_order_relaxed);
            atomic_store_explicit(&count, next(value, !id && i % 5 == 1), memory_order_relaxed);
        }
    }
    return NULL;
}

int main(void) {
    run_threads(run, 2);
    if (count != 2 * ROUNDS) fail("a count is lost");
    return 0;
}
