/* Goes from CPU to CPU: ROUNDS times to the other one, to make a child there that counts PAGES and ends. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void __attribute__((noinline)) go_to(int cpu) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    if (sched_setaffinity(0, sizeof only, &only))
        exit(3);
}

static void __attribute__((noinline)) touch(volatile char *memory, int pages) {
    for (int page = 0; page < pages; page++)
        memory[page << 12] = 1;
}

static void __attribute__((noinline)) wander(int rounds, int pages) {
    for (int round = 0; round < rounds; round++) {
        int status;
        go_to(round % 2);
        syscall(SYS_getppid);
        volatile char *memory = mmap(0, 1 << 24, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pid_t child = fork();
        if (!child) {
            go_to((round + 1) % 2);
            touch(memory, pages);
            _exit(0);
        }
        touch(memory, 2 * pages);
        if (waitpid(child, &status, 0) != child || status || munmap((void *)memory, 1 << 24))
            exit(4);
    }
}

int main(int count, char **words) {
    (void)count;
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    wander(atoi(words[1]), atoi(words[2]));
    return 0;
}
