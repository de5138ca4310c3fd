/* A thread of the kernel looks whether there is work before it says that it sleeps: who wakes it in between wakes
   nobody. The twin says so first. */
#include "../planted_module.h"

enum { ROUNDS = 60 };
static atomic_t items;

static void await_item(int round)
{
	for (;;) {
		if (IS_FIXED)
			set_current_state(TASK_UNINTERRUPTIBLE);
		if (atomic_read(&items) > round)
			break;
		UNLUCKY(round == 7);
		if (!IS_FIXED)
			set_current_state(TASK_UNINTERRUPTIBLE);
		schedule();
	}
	__set_current_state(TASK_RUNNING);
}

static int first(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		meet();
		work(10);
		await_item(i);
	}
	complete(&first_ended);
	return 0;
}

static int second(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		meet();
		work(60);
		atomic_inc(&items);
		wake_up_process(threads[0]);
	}
	complete(&second_ended);
	return 0;
}
