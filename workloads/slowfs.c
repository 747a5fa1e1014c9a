// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A FUSE file system with one file, `disk`, and configurable delays of reads, writes and flushes.
 * Its data is in memory. A loop device over the file is a slow disk on any machine, without device
 * mapper or cgroups.
 *
 *     slowfs CONTROL BYTES MOUNTPOINT [serial]
 *
 * A serial disk handles one request at a time, as a disk with one head does; others handle requests
 * in parallel.
 *
 * CONTROL is a file of eleven native 64-bit numbers (struct control) that both sides share: settings
 * and counters. A change needs no request that might wait behind a slow one.
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

struct control {
	/* Duration of each call. */
	_Atomic uint64_t read_us, write_us, fsync_us;
	/* Each slow_every-th read or write takes slow_us longer; 0 for none. */
	_Atomic uint64_t slow_us, slow_every;
	/* Counters. */
	_Atomic uint64_t reads, writes, fsyncs, slow;
	/* Set before cleanup: disables all delays. */
	_Atomic uint64_t calm;
	/* Additional time per MiB, which limits the throughput. */
	_Atomic uint64_t mib_us;
};

static struct control *control;
static int data;
static off_t size;

static void wait_us(uint64_t us)
{
	/* Sleep in short steps, so that cleanup is quick. */
	while (us > 0 && !control->calm) {
		uint64_t part = us < 20000 ? us : 20000;
		struct timespec time = { 0, (long)part * 1000 };
		nanosleep(&time, NULL);
		us -= part;
	}
}

static void wait_for(_Atomic uint64_t *done, uint64_t us, size_t bytes)
{
	atomic_fetch_add(done, 1);
	us += control->mib_us * bytes >> 20;
	uint64_t every = control->slow_every;
	if (every > 0 && (control->reads + control->writes) % every == 0) {
		atomic_fetch_add(&control->slow, 1);
		us += control->slow_us;
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
	wait_for(&control->reads, control->read_us, bytes);
	ssize_t done = pread(data, buffer, bytes, offset);
	return done < 0 ? -errno : (int)done;
}

static int slow_write(const char *path, const char *buffer, size_t bytes, off_t offset,
		      struct fuse_file_info *info)
{
	(void)path, (void)info;
	if (offset < 0 || offset > size || (off_t)bytes > size - offset)
		return -ENOSPC;
	wait_for(&control->writes, control->write_us, bytes);
	ssize_t done = pwrite(data, buffer, bytes, offset);
	return done < 0 ? -errno : (int)done;
}

static int slow_fsync(const char *path, int is_data_only, struct fuse_file_info *info)
{
	(void)path, (void)is_data_only, (void)info;
	atomic_fetch_add(&control->fsyncs, 1);
	wait_us(control->fsync_us);
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
	int control_fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (control_fd < 0) {
		perror(argv[1]);
		return 1;
	}
	control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, control_fd, 0);
	size = strtoll(argv[2], NULL, 10);
	data = memfd_create("slowfs", MFD_CLOEXEC);
	if (control == MAP_FAILED || data < 0 || ftruncate(data, size) < 0) {
		perror("slowfs");
		return 1;
	}
	char *words[] = { "slowfs", "-f", "-o", "fsname=whyslow-slowfs", argv[3], "-s", NULL };
	return fuse_main(is_serial ? 6 : 5, words, &operations, NULL);
}
