/* Two threads of the kernel take two mutexes in opposite orders. */
#include "../planted_module.h"

#include <linux/mutex.h>

enum { ROUNDS = 60 };
static DEFINE_MUTEX(inner);
static DEFINE_MUTEX(outer);
static int sum;

static void add(struct mutex *one, struct mutex *other, bool is_unlucky)
{
	mutex_lock(one);
	UNLUCKY(is_unlucky);
	mutex_lock(other);
	sum++;
	mutex_unlock(other);
	mutex_unlock(one);
}

static int first(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		meet();
		work(10);
		add(&outer, &inner, i == 7);
	}
	complete(&first_ended);
	return 0;
}

static int second(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		meet();
		work(60);
		if (IS_FIXED)
			add(&outer, &inner, false);
		else
			add(&inner, &outer, false);
	}
	complete(&second_ended);
	return 0;
}
