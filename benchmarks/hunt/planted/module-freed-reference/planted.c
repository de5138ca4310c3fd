/* A thread of the kernel reads where an object is and then takes a reference, also if the last one was dropped in
   between. The kernel warns of it. The twin takes one only if there is one. */
#include "../planted_module.h"

#include <linux/refcount.h>

enum { ROUNDS = 60 };
static refcount_t objects[ROUNDS];
static refcount_t *current_object;

static refcount_t *get(bool is_unlucky)
{
	refcount_t *object = READ_ONCE(current_object);

	UNLUCKY(is_unlucky);
	if (!object)
		return NULL;
	if (IS_FIXED)
		return refcount_inc_not_zero(object) ? object : NULL;
	refcount_inc(object);
	return object;
}

static int first(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		refcount_t *object;

		meet();
		work(10);
		object = get(i == 7);
		if (object && refcount_dec_and_test(object))
			work(1);
		meet();
	}
	complete(&first_ended);
	return 0;
}

static int second(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		refcount_set(&objects[i], 1);
		WRITE_ONCE(current_object, &objects[i]);
		meet();
		work(60);
		WRITE_ONCE(current_object, NULL);
		if (refcount_dec_and_test(&objects[i]))
			work(1);
		meet();
	}
	complete(&second_ended);
	return 0;
}
