/* A table that is made at its first use: its address is published before it is filled in, so a second user can see an
   empty one. */
#include "../planted.h"

enum { TABLES = 40, ENTRIES = 16 };
struct table {
    int entries[ENTRIES];
};
static struct table room[TABLES];
static _Atomic(struct table *) tables[TABLES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint met;

static struct table *table(int i) {
    struct table *made = tables[i];
    if (made) return made;
    pthread_mutex_lock(&lock);
    made = tables[i];
    if (!made) {
        made = &room[i];
        if (!IS_FIXED) tables[i] = made;
        UNLUCKY(i == 7);
        for (int entry = ENTRIES; entry--;) made->entries[entry] = i + 1;
        if (IS_FIXED) tables[i] = made;
    }
    pthread_mutex_unlock(&lock);
    return made;
}

static void *run(void *id) {
    pin((long)id);
    for (int i = 0; i < TABLES; i++) {
        meet(&met, 2);
        work(id ? 60 : 10);
        if (table(i)->entries[0] != i + 1) fail("the table is empty");
    }
    return NULL;
}

int main(void) {
    run_threads(run, 2);
    return 0;
}
