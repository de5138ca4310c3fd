/* A thread that is to run every 500 us sleeps for what it computed when it woke up, so each delay moves all later
   rounds. It fails once the plan has moved by 300 us. The twin computes the times of all rounds from the first. */
#include "../planted.h"

enum { ROUNDS = 40, PERIOD_NS = 500000, SLACK_NS = 300000 };

int main(void) {
    pin(0);
    int64_t first = now_ns(), planned = first, moved = 0, usual = 0;
    for (int i = 1; i <= ROUNDS; i++) {
        UNLUCKY(i % 10 == 7);
        int64_t before = planned;
        planned = IS_FIXED ? first + (int64_t)i * PERIOD_NS : now_ns() + PERIOD_NS;
        /* What waking up usually costs is not a delay: the least of all rounds. */
        int64_t step = planned - before - PERIOD_NS;
        if (i > 1 && (i == 2 || step < usual)) usual = step;
        if (i > 1) moved += step;
        if (moved - (i - 1) * usual > SLACK_NS) fail("the deadline is missed");
        struct timespec time = {planned / 1000000000, planned % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {}
        work(50);
    }
    return 0;
}
