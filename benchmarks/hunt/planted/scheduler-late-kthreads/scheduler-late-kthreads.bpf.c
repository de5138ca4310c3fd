/* Threads of the kernel have a queue of their own, and a CPU looks there last: a task of a program that could go on keeps
   it before. If two that compute wait for what a thread of the kernel does for a third one, it never runs. The twin serves
   threads of the kernel first. */
#include "../planted_scheduler.h"

#define PROGRAMS 0
#define KTHREADS 1
#define SLICE MS

SEC("struct_ops/enqueue")
void planted_enqueue(u64 *arguments)
{
	struct task_struct *p = (void *)arguments[0];

	scx_bpf_dsq_insert(p, p->flags & IS_KTHREAD ? KTHREADS : PROGRAMS, SLICE, arguments[1]);
}

SEC("struct_ops/dispatch")
void planted_dispatch(u64 *arguments)
{
	struct task_struct *before = (void *)arguments[1];

	if (IS_FIXED && scx_bpf_dsq_move_to_local(KTHREADS))
		return;
	if (scx_bpf_dsq_move_to_local(PROGRAMS))
		return;
	if (before && before->scx.flags & IS_QUEUED && !(before->flags & IS_KTHREAD)) {
		before->scx.slice = SLICE;
		return;
	}
	scx_bpf_dsq_move_to_local(KTHREADS);
}

SEC("struct_ops.s/init")
s32 planted_init(u64 *arguments)
{
	s32 error = scx_bpf_create_dsq(PROGRAMS, -1);

	return error ? error : scx_bpf_create_dsq(KTHREADS, -1);
}

SCHEDULER(.enqueue = (void *)planted_enqueue, .dispatch = (void *)planted_dispatch, .init = (void *)planted_init);
