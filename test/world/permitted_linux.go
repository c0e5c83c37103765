package world

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// permitted returns nil where this process may make namespaces, links and control
// groups.
func permitted() error {
	if os.Geteuid() != 0 {
		return errors.New("it takes root")
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return fmt.Errorf("reading our capabilities: %w", err)
	}
	for name, bit := range map[string]int{"CAP_NET_ADMIN": unix.CAP_NET_ADMIN, "CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN} {
		if has[0].Effective&(1<<bit) == 0 {
			return fmt.Errorf("root lacks %s here, as in a container", name)
		}
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return errors.New("ip isn't installed (Debian: apt-get install iproute2)")
	}
	groups, err := hierarchies()
	if err != nil {
		return err
	}
	for _, group := range groups {
		if err := unix.Access(group, unix.W_OK); err != nil {
			return fmt.Errorf("%s can't be written: %w", group, err)
		}
	}
	return nil
}
