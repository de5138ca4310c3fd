/* A walk from element to element in random order, through so many MiB, so many steps: chase MIB STEPS. Each element is
 * the place of the next one, so that no load can begin before the one before it has ended.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LINE = 64, HUGE_PAGE = 2 << 20 };

int main(int count, char **words) {
  if (count < 3)
    return 2;
  size_t bytes = strtoul(words[1], NULL, 10) << 20, number = bytes / LINE;
  long steps = strtol(words[2], NULL, 10);
  char *mapped = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return 1;
  char *lines = (char *)(((uintptr_t)mapped + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
  for (size_t i = 0; i < number; i++)
    *(size_t *)(lines + i * LINE) = i;
  uint64_t random = 88172645463325252u;
  for (size_t i = number - 1; i > 0; i--) { /* Sattolo: one circle through all of them */
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    size_t *here = (size_t *)(lines + i * LINE), *other = (size_t *)(lines + random % i * LINE), was = *here;
    *here = *other, *other = was;
  }
  size_t place = 0;
  for (long i = 0; i < steps; i++)
    place = *(size_t *)(lines + place * LINE);
  printf("%zu\n", place);
  return 0;
}
