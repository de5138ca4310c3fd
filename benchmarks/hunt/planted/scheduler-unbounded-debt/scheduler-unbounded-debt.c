/* A thread with a low priority computes for a moment, again and again, beside three that always do and take turns: see
   scheduler-unbounded-debt.bpf.c. */
#include "../planted.h"
#include <sys/resource.h>

enum { ROUNDS = 20 };
static atomic_int is_over;

static void *run(void *id) {
    if (id) {
        while (!is_over) {
            work(80);
            sched_yield();
        }
        return NULL;
    }
    require(!setpriority(PRIO_PROCESS, syscall(SYS_gettid), 10), "setpriority");
    for (int i = 0; i < ROUNDS; i++) {
        work(20);
        UNLUCKY(i == 7);
        usleep(100);
    }
    is_over = 1;
    return NULL;
}

int main(void) {
    run_threads(run, 4);
    return 0;
}
