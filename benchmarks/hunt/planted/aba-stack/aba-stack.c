/* A stack without locks. Popping reads the top and what is below it, and replaces the top if it is the same as before:
   also if it was away meanwhile, and what was below it is somebody else's by now. The twin counts the changes. */
#include "../planted.h"

enum { NODES = 8, ROUNDS = 40, NONE = 255 };
static atomic_uchar below[NODES];
static atomic_int owners[NODES];
static _Atomic uint64_t top; /* the number of changes, and the node */
static atomic_uint met;

static uint64_t changed(uint64_t old, unsigned node) {
    uint64_t changes = IS_FIXED ? (old >> 8) + 1 : 0;
    return changes << 8 | node;
}

static unsigned pop(bool is_unlucky) {
    (void)is_unlucky;
    uint64_t old = top;
    unsigned node, next;
    do {
        node = old & 255;
        if (node == NONE) fail("the stack is empty");
        next = below[node];
        UNLUCKY(is_unlucky);
    } while (!atomic_compare_exchange_strong(&top, &old, changed(old, next)));
    if (atomic_fetch_add(&owners[node], 1)) fail("a node has two owners");
    return node;
}

static void push(unsigned node) {
    atomic_fetch_sub(&owners[node], 1);
    uint64_t old = top;
    do
        below[node] = old & 255;
    while (!atomic_compare_exchange_strong(&top, &old, changed(old, node)));
}

static void *run(void *id) {
    pin((long)id);
    for (int i = 0; i < ROUNDS; i++) {
        meet(&met, 2);
        if (id) {
            work(50);
            unsigned first = pop(false), second = pop(false);
            push(first);
            meet(&met, 2);
            push(second);
        } else {
            work(10);
            push(pop(i == 7));
            work(80);
            unsigned first = pop(false), second = pop(false);
            push(second);
            push(first);
            meet(&met, 2);
        }
    }
    return NULL;
}

int main(void) {
    top = NONE;
    for (int i = 0; i < NODES; i++) {
        owners[i] = 1;
        push(i);
    }
    run_threads(run, 2);
    return 0;
}
