/* An event of a futex with a fallback: whoever waits looks again every two seconds. The expected value is read after
   the check instead of before it, so a wake-up can be lost: everything ends well, but two seconds late. */
#include "../planted.h"

enum { EVENTS = 50 };
static atomic_uint met;
static atomic_int sequence, done;

static void wait_for(int event) {
    struct timespec fallback = {.tv_sec = 2};
    for (;;) {
#ifdef FIXED
        int expected = sequence;
        if (done >= event) return;
#else
        if (done >= event) return;
        UNLUCKY(event == 7);
        int expected = sequence;
#endif
        syscall(SYS_futex, &sequence, FUTEX_WAIT_PRIVATE, expected, &fallback, NULL, 0);
    }
}

static void *run(void *id) {
    pin((long)id);
    for (int i = 1; i <= EVENTS; i++) {
        meet(&met, 2);
        if (id) {
            work(50);
            done = i;
            sequence++;
            futex_wake(&sequence, 1);
        } else {
            work(10);
            wait_for(i);
        }
    }
    return NULL;
}

int main(void) {
    run_threads(run, 2);
    return 0;
}
