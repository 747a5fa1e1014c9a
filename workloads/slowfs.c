// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A file system of one file, `disk`, whose reads, writes and flushes take as long as it is told.
 * Its bytes are in memory. A loop device over the file is a disk that can be made slow on any
 * machine: neither device mapper nor cgroups are needed.
 *
 *     slowfs CONTROL BYTES MOUNTPOINT [serial]
 *
 * A serial disk does one thing after another, as a disk with one head does; others do as many at
 * once as they are asked.
 *
 * CONTROL is a file of eleven native 64-bit numbers that both sides map, so that telling needs no
 * call that might itself wait behind a slow one: what to do (struct told), and what was done.
 */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct told {
	/* Every call of its kind takes so long. */
	_Atomic uint64_t read_us, write_us, fsync_us;
	/* One read or write of so many takes that longer; none if there is 0. */
	_Atomic uint64_t slow_us, slow_every;
	/* What was done. */
	_Atomic uint64_t reads, writes, fsyncs, slow;
	/* Its end is near: nothing is slow any more. */
	_Atomic uint64_t calm;
	/* What it takes longer for each MiB, which limits the bytes of a second. */
	_Atomic uint64_t mib_us;
};

static struct told *told;
static int data;
static off_t size;

static void wait_us(uint64_t us)
{
	/* Little at a time, so that nobody has to wait long for the end. */
	while (us > 0 && !told->calm) {
		uint64_t part = us < 20000 ? us : 20000;
		struct timespec time = { 0, (long)part * 1000 };
		nanosleep(&time, NULL);
		us -= part;
	}
}

static void wait_for(_Atomic uint64_t *done, uint64_t us, size_t bytes)
{
	atomic_fetch_add(done, 1);
	us += told->mib_us * bytes >> 20;
	uint64_t every = told->slow_every;
	if (every > 0 && (told->reads + told->writes) % every == 0) {
		atomic_fetch_add(&told->slow, 1);
		us += told->slow_us;
	}
	wait_us(us);
}

static int slow_getattr(const char *path, struct stat *stat, struct fuse_file_info *info)
{
	(void)info;
	memset(stat, 0, sizeof *stat);
	if (strcmp(path, "/") == 0) {
		stat->st_mode = S_IFDIR | 0700;
		stat->st_nlink = 2;
	} else if (strcmp(path, "/disk") == 0) {
		stat->st_mode = S_IFREG | 0600;
		stat->st_nlink = 1;
		stat->st_size = size;
	} else {
		return -ENOENT;
	}
	return 0;
}

static int slow_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset,
			struct fuse_file_info *info, enum fuse_readdir_flags flags)
{
	(void)path, (void)offset, (void)info, (void)flags;
	fill(buffer, ".", NULL, 0, 0);
	fill(buffer, "..", NULL, 0, 0);
	fill(buffer, "disk", NULL, 0, 0);
	return 0;
}

static int slow_open(const char *path, struct fuse_file_info *info)
{
	if (strcmp(path, "/disk") != 0)
		return -ENOENT;
	info->direct_io = 1;
	return 0;
}

static int slow_read(const char *path, char *buffer, size_t bytes, off_t offset,
		     struct fuse_file_info *info)
{
	(void)path, (void)info;
	wait_for(&told->reads, told->read_us, bytes);
	ssize_t done = pread(data, buffer, bytes, offset);
	return done < 0 ? -errno : (int)done;
}

static int slow_write(const char *path, const char *buffer, size_t bytes, off_t offset,
		      struct fuse_file_info *info)
{
	(void)path, (void)info;
	if (offset < 0 || offset > size || (off_t)bytes > size - offset)
		return -ENOSPC;
	wait_for(&told->writes, told->write_us, bytes);
	ssize_t done = pwrite(data, buffer, bytes, offset);
	return done < 0 ? -errno : (int)done;
}

static int slow_fsync(const char *path, int is_data_only, struct fuse_file_info *info)
{
	(void)path, (void)is_data_only, (void)info;
	atomic_fetch_add(&told->fsyncs, 1);
	wait_us(told->fsync_us);
	return 0;
}

static const struct fuse_operations operations = {
	.getattr = slow_getattr,
	.readdir = slow_readdir,
	.open = slow_open,
	.read = slow_read,
	.write = slow_write,
	.fsync = slow_fsync,
};

int main(int argc, char **argv)
{
	int is_serial = argc == 5 && strcmp(argv[4], "serial") == 0;
	if (argc != 4 && !is_serial) {
		fprintf(stderr, "usage: slowfs CONTROL BYTES MOUNTPOINT [serial]\n");
		return 2;
	}
	int control = open(argv[1], O_RDWR | O_CLOEXEC);
	if (control < 0) {
		perror(argv[1]);
		return 1;
	}
	told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED, control, 0);
	size = strtoll(argv[2], NULL, 10);
	data = memfd_create("slowfs", MFD_CLOEXEC);
	if (told == MAP_FAILED || data < 0 || ftruncate(data, size) < 0) {
		perror("slowfs");
		return 1;
	}
	char *words[] = { "slowfs", "-f", "-o", "fsname=whyslow-slowfs", argv[3], "-s", NULL };
	return fuse_main(is_serial ? 6 : 5, words, &operations, NULL);
}
