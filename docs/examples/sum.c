#include <stdio.h>
#include <stdlib.h>

unsigned step(unsigned x) {
    for (int i = 0; i < 50; i++) x = x * 1664525u + 1013904223u;
    return x;
}

int main(int count, char **words) {
    unsigned x = 1;
    for (int i = 0; i < atoi(words[count - 1]); i++) x = step(x);
    printf("%u\n", x);
}
