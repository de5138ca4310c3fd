/* A guest's worst workloads: what the target must survive. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/io.h>
#include <unistd.h>

enum { EVENT_PORT = 0x4a0, PM1_CONTROL = 0x604, SLEEP_ENABLE = 1 << 13, SLEEP_S3 = 1 << 10 };

static void say(const char *text)
{
	while (*text)
		outb(*text++, EVENT_PORT);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (ioperm(EVENT_PORT, 1, 1) || iopl(3))
		return 1;
	if (!strcmp(what, "panic")) {
		int trigger = open("/proc/sysrq-trigger", O_WRONLY);
		return write(trigger, "c", 1) != 1;
	}
	if (!strcmp(what, "spin")) {
		/* Before everybody else, without the kernel's limit: the agent never gets the CPU again. */
		struct sched_param first = {.sched_priority = 99};
		int limit = open("/proc/sys/kernel/sched_rt_runtime_us", O_WRONLY);
		if (write(limit, "-1", 2) != 2 || sched_setscheduler(0, SCHED_FIFO, &first))
			return 1;
		for (;;)
			;
	}
	if (!strcmp(what, "halt"))
		/* Suspended to memory, and nobody wakes it: its clock stands still. */
		outw(SLEEP_ENABLE | SLEEP_S3, PM1_CONTROL);
	if (!strcmp(what, "babble"))
		say("\033[2J{\"event\":\"no such\"}\n");
	if (!strcmp(what, "forge"))
		say("{\"event\":\"end\",\"at_ns\":1,\"id\":\"forge\",\"ok\":true,\"events\":2}\n");
	if (!strcmp(what, "flood"))
		for (;;)
			say("flood flood flood flood\n");
	if (!strcmp(what, "stop"))
		outb(1, 0x505);
	return 0;
}
