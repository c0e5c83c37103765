//go:build unix

package decisions

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private refuses what somebody else owns, or may read or write.
func private(info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("it isn't owned by this user (%d)", os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("others have access to it (%04o): chmod go-rwx, if nobody else has written there", mode)
	}
	return nil
}
