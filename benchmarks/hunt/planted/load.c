/* Load the kernel module MODULE, which does all its work in its init function. */
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

__asm__(".section .rodata\n"
        "module: .incbin \"" MODULE "\"\n"
        "module_end:\n"
        ".previous\n");
extern const char module[], module_end[];

int main(void) {
    if (!syscall(SYS_init_module, module, module_end - module, "")) return 0;
    perror(MODULE);
    return 2;
}
