package tokendir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// isInMemory reports whether the folder is on a file system that is never written
// to a disk, swap aside.
func isInMemory(folder *os.File) (bool, error) {
	var about unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &about); err != nil {
		return false, err
	}
	return about.Type == unix.TMPFS_MAGIC || about.Type == unix.RAMFS_MAGIC, nil
}

func isOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// lock keeps a second process out, which would clear the files of the first. It
// ends with the process, however that ends.
func lock(folder *os.File) error {
	err := unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errors.New("another process uses it: each replica needs one of its own")
	}
	if err != nil {
		return fmt.Errorf("locking it: %w", err)
	}
	return nil
}
