/* A pair of figures behind a sequence number that is odd while they are written. The reader that sees it change tries
   once more, and takes what it then gets. The twin tries until it gets both of the same time. */
#include "../planted.h"

enum { ROUNDS = 60 };
static atomic_uint met, sequence;
static atomic_int first, second;

static void write_pair(int value, bool is_unlucky) {
    (void)is_unlucky;
    sequence++;
    first = value;
    UNLUCKY(is_unlucky);
    second = value;
    sequence++;
}

static void read_pair(bool is_unlucky) {
    (void)is_unlucky;
    for (int attempt = 0;; attempt++) {
        unsigned before = sequence;
        int a = first;
        UNLUCKY(is_unlucky && !attempt);
        int b = second;
        bool is_whole = before % 2 == 0 && sequence == before;
        if (!is_whole && (IS_FIXED || attempt == 0)) continue;
        if (a != b) fail("the figures are of two times");
        return;
    }
}

static void *run(void *id) {
    pin((long)id);
    for (int i = 0; i < ROUNDS; i++) {
        meet(&met, 2);
        work(id ? 60 : 10);
        if (id) {
            write_pair(2 * i, false);
            work(30);
            write_pair(2 * i + 1, i == 7);
        } else {
            read_pair(i == 7);
        }
    }
    return NULL;
}

int main(void) {
    run_threads(run, 2);
    return 0;
}
