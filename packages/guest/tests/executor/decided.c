/* Does what makes a scheduler decide, while the kernel itself records that, and prints what it has recorded:
 * S CPU previous next state microseconds; W or N CPU task microseconds; B or E task number of a system call that begins
 * or ends, microseconds. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRACE "/sys/kernel/tracing/instances/decided/"

static void put(const char *name, const char *value) {
    char path[200];
    snprintf(path, sizeof path, TRACE "%s", name);
    int file = open(path, O_WRONLY);
    if (file < 0 || write(file, value, strlen(value)) < 0) {
        perror(path);
        exit(1);
    }
    close(file);
}

static void talk(int rounds) {
    int there[2], back[2];
    char byte = 0;
    if (pipe(there) || pipe(back))
        exit(1);
    if (fork() == 0) {
        for (int round = 0; round < rounds; round++)
            if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
                exit(1);
        exit(0);
    }
    for (int round = 0; round < rounds; round++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            exit(1);
}

static void compute(long loops) { asm volatile("1: dec %0\n\tjnz 1b" : "+r"(loops) : : "cc"); }

int main(void) {
    mkdir(TRACE, 0700);
    put("tracing_on", "0");
    put("trace_clock", "mono_raw");
    put("events/sched/sched_switch/enable", "1");
    put("events/sched/sched_wakeup/enable", "1");
    put("events/sched/sched_wakeup_new/enable", "1");
    put("events/raw_syscalls/enable", "1");
    put("tracing_on", "1");
    for (int child = 0; child < 3; child++)
        if (fork() == 0) {
            if (child < 2)
                compute(8000000);
            else
                talk(60);
            exit(0);
        }
    talk(60);
    for (int rest = 0; rest < 10; rest++)
        nanosleep(&(struct timespec){0, 1500000}, 0);
    while (wait(0) > 0)
        ;
    for (int rest = 0; rest < 10; rest++)
        nanosleep(&(struct timespec){0, 7000000}, 0);
    put("tracing_on", "0");
    FILE *trace = fopen(TRACE "trace", "r");
    char line[1000];
    while (trace && fgets(line, sizeof line, trace)) {
        int first = 0, second = 0, cpu = 0;
        long seconds = 0, micros = 0;
        char state[16] = "";
        char *at = strstr(line, ": sched_"), *call = strstr(line, ": sys_");
        if (!at && !call)
            continue;
        if (call)
            at = call;
        char *when = at;
        while (when > line && when[-1] != ' ')
            when--;
        sscanf(when, "%ld.%ld", &seconds, &micros);
        sscanf(strstr(line, " ["), " [%d]", &cpu);
        long number = 0;
        if (call && sscanf(strstr(call, "NR "), "NR %ld", &number) == 1) {
            char *task = strstr(line, " [");
            while (task > line && task[-1] != '-')
                task--;
            printf("%c %d %ld %ld\n", call[6] == 'e' && call[7] == 'n' ? 'B' : 'E', atoi(task), number,
                   seconds * 1000000 + micros);
            continue;
        }
        char *before = strstr(line, "prev_pid="), *next = strstr(line, "next_pid="), *woken = strstr(line, " pid=");
        if (before && next && sscanf(before, "prev_pid=%d prev_prio=%*d prev_state=%15s", &first, state) == 2 &&
            sscanf(next, "next_pid=%d", &second) == 1)
            printf("S %d %d %d %s %ld\n", cpu, first, second, state, seconds * 1000000 + micros);
        else if (woken && sscanf(woken, " pid=%d", &first) == 1)
            printf("%c %d %d %ld\n", strstr(line, "wakeup_new") ? 'N' : 'W', cpu, first, seconds * 1000000 + micros);
    }
    return 0;
}
