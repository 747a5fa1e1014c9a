/* Touches every seventh page of a file through a mapping without read-ahead, up to a given number;
 * prints how many pages of the file are then in memory. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDONLY), count = atoi(argv[2]), sum = 0, resident = 0;
	long page = sysconf(_SC_PAGESIZE);
	struct stat about;
	unsigned char *in_memory;
	char *bytes;
	size_t pages, place;

	if (argc < 3 || fd < 0 || fstat(fd, &about))
		return 1;
	pages = (about.st_size + page - 1) / page;
	bytes = mmap(0, about.st_size, PROT_READ, MAP_SHARED, fd, 0);
	in_memory = malloc(pages);
	if (bytes == MAP_FAILED || !in_memory || madvise(bytes, about.st_size, MADV_RANDOM))
		return 2;
	close(fd);
	for (place = 0; place < (size_t)count; place++)
		sum += *(volatile char *)(bytes + place * 7 * page);
	if (mincore(bytes, about.st_size, in_memory))
		return 3;
	for (place = 0; place < pages; place++)
		resident += in_memory[place] & 1;
	printf("%d %d\n", resident, sum);
	return 0;
}
