/* What the planted bugs in BPF schedulers share: the parts of the kernel that they use, which libbpf finds by their
   names in the types of the running kernel. See planted.h. */
typedef unsigned char bool;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

enum { false, true };

#ifdef FIXED
#define IS_FIXED 1
#else
#define IS_FIXED 0
#endif

#define SEC(name) __attribute__((section(name), used))
#define FOUND_BY_NAME __attribute__((preserve_access_index))
#define KERNEL_FUNCTION SEC(".ksyms")

/* Numbers of the kernel's interface (include/linux/sched/ext.h, kernel/sched/ext_internal.h). */
#define LOCAL_QUEUE 0x8000000000000002ULL /* of the CPU for which the task is queued */
#define KICK_IDLE 1ULL
#define KICK_PREEMPT 2ULL
#define ENQUEUE_WAKEUP 1ULL
#define ENQUEUE_PREEMPT (1ULL << 32)
#define IS_QUEUED 1U
#define NO_END (~0ULL) /* a slice that does not end */
#define IS_KTHREAD 0x00200000U

#define MS 1000000ULL
#define CPUS 4 /* at most */

struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
} FOUND_BY_NAME;

struct task_struct {
	u32 flags;
	s32 nr_cpus_allowed;
	struct sched_ext_entity scx;
} FOUND_BY_NAME;

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 before, u64 flags);
	void (*enqueue)(struct task_struct *p, u64 flags);
	void (*dispatch)(s32 cpu, struct task_struct *p);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*enable)(struct task_struct *p);
	s32 (*init)(void);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

extern s32 scx_bpf_create_dsq(u64 queue, s32 node) KERNEL_FUNCTION;
extern void scx_bpf_dsq_insert(struct task_struct *p, u64 queue, u64 slice, u64 flags) KERNEL_FUNCTION;
extern void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 queue, u64 slice, u64 vtime, u64 flags) KERNEL_FUNCTION;
extern bool scx_bpf_dsq_move_to_local(u64 queue) KERNEL_FUNCTION;
extern s32 scx_bpf_dsq_nr_queued(u64 queue) KERNEL_FUNCTION;
extern void scx_bpf_kick_cpu(s32 cpu, u64 flags) KERNEL_FUNCTION;
extern u32 scx_bpf_nr_cpu_ids(void) KERNEL_FUNCTION;

/* Helpers of BPF, by their numbers. */
static u64 (*const now_ns)(void) = (void *)5;
static u32 (*const this_cpu)(void) = (void *)8;
static long (*const repeat)(u32 times, void *body, void *context, u64 flags) = (void *)181;

static long is_past(u32 number, u64 *end_ns)
{
	return now_ns() >= *end_ns;
}

static inline void stand_still(u64 us)
{
	u64 end_ns = now_ns() + us * 1000;

	repeat(1 << 23, is_past, &end_ns, 0);
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

/* The scheduler, which the loader finds as `planted`. It is not ejected while it is watched. */
#define SCHEDULER(...)                       \
	char _license[] SEC("license") = "GPL"; \
	SEC(".struct_ops.link")              \
	struct sched_ext_ops planted = {     \
		.name = "planted",           \
		.timeout_ms = 20000,         \
		__VA_ARGS__                  \
	}
