/* A reader of a pipe that is told of new bytes once (EPOLLET), and then takes one. Where two bytes have come, one stays
   behind, and the reader waits for it for ever. The twin takes all that is there. */
#include "../planted.h"

#include <sys/epoll.h>

enum { BYTES = 60 };
static int ends[2];
static atomic_uint met;

static void read_all(void) {
    int poll = epoll_create1(0), taken = 0;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    require(poll >= 0 && !epoll_ctl(poll, EPOLL_CTL_ADD, ends[0], &event), "epoll");
    meet(&met, 2);
    while (taken < BYTES) {
        UNLUCKY(taken == 7);
        if (epoll_wait(poll, &event, 1, -1) < 0) continue;
        char byte;
        while (read(ends[0], &byte, 1) == 1) {
            taken++;
            if (!IS_FIXED) break;
        }
        work(2);
    }
}

static void *run(void *id) {
    pin((long)id);
    if (!id) {
        read_all();
        return NULL;
    }
    meet(&met, 2);
    for (int i = 0; i < BYTES; i++) {
        work(45);
        require(write(ends[1], "", 1) == 1, "write");
    }
    return NULL;
}

int main(void) {
    require(!pipe2(ends, O_NONBLOCK), "pipe2");
    run_threads(run, 2);
    return 0;
}
