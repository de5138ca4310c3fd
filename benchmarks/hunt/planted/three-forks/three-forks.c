/* Three philosophers. Each takes the fork on the left and then that on the right: if two stand still with one fork
   each, the third closes the circle. */
#include "../planted.h"

enum { MEALS = 40, SEATS = 3 };
static pthread_mutex_t forks[SEATS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static atomic_uint met;
static atomic_int meals;

static void *run(void *id) {
    long seat = (long)id;
    int first = seat, second = (seat + 1) % SEATS;
    if (IS_FIXED && first > second) first = second, second = seat;
    pin(seat);
    for (int i = 0; i < MEALS; i++) {
        meet(&met, SEATS);
        work(5 + 35 * seat);
        pthread_mutex_lock(&forks[first]);
        UNLUCKY(i == 7 && seat < 2);
        pthread_mutex_lock(&forks[second]);
        meals++;
        work(1);
        pthread_mutex_unlock(&forks[second]);
        pthread_mutex_unlock(&forks[first]);
    }
    return NULL;
}

int main(void) {
    run_threads(run, SEATS);
    return meals != MEALS * SEATS;
}
