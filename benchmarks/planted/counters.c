/* Two threads on CPUs of their own, each of which counts in a word of its own: counters BYTES ROUNDS. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static char memory[4096] __attribute__((aligned(4096)));
static long rounds;

struct job {
	int cpu;
	volatile long *counter;
};

__attribute__((noinline)) static void count(volatile long *counter)
{
	for (long round = 0; round < rounds; round++)
		++*counter;
}

static void *run(void *argument)
{
	struct job *job = argument;
	cpu_set_t own;

	CPU_ZERO(&own);
	CPU_SET(job->cpu, &own);
	if (sched_setaffinity(0, sizeof own, &own))
		abort();
	count(job->counter);
	return NULL;
}

int main(int argc, char **argv)
{
	struct job jobs[2] = {{0, (void *)memory}, {1, NULL}};
	pthread_t other;

	if (argc != 3)
		return 2;
	jobs[1].counter = (void *)(memory + atol(argv[1]));
	rounds = atol(argv[2]);
	if (pthread_create(&other, NULL, run, &jobs[1]))
		return 1;
	run(&jobs[0]);
	return pthread_join(other, NULL);
}
