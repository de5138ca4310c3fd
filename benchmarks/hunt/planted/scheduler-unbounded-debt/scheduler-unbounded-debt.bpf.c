/* Tasks take turns by virtual time: each is charged what it had its CPU for, by its weight. One whose CPU was away
   meanwhile is charged that, too, and waits until all others have made up for it. The twin bounds what a task owes. */
#include "../planted_scheduler.h"

#define QUEUE 0
#define SLICE MS

static volatile u64 latest;
static u64 since[CPUS];

SEC("struct_ops/enqueue")
void planted_enqueue(u64 *arguments)
{
	struct task_struct *p = (void *)arguments[0];
	u64 virtual = p->scx.dsq_vtime;
	u64 now = latest;

	if (p->nr_cpus_allowed == 1) {
		scx_bpf_dsq_insert(p, LOCAL_QUEUE, SLICE, arguments[1] | ENQUEUE_PREEMPT);
		return;
	}
	if ((s64)(virtual - now) < -(s64)SLICE)
		virtual = now - SLICE;
	if (IS_FIXED && (s64)(virtual - now) > (s64)SLICE)
		virtual = now + SLICE;
	p->scx.dsq_vtime = virtual;
	scx_bpf_dsq_insert_vtime(p, QUEUE, SLICE, virtual, arguments[1]);
}

SEC("struct_ops/dispatch")
void planted_dispatch(u64 *arguments)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

SEC("struct_ops/running")
void planted_running(u64 *arguments)
{
	struct task_struct *p = (void *)arguments[0];
	u64 virtual = p->scx.dsq_vtime;
	u32 cpu = this_cpu();

	if ((s64)(virtual - latest) > 0)
		latest = virtual;
	if (cpu < CPUS)
		since[cpu] = now_ns();
}

SEC("struct_ops/stopping")
void planted_stopping(u64 *arguments)
{
	struct task_struct *p = (void *)arguments[0];
	u32 cpu = this_cpu();

	if (cpu < CPUS)
		p->scx.dsq_vtime += (now_ns() - since[cpu]) * 100 / (p->scx.weight ?: 1);
}

SEC("struct_ops/enable")
void planted_enable(u64 *arguments)
{
	struct task_struct *p = (void *)arguments[0];

	p->scx.dsq_vtime = latest;
}

SEC("struct_ops.s/init")
s32 planted_init(u64 *arguments)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SCHEDULER(.enqueue = (void *)planted_enqueue, .dispatch = (void *)planted_dispatch, .running = (void *)planted_running,
	  .stopping = (void *)planted_stopping, .enable = (void *)planted_enable, .init = (void *)planted_init);
