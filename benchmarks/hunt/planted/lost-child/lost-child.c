/* A process starts children in pairs and counts their ends: one for each SIGCHLD. Signals of the same kind do not queue,
   so two ends can be told by one. The twin asks until no child is left to be waited for. */
#include "../planted.h"

enum { PAIRS = 12 };
static volatile sig_atomic_t ended;

static void reap(int number) {
    (void)number;
    int error = errno;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
        ended++;
        if (!IS_FIXED) break;
    }
    errno = error;
}

static void child(int cpu, atomic_uint *met, long us) {
    pin(cpu);
    meet(met, 2);
    work(us);
    _exit(0);
}

int main(void) {
    atomic_uint *met = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(met != MAP_FAILED, "mmap");
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    signal(SIGCHLD, reap);
    pin(0);
    for (int i = 1; i <= PAIRS; i++) {
        for (int twin = 0; twin < 2; twin++) {
            pid_t pid = fork();
            require(pid >= 0, "fork");
            if (!pid) child(1 + twin, met, twin ? 10 : 60);
        }
        UNLUCKY(i == 7);
        while (ended < 2 * i) sigsuspend(&before);
    }
    return 0;
}
