package world_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// traces are what a node has on this machine.
type traces struct {
	namespaces []string // of processes, mounts and network, as /proc names them
	name       string   // of its link and of its control groups
}

// tracesOf finds the traces of a node that runs, and fails where it has none.
func tracesOf(t *testing.T, containerd int, address string) traces {
	t.Helper()
	tr := traces{namespaces: namespacesOf(t, containerd), name: linkOf(t, address)}
	if len(tr.users(t)) == 0 || tr.name == "" || len(tr.groups(t)) == 0 {
		t.Fatalf("the node has no traces: %+v", tr)
	}
	if slices.Contains(namespacesOf(t, os.Getpid()), tr.namespaces[0]) {
		t.Fatal("the node has the machine's own namespaces")
	}
	return tr
}

// ended waits until the kernel has cleared away what it does by itself.
func (tr traces) ended(t *testing.T) {
	t.Helper()
	poll(t, "the node's namespaces have ended", func() bool { return len(tr.users(t)) == 0 })
	poll(t, "the node's link is gone", func() bool {
		_, err := net.InterfaceByName(tr.name)
		return err != nil
	})
}

// groups are its control groups.
func (tr traces) groups(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		paths, err := filepath.Glob(filepath.Join(pattern, tr.name))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, paths...)
	}
	return found
}

// users are the threads in one of the namespaces.
func (tr traces) users(t *testing.T) []string {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*/ns/*")
	if err != nil {
		t.Fatal(err)
	}
	var users []string
	for _, entry := range entries {
		if ns, err := os.Readlink(entry); err == nil && slices.Contains(tr.namespaces, ns) {
			users = append(users, entry)
		}
	}
	return users
}

func namespacesOf(t *testing.T, pid int) []string {
	t.Helper()
	var found []string
	for _, kind := range []string{"mnt", "net", "pid"} {
		ns, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns", kind))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, ns)
	}
	return found
}

func linkOf(t *testing.T, address string) string {
	t.Helper()
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		addresses, _ := link.Addrs()
		for _, a := range addresses {
			if strings.HasPrefix(a.String(), address+"/") {
				return link.Name
			}
		}
	}
	return ""
}

// machine is what a node could change of this machine: its mounts, the kernel's
// settings, and the folders of containerd, CNI and the kubelet.
func machine(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "cellcast") || strings.Contains(line, "containerd") || strings.Contains(line, "kubelet") || strings.Contains(line, "nsfs") {
			found["mounts"] += line
		}
	}
	for _, setting := range []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/ip_forward",
	} {
		value, _ := os.ReadFile("/proc/sys/" + setting)
		found[setting] = string(value)
	}
	for _, path := range []string{
		"/etc/cni", "/etc/containerd", "/etc/kubernetes", "/etc/nri", "/opt/cni", "/opt/containerd", "/opt/nri",
		"/run/cni", "/run/containerd", "/run/kubelet", "/run/netns", "/run/nri", "/run/runc", "/usr/libexec/kubernetes",
		"/var/lib/cni", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods",
	} {
		entries, _ := os.ReadDir(path)
		for _, entry := range entries {
			found[path] += entry.Name() + " "
		}
	}
	return found
}
