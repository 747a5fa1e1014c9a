/*
 * USDT probes as sys/sdt.h makes them, without that file: a nop and a note. A probe with a semaphore
 * is hit only while the semaphore is not zero.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned short here_gate __attribute__((section(".probes"), used));

#define NOTE(provider, name, semaphore, args)                                                      \
	"990: nop\n"                                                                               \
	".pushsection .note.stapsdt,\"?\",\"note\"\n"                                              \
	".balign 4\n"                                                                              \
	".4byte 992f-991f, 994f-993f, 3\n"                                                         \
	"991: .asciz \"stapsdt\"\n"                                                                \
	"992: .balign 4\n"                                                                         \
	"993: .8byte 990b\n"                                                                       \
	".8byte 0\n"                                                                               \
	".8byte " semaphore "\n"                                                                   \
	".asciz \"" provider "\"\n"                                                                \
	".asciz \"" name "\"\n"                                                                    \
	".asciz \"" args "\"\n"                                                                    \
	"994: .balign 4\n"                                                                         \
	".popsection\n"

static __attribute__((noinline)) void plain(int number, unsigned char small, const char *text)
{
	long in_memory[3] = {11, 22, 33};
	long *place = in_memory;
	long index = 2;

	__asm__ volatile(NOTE("tests", "plain", "0",
			      "-4@%0 1@%1 8@%2 -8@8(%3) 8@$-5 -8@(%3,%4,8) 8f@%%xmm0 2@$7")
			 :
			 : "r"(number), "r"(small), "r"(text), "r"(place), "r"(index), "m"(in_memory));
}

static __attribute__((noinline)) void gated(long number)
{
	if (*(volatile unsigned short *)&here_gate)
		__asm__ volatile(NOTE("tests", "gated", "here_gate", "8@%0") : : "r"(number));
}

int main(void)
{
	char text[64];

	for (int i = 0; i < 31; i++) {
		snprintf(text, sizeof(text), "text %d", i);
		plain(-i, 200 + i, text);
	}
	for (long i = 0; i < 43; i++)
		gated(i * 3);
	/* A second location of the same probe. */
	if (*(volatile unsigned short *)&here_gate)
		__asm__ volatile(NOTE("tests", "gated", "here_gate", "8@$1000") : :);
	printf("%d\n", *(volatile unsigned short *)&here_gate);
	return 0;
}
