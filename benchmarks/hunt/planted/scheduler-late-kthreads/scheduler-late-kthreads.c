/* What is written to a terminal is handed over by a thread of the kernel. Two threads come later, as a rule, and poll
   until it has arrived: see scheduler-late-kthreads.bpf.c. */
#include "../planted.h"
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <termios.h>

enum { ROUNDS = 20 };
static pthread_barrier_t begin;
static atomic_int arrived;
static int64_t base;
static int terminal[2];

static void wait_until(int64_t ns) {
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {}
}

static void hand_over(int round) {
    char letter = 'a';
    work(20);
    UNLUCKY(round == 7);
    require(write(terminal[0], &letter, 1) == 1, "write");
    require(read(terminal[1], &letter, 1) == 1, "read");
    arrived = round;
}

static void *run(void *id) {
    for (int i = 1; i <= ROUNDS; i++) {
        if (pthread_barrier_wait(&begin) == PTHREAD_BARRIER_SERIAL_THREAD) base = now_ns() + 100000;
        pthread_barrier_wait(&begin);
        wait_until(base + (id ? 150000 : 0));
        if (!id) hand_over(i);
        while (arrived < i) {}
    }
    return NULL;
}

/* The guest has no terminals: they are mounted at its root, which is in memory. */
static void open_terminal(void) {
    struct termios raw;
    char name[32];
    int number, unlocked = 0;
    require(!mkdir("/terminals", 0755) || errno == EEXIST, "mkdir");
    require(!mount("devpts", "/terminals", "devpts", 0, "ptmxmode=0666"), "devpts");
    terminal[0] = open("/terminals/ptmx", O_RDWR | O_NOCTTY);
    require(terminal[0] >= 0 && !ioctl(terminal[0], TIOCGPTN, &number), "ptmx");
    require(!ioctl(terminal[0], TIOCSPTLCK, &unlocked), "unlock");
    snprintf(name, sizeof name, "/terminals/%d", number);
    terminal[1] = open(name, O_RDWR | O_NOCTTY);
    require(terminal[1] >= 0 && !tcgetattr(terminal[1], &raw), name);
    cfmakeraw(&raw);
    require(!tcsetattr(terminal[1], TCSANOW, &raw), "raw");
}

int main(void) {
    open_terminal();
    pthread_barrier_init(&begin, NULL, 3);
    run_threads(run, 3);
    return 0;
}
