/* What runtimes of languages do: it goes on on a stack of its own and back (swapcontext(3)), is interrupted by a timer's
 * signal, and goes from the handler to another function that returns to where it was interrupted (as Go's does to take
 * the CPU from a goroutine). stacks ROUNDS: each loop has ROUNDS rounds of two instructions. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>
#include <ucontext.h>

static ucontext_t first, second;
static char stack[1 << 16];
static uint64_t rounds;

#define LOOP(times) \
    do { \
        uint64_t left = (times); \
        __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(left) : : "cc"); \
    } while (0)

void taken(void);
__asm__(".globl taken\n.type taken, @function\ntaken:\n\tpushfq\n\tpopfq\n\tret\n.size taken, .-taken\n");

__attribute__((noinline)) static void preempt(int number, siginfo_t *about, void *where) {
    (void)number, (void)about;
    greg_t *registers = ((ucontext_t *)where)->uc_mcontext.gregs;
    registers[REG_RSP] -= 8;
    *(greg_t *)registers[REG_RSP] = registers[REG_RIP];
    registers[REG_RIP] = (greg_t)taken;
}

__attribute__((noinline)) void aside(void) {
    for (int part = 0; part < 3; part++) {
        LOOP(rounds);
        swapcontext(&second, &first);
    }
}

__attribute__((noinline)) void inner(void) {
    LOOP(2 * rounds);
    __asm__ volatile("");
}

int main(int count, char **words) {
    struct sigaction action = {.sa_sigaction = preempt, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct itimerval every = {{0, 1000}, {0, 1000}};
    rounds = count > 1 ? strtoull(words[1], 0, 10) : 1;
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &every, 0);
    getcontext(&second);
    second.uc_stack.ss_sp = stack;
    second.uc_stack.ss_size = sizeof stack;
    second.uc_link = &first;
    makecontext(&second, aside, 0);
    for (int part = 0; part < 3; part++) {
        swapcontext(&first, &second);
        inner();
    }
    LOOP(rounds);
}
