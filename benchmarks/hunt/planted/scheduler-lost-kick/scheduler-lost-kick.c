/* One thread wakes another and polls for its answer. A third one has the other CPU at times, and leaves it a little
   before or after: see scheduler-lost-kick.bpf.c. */
#include "../planted.h"

enum { ROUNDS = 40 };
static atomic_int begun, letter, answer;

static void wait_for(atomic_int *word, int wanted) {
    for (int seen; (seen = *word) < wanted;) futex_wait(word, seen);
}

static void *run(void *id) {
    for (int i = 1; i <= ROUNDS; i++) {
        switch ((long)id) {
            case 0:
                begun = i;
                futex_wake(&begun, 1);
                work(60);
                letter = i;
                futex_wake(&letter, 1);
                while (answer < i) {}
                break;
            case 1:
                wait_for(&letter, i);
                work(5);
                answer = i;
                break;
            default:
                wait_for(&begun, i);
                work(i % 2 ? 30 : 95);
                break;
        }
    }
    return NULL;
}

int main(void) {
    run_threads(run, 3);
    return 0;
}
