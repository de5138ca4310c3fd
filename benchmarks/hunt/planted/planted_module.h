/* What the planted bugs in kernel modules share: two threads of the kernel on two CPUs. See planted.h. */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>

#ifdef FIXED
#define IS_FIXED 1
#else
#define IS_FIXED 0
#endif

static inline void stand_still(long us)
{
	u64 end = ktime_get_ns() + us * 1000;

	while (ktime_get_ns() < end)
		cpu_relax();
}

#ifdef PAUSE_US
#define UNLUCKY(when)                          \
	do {                                   \
		if (when)                      \
			stand_still(PAUSE_US); \
	} while (0)
#else
#define UNLUCKY(when) \
	do {          \
	} while (0)
#endif

/* Compute: 500 instructions for each microsecond of a guest. */
static inline void work(long us)
{
	for (long i = us * 250; i > 0; i--)
		__asm__ volatile("");
}

static atomic_t met;
static DECLARE_COMPLETION(first_ended);
static DECLARE_COMPLETION(second_ended);
static struct task_struct *threads[2];

/* Wait until both threads are here. Each calls it equally often. */
static void meet(void)
{
	int all = ((atomic_inc_return(&met) - 1) / 2 + 1) * 2;

	while (atomic_read(&met) < all) {
		cpu_relax();
		cond_resched();
	}
}

/* Run `first` on CPU 0 and `second` on CPU 1, to their ends; each completes its own completion. */
static int run_both(int (*first)(void *), int (*second)(void *))
{
	int (*bodies[])(void *) = { first, second };

	if (num_online_cpus() < 2)
		return -ENODEV;
	for (int i = 0; i < 2; i++) {
		threads[i] = kthread_create(bodies[i], NULL, "planted/%d", i);
		if (IS_ERR(threads[i]))
			return PTR_ERR(threads[i]);
		kthread_bind(threads[i], i);
	}
	wake_up_process(threads[0]);
	wake_up_process(threads[1]);
	wait_for_completion(&first_ended);
	wait_for_completion(&second_ended);
	return 0;
}

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A planted bug");
