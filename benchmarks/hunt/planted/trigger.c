/* Have the planted module do its work, and wait for it. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    int file = open("/proc/planted", O_WRONLY);
    if (file >= 0 && write(file, "1", 1) == 1) return 0;
    perror("/proc/planted");
    return 2;
}
