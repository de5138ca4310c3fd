/* A guest's worst workloads: what the target must survive, and what must never be believed.
 *
 * Each attack prints "refused: REASON" and ends well where the kernel did not let it; what it would do otherwise is done.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENT_PORT = 0x4a0 };

/* All that is missing after the workload's start: a trial that took a nanosecond, and its end. */
static const char FORGED[] =
	"{\"event\":\"exited\",\"at_ns\":1,\"role\":\"workload\",\"index\":0,\"exit_code\":0,\"wall_ns\":1,\"user_ns\":1,"
	"\"system_ns\":1,\"voluntary_switches\":1,\"involuntary_switches\":1,\"minor_faults\":1,\"major_faults\":1,"
	"\"peak_rss_bytes\":1}\n"
	"{\"event\":\"end\",\"at_ns\":2,\"id\":\"hostile\",\"ok\":true,\"events\":3}\n";

static int refused(void)
{
	printf("refused: %s\n", strerror(errno));
	return 0;
}

static int put(const char *place, const char *text)
{
	int file = open(place, O_WRONLY);

	return file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Through the machine's ports: every event is forged, and the machine switched off before the agent says another. */
static int through_ports(void)
{
	if (iopl(3) && ioperm(EVENT_PORT, 1, 1))
		return refused();
	for (const char *next = FORGED; *next; next++)
		outb(*next, EVENT_PORT);
	reboot(RB_POWER_OFF);
	return 1;
}

static int through_port_file(void)
{
	int file = open("/dev/port", O_RDWR);

	if (file < 0)
		return refused();
	for (const char *next = FORGED; *next; next++)
		pwrite(file, next, 1, EVENT_PORT);
	reboot(RB_POWER_OFF);
	return 1;
}

/* The kernel runs this program for a process of ours that crashes, with what rights it has. */
static int through_kernel(const char *self)
{
	struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
	char line[256];

	snprintf(line, sizeof line, "|%s ports", self);
	if (!put("/proc/sys/kernel/core_pattern", line))
		return refused();
	setrlimit(RLIMIT_CORE, &most);
	if (fork() == 0)
		abort();
	wait(NULL);
	usleep(300000);
	return refused();
}

static int opened(const char *place, int how)
{
	return open(place, how) < 0 ? refused() : 1;
}

static int result(long value)
{
	return value < 0 ? refused() : 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

#define ATTACK(name) if (!strcmp(what, name))
	ATTACK("ports")
		return through_ports();
	ATTACK("port-file")
		return through_port_file();
	ATTACK("kernel")
		return through_kernel(argv[0]);
	ATTACK("memory-file")
		return opened("/dev/mem", O_RDWR);
	ATTACK("agent-memory")
		return opened("/proc/1/mem", O_RDWR);
	ATTACK("firmware")
		return opened("/sys/firmware/qemu_fw_cfg/by_name/opt/ajuste/plan/raw", O_RDONLY);
	ATTACK("ptrace")
		return result(ptrace(PTRACE_SEIZE, 1, 0, 0));
	ATTACK("module")
		return result(syscall(SYS_init_module, "", 0, ""));
	ATTACK("kexec")
		return result(syscall(SYS_kexec_load, 0, 0, NULL, 0));
	ATTACK("reboot")
		return result(reboot(RB_POWER_OFF));
	ATTACK("sysctl")
		return put("/proc/sys/kernel/sched_rt_runtime_us", "-1") ? 1 : refused();
	ATTACK("kmsg") {
		int file = open("/dev/kmsg", O_WRONLY);

		if (file < 0)
			return refused();
		for (;;)
			if (write(file, "flood\n", 6) != 6)
				return 1;
	}
	ATTACK("serial") {
		int file = mknod("/tmp/serial", S_IFCHR | 0600, makedev(4, 64)) ? -1 : open("/tmp/serial", O_WRONLY | O_NOCTTY);

		if (file < 0)
			return refused();
		for (;;)
			if (write(file, "flood\n", 6) != 6)
				return 1;
	}
	ATTACK("panic")
		return put("/proc/sysrq-trigger", "c") ? 1 : refused();
	ATTACK("spin") {
		/* Before everybody else, without the kernel's limit: the agent never gets the CPU again. */
		struct sched_param first = {.sched_priority = 99};

		if (!put("/proc/sys/kernel/sched_rt_runtime_us", "-1") || sched_setscheduler(0, SCHED_FIFO, &first))
			return refused();
		for (;;)
			;
	}
	ATTACK("halt")
		/* Suspended to memory, and nobody wakes it: its clock stands still. */
		return put("/sys/power/state", "mem") ? 1 : refused();
	ATTACK("pids")
		for (;;)
			fork();
	ATTACK("memory")
		for (;;) {
			char *more = malloc(1 << 20);

			if (!more)
				return refused();
			memset(more, 1, 1 << 20);
		}
	ATTACK("output")
		for (;;)
			puts("flood flood flood flood");
	return 2;
}
