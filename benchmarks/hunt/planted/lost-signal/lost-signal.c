/* A process waits for a signal of another: it looks whether the signal has come, and then sleeps until one comes. One
   in between is lost. The twin lets signals in only while it sleeps. */
#include "../planted.h"

enum { ROUNDS = 40 };
static volatile sig_atomic_t received;
static struct shared {
    atomic_uint met;
} *shared;

static void count(int number) {
    (void)number;
    received++;
}

static void send(pid_t receiver) {
    pin(1);
    for (int i = 0; i < ROUNDS; i++) {
        meet(&shared->met, 2);
        work(80);
        require(!kill(receiver, SIGUSR1), "kill");
    }
    exit(0);
}

int main(void) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(shared != MAP_FAILED, "mmap");
    sigset_t blocked, before;
    sigemptyset(&blocked);
    if (IS_FIXED) sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    signal(SIGUSR1, count);
    pid_t parent = getpid(), child = fork();
    require(child >= 0, "fork");
    if (!child) send(parent);
    pin(0);
    for (int i = 1; i <= ROUNDS; i++) {
        meet(&shared->met, 2);
        work(10);
        while (received < i) {
            UNLUCKY(i == 7);
            if (IS_FIXED)
                sigsuspend(&before);
            else
                pause();
        }
    }
    waitpid(child, NULL, 0);
    return 0;
}
