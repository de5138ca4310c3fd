// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * LINPACK with interrupts off: /proc/ajuste_linpack.
 *
 * Writing a number of repetitions does them at once, on the CPU where the
 * writer is and in its context, each without preemption and with interrupts
 * off; between two of them interrupts are let in, so that no watchdog barks.
 * Reading tells how long the last ones took, how many interrupts the CPU had
 * from the begin of the first to the end of the last, and the solution as the
 * bits of doubles.
 */
#include <linux/hardirq.h>
#include <linux/irqflags.h>
#include <linux/kernel_stat.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <asm/fpu/api.h>

#include "solve.h"

#define NAME "ajuste_linpack"
#define MOST_REPETITIONS 1048576

struct work {
	double a[LINPACK_N * LINPACK_LEADING];
	/* Of doubles, which code here cannot have. */
	u64 b[LINPACK_N];
	unsigned int pivots[LINPACK_N];
	unsigned int repetitions;
	int cpu;
	u64 total_ns;
	u64 factoring_ns;
	u64 solving_ns;
	u64 interrupts;
};

static struct work *work;
static DEFINE_MUTEX(work_lock);

/* Of devices, of the local timer and from other CPUs. */
static u64 interrupts_of_this_cpu(void)
{
	int cpu = smp_processor_id();
	u64 sum = kstat_cpu_irqs_sum(cpu);

	sum += per_cpu(irq_stat, cpu).apic_timer_irqs;
#ifdef CONFIG_SMP
	sum += per_cpu(irq_stat, cpu).irq_resched_count;
	sum += per_cpu(irq_stat, cpu).irq_call_count;
#endif
	return sum;
}

static void repeat_once(void)
{
	double *b = (double *)work->b;
	u64 generated, factored, solved;

	linpack_generate(work->a, b);
	generated = ktime_get_ns();
	linpack_dgefa(work->a, work->pivots);
	factored = ktime_get_ns();
	linpack_dgesl(work->a, work->pivots, b);
	solved = ktime_get_ns();
	work->factoring_ns += factored - generated;
	work->solving_ns += solved - factored;
}

static void solve(unsigned int repetitions)
{
	u64 began_ns = 0, ended_ns = 0, before = 0, after = 0;
	unsigned long flags;
	unsigned int i;

	work->factoring_ns = 0;
	work->solving_ns = 0;
	for (i = 0; i < repetitions; i++) {
		kernel_fpu_begin();
		local_irq_save(flags);
		if (i == 0) {
			work->cpu = smp_processor_id();
			before = interrupts_of_this_cpu();
			began_ns = ktime_get_ns();
		}
		repeat_once();
		if (i == repetitions - 1) {
			ended_ns = ktime_get_ns();
			after = interrupts_of_this_cpu();
		}
		local_irq_restore(flags);
		kernel_fpu_end();
		cond_resched();
	}
	work->total_ns = ended_ns - began_ns;
	work->interrupts = after - before;
	work->repetitions = repetitions;
}

static ssize_t linpack_write(struct file *file, const char __user *buffer,
			     size_t size, loff_t *offset)
{
	unsigned int repetitions;
	int refused = kstrtouint_from_user(buffer, size, 10, &repetitions);

	if (refused)
		return refused;
	if (repetitions < 1 || repetitions > MOST_REPETITIONS)
		return -ERANGE;
	/* One that may move has no CPU of which interrupts could be told. */
	if (cpumask_weight(current->cpus_ptr) != 1)
		return -EXDEV;
	mutex_lock(&work_lock);
	solve(repetitions);
	mutex_unlock(&work_lock);
	return size;
}

static int linpack_show(struct seq_file *out, void *unused)
{
	unsigned int i;

	mutex_lock(&work_lock);
	seq_printf(out, "repetitions %u\n", work->repetitions);
	seq_printf(out, "cpu %d\n", work->cpu);
	seq_printf(out, "total_ns %llu\n", work->total_ns);
	seq_printf(out, "factoring_ns %llu\n", work->factoring_ns);
	seq_printf(out, "solving_ns %llu\n", work->solving_ns);
	seq_printf(out, "interrupts %llu\n", work->interrupts);
	seq_puts(out, "solution");
	for (i = 0; i < LINPACK_N; i++)
		seq_printf(out, " %016llx", work->b[i]);
	seq_puts(out, "\n");
	mutex_unlock(&work_lock);
	return 0;
}

static int linpack_open(struct inode *inode, struct file *file)
{
	return single_open(file, linpack_show, NULL);
}

static const struct proc_ops linpack_operations = {
	.proc_open = linpack_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = linpack_write,
};

static int __init linpack_init(void)
{
	work = vzalloc(sizeof(*work));
	if (!work)
		return -ENOMEM;
	if (!proc_create(NAME, 0600, NULL, &linpack_operations)) {
		vfree(work);
		return -ENOMEM;
	}
	return 0;
}

static void __exit linpack_exit(void)
{
	remove_proc_entry(NAME, NULL);
	vfree(work);
}

module_init(linpack_init);
module_exit(linpack_exit);

MODULE_DESCRIPTION("LINPACK with interrupts off");
MODULE_AUTHOR("The Ajuste contributors");
MODULE_LICENSE("Dual MIT/GPL");
