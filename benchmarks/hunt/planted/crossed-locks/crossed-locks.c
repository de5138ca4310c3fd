/* Transfers between two accounts. Each locks the account that pays first, so two opposite transfers can wait for each
   other. */
#include "../planted.h"

enum { TRANSFERS = 60 };
static struct account {
    pthread_mutex_t lock;
    long balance;
} accounts[2] = {{PTHREAD_MUTEX_INITIALIZER, 1000}, {PTHREAD_MUTEX_INITIALIZER, 1000}};
static atomic_uint met;

static void transfer(struct account *from, struct account *to, bool is_unlucky) {
    (void)is_unlucky;
    struct account *first = from, *second = to;
    if (IS_FIXED && first > second) first = to, second = from;
    pthread_mutex_lock(&first->lock);
    UNLUCKY(is_unlucky);
    pthread_mutex_lock(&second->lock);
    from->balance--;
    to->balance++;
    pthread_mutex_unlock(&second->lock);
    pthread_mutex_unlock(&first->lock);
}

static void *run(void *id) {
    pin((long)id);
    for (int i = 0; i < TRANSFERS; i++) {
        meet(&met, 2);
        work(id ? 60 : 10);
        if (id)
            transfer(&accounts[1], &accounts[0], false);
        else
            transfer(&accounts[0], &accounts[1], i == 7);
    }
    return NULL;
}

int main(void) {
    run_threads(run, 2);
    return accounts[0].balance + accounts[1].balance != 2000;
}
