/* Load the planted scheduler, and keep it until it is told to end. */
#include <bpf/libbpf.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

__asm__(".section .rodata\n"
        "object: .incbin \"planted.bpf.o\"\n"
        "object_end:\n"
        ".previous\n");
extern const char object[], object_end[];

static volatile sig_atomic_t is_over;

static void end(int number) {
    (void)number;
    is_over = 1;
}

int main(void) {
    signal(SIGTERM, end);
    signal(SIGINT, end);
    struct bpf_object *program = bpf_object__open_mem(object, object_end - object, NULL);
    if (!program || bpf_object__load(program)) return 1;
    struct bpf_link *link = bpf_map__attach_struct_ops(bpf_object__find_map_by_name(program, "planted"));
    if (!link) return 1;
    while (!is_over) pause();
    bpf_link__destroy(link);
    bpf_object__close(program);
    return 0;
}
