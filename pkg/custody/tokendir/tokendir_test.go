package tokendir

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"cellcast.io/cellcast/pkg/secret"
)

const (
	uid   = "0d1e2f3a-4b5c-6d7e-8f90-a1b2c3d4e5f6"
	other = "1d1e2f3a-4b5c-6d7e-8f90-a1b2c3d4e5f6"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestAFileIsPrivateAndWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "tokens")
	d := open(t, path)
	for _, token := range []string{"a-longer-token", "shorter"} {
		if err := d.Write(uid, secret.New(token)); err != nil {
			t.Fatal(err)
		}
		got, err := d.Read(uid)
		if err != nil || got.Reveal() != token {
			t.Errorf("got %d bytes, %v", len(got.Reveal()), err)
		}
	}
	for name, want := range map[string]os.FileMode{path: 0o700, filepath.Join(path, uid): 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o", name, info.Mode().Perm())
		}
	}
	if got := names(t, path); got != uid {
		t.Errorf("there are %s", got)
	}
	if err := d.Remove(uid); err != nil {
		t.Error(err)
	}
	if err := d.Remove(uid); err != nil {
		t.Errorf("removing it again: %v", err)
	}
	if _, err := d.Read(uid); err == nil {
		t.Error("it's still there")
	}
}

// A reader never finds half of a file: a new one takes the place of the old.
func TestAFileIsReplacedNotRewritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	d := open(t, path)
	if err := d.Write(uid, secret.New("old")); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(filepath.Join(path, uid))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := d.Write(uid, secret.New("new")); err != nil {
		t.Fatal(err)
	}
	kept := make([]byte, 8)
	if n, _ := reader.Read(kept); string(kept[:n]) != "old" {
		t.Error("who had opened the old file reads something else")
	}
}

func TestAWriteThatFailsLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	d := open(t, path)
	if err := d.Write(uid, secret.New("old")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "."+uid, "in-the-way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(uid, secret.New("new")); err == nil {
		t.Error("it was written all the same")
	}
	if got, err := d.Read(uid); err != nil || got.Reveal() != "old" {
		t.Errorf("left are %d bytes, %v", len(got.Reveal()), err)
	}
}

func TestOpenClearsItsOwnFilesAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{uid, "." + other, "notes", uid + ".txt", strings.ToUpper(uid), "00000000-0000-0000-0000-00000000000g", "000000000000000000000000000000000000"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(path, other), 0o700); err != nil {
		t.Fatal(err)
	}
	const want = "00000000-0000-0000-0000-00000000000g 000000000000000000000000000000000000 0D1E2F3A-4B5C-6D7E-8F90-A1B2C3D4E5F6 0d1e2f3a-4b5c-6d7e-8f90-a1b2c3d4e5f6.txt 1d1e2f3a-4b5c-6d7e-8f90-a1b2c3d4e5f6 notes"
	d := open(t, path)
	if got := names(t, path); got != want {
		t.Errorf("left are %s", got)
	}
	if err := d.Write(uid, secret.New("a")); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if got := names(t, path); got != want {
		t.Errorf("after a clean end there are %s", got)
	}
}

func TestOpenRefusesAFolderThatIsntSafe(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, path string)
		says    string
	}{
		"that others may list":    {func(t *testing.T, path string) { chmod(t, path, 0o704) }, "mode is 0704"},
		"that a group may use":    {func(t *testing.T, path string) { chmod(t, path, 0o710) }, "mode is 0710"},
		"that is a mount of 0777": {func(t *testing.T, path string) { chmod(t, path, 0o777) }, "below it"},
		"that is another user's": {func(t *testing.T, path string) {
			if runtime.GOOS != "linux" || os.Geteuid() != 0 {
				t.Skip("only root can give a folder away")
			}
			if err := os.Chown(path, 4711, -1); err != nil {
				t.Fatal(err)
			}
		}, "another user"},
		"that another process uses": {func(t *testing.T, path string) {
			if runtime.GOOS != "linux" {
				t.Skip("folders are locked on Linux alone")
			}
			d := open(t, path)
			if err := d.Write(uid, secret.New("a")); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if _, err := d.Read(uid); err != nil {
					t.Errorf("the first one's file is gone: %v", err)
				}
			})
		}, "each replica needs one of its own"},
		"that is a file": {func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "making the folder"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tokens")
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			test.prepare(t, path)
			d, err := Open(path, true)
			if err == nil {
				_ = d.Close()
				t.Fatal("it was taken")
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOnlyTmpfsIsTakenUnlessAnyIs(t *testing.T) {
	disk := t.TempDir()
	if onTmpfs(t, disk) {
		t.Skip("the folder for temporary files is on tmpfs here")
	}
	if _, err := Open(filepath.Join(disk, "tokens"), false); err == nil || !strings.Contains(err.Error(), "medium: Memory") {
		t.Errorf("got %v", err)
	}
	d, err := Open(filepath.Join(disk, "tokens"), true)
	if err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
}

func TestTmpfsIsTaken(t *testing.T) {
	const shared = "/dev/shm"
	if info, err := os.Stat(shared); err != nil || !info.IsDir() || !onTmpfs(t, shared) {
		t.Skip("there is no tmpfs at " + shared)
	}
	parent, err := os.MkdirTemp(shared, "cellcast-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(parent)
	d, err := Open(filepath.Join(parent, "tokens"), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(uid, secret.New("a")); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestOnlyAUUIDNamesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	d := open(t, path)
	for _, name := range []string{"", ".", "..", "../x", "/etc/x", "a", uid + "0", uid[:35], uid + "/x", strings.ToUpper(uid), "." + uid, "target:" + uid} {
		if err := d.Write(types.UID(name), secret.New("a")); err == nil {
			t.Errorf("wrote %q", name)
		}
		if _, err := d.Read(types.UID(name)); err == nil {
			t.Errorf("read %q", name)
		}
		if err := d.Remove(types.UID(name)); err != nil {
			t.Errorf("removing %q: %v", name, err)
		}
	}
	if got := names(t, path); got != "" {
		t.Errorf("there are %s", got)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// onTmpfs asks by another way than the package does.
func onTmpfs(t *testing.T, path string) bool {
	t.Helper()
	var about syscall.Statfs_t
	if err := syscall.Statfs(path, &about); err != nil {
		t.Fatal(err)
	}
	return about.Type == 0x01021994
}
