/* One queue for all CPUs, and slices that do not end. Who wakes a task keeps its CPU, and kicks each other one that has
   said that it sleeps. A CPU finds the queue empty and then says so: what is queued in between kicks nobody. The twin
   leaves it to the kernel which CPUs sleep: a kick also has one look again that is about to. */
#include "../planted_scheduler.h"

#define QUEUE 0

static volatile u32 sleeps[CPUS];

SEC("struct_ops/select_cpu")
s32 planted_select_cpu(u64 *arguments)
{
	return this_cpu();
}

SEC("struct_ops/enqueue")
void planted_enqueue(u64 *arguments)
{
	struct task_struct *p = (void *)arguments[0];

	if (p->nr_cpus_allowed == 1) {
		scx_bpf_dsq_insert(p, LOCAL_QUEUE, NO_END, arguments[1] | ENQUEUE_PREEMPT);
		return;
	}
	for (u32 cpu = 0; cpu < CPUS && cpu < scx_bpf_nr_cpu_ids(); cpu++)
		if (IS_FIXED || sleeps[cpu])
			scx_bpf_kick_cpu(cpu, KICK_IDLE);
	UNLUCKY(!(p->flags & IS_KTHREAD));
	scx_bpf_dsq_insert(p, QUEUE, NO_END, arguments[1]);
}

SEC("struct_ops/dispatch")
void planted_dispatch(u64 *arguments)
{
	struct task_struct *before = (void *)arguments[1];
	u32 cpu = arguments[0];

	if (scx_bpf_dsq_move_to_local(QUEUE) || cpu >= CPUS)
		return;
	if (!before || !(before->scx.flags & IS_QUEUED))
		sleeps[cpu] = 1;
}

SEC("struct_ops/running")
void planted_running(u64 *arguments)
{
	u32 cpu = this_cpu();

	if (cpu < CPUS)
		sleeps[cpu] = 0;
}

SEC("struct_ops.s/init")
s32 planted_init(u64 *arguments)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SCHEDULER(.select_cpu = (void *)planted_select_cpu, .enqueue = (void *)planted_enqueue,
	  .dispatch = (void *)planted_dispatch, .running = (void *)planted_running, .init = (void *)planted_init);
