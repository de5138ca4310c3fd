/* What the planted bugs in kernel modules share: two threads of the kernel on two CPUs. See planted.h. */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
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

/* What a bug does on CPU 0 and on CPU 1, in the end of which it completes `first_ended` and `second_ended`. */
static int first(void *unused);
static int second(void *unused);

static int run_both(void)
{
	int (*bodies[])(void *) = { first, second };

	if (num_online_cpus() < 2)
		return -ENODEV;
	if (threads[0])
		return -EBUSY;
	for (int i = 0; i < 2; i++) {
		threads[i] = kthread_create(bodies[i], NULL, "planted/%d", i);
		if (IS_ERR(threads[i]))
			return PTR_ERR(threads[i]);
		kthread_bind(threads[i], i);
	}
	wake_up_process(threads[0]);
	wake_up_process(threads[1]);
	if (wait_for_completion_killable(&first_ended) || wait_for_completion_killable(&second_ended))
		return -EINTR;
	return 0;
}

/* Who writes to /proc/planted has both run, once, and waits for their ends. */
static ssize_t planted_write(struct file *file, const char __user *text, size_t size, loff_t *position)
{
	int error = run_both();

	return error ? error : size;
}

static const struct proc_ops planted_operations = { .proc_write = planted_write };

static int __init planted_init(void)
{
	return proc_create("planted", 0222, NULL, &planted_operations) ? 0 : -ENOMEM;
}

module_init(planted_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A planted bug");
