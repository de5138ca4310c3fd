/* An object that lives while there are references. A user reads where it is and then takes a reference; the owner can
   drop the last one in between. The twin does both under the lock that guards the address. */
#include "../planted.h"

enum { ROUNDS = 50, ALIVE = 0x600d, FREED = 0xdead };
struct object {
    atomic_int references, state;
};
static struct object room[ROUNDS];
static _Atomic(struct object *) current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint met;

static struct object *get(bool is_unlucky) {
    (void)is_unlucky;
    if (IS_FIXED) pthread_mutex_lock(&lock);
    struct object *object = current;
    UNLUCKY(is_unlucky);
    if (object) atomic_fetch_add(&object->references, 1);
    if (IS_FIXED) pthread_mutex_unlock(&lock);
    return object;
}

static void put(struct object *object) {
    if (atomic_fetch_sub(&object->references, 1) == 1) object->state = FREED;
}

static void *run(void *id) {
    pin((long)id);
    for (int i = 0; i < ROUNDS; i++) {
        if (!id) {
            room[i].references = 1;
            room[i].state = ALIVE;
            current = &room[i];
        }
        meet(&met, 2);
        if (!id) {
            work(70);
            pthread_mutex_lock(&lock);
            struct object *object = current;
            current = NULL;
            pthread_mutex_unlock(&lock);
            put(object);
        } else {
            work(10);
            struct object *object = get(i == 7);
            if (object) {
                work(5);
                if (object->state != ALIVE) fail("an object is used after it was freed");
                put(object);
            }
        }
        meet(&met, 2);
    }
    return NULL;
}

int main(void) {
    run_threads(run, 2);
    return 0;
}
