/* Does as much as it is told, and nothing of its own that depends on anything: LOOPS PAGES CALLS, each with six digits. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **words) {
    (void)count;
    long loops = atol(words[1]), pages = atol(words[2]), calls = atol(words[3]);
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    volatile char *memory = mmap(0, 1 << 24, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long page = 0; page < pages; page++)
        memory[page << 12] = 1;
    for (long call = 0; call < calls; call++)
        syscall(SYS_getppid);
    /* Two instructions each time. */
    asm volatile("1: dec %0\n\tjnz 1b" : "+r"(loops) : : "cc");
    return 0;
}
