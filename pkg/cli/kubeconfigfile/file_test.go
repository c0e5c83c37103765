package kubeconfigfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
)

func TestCommitWritesForTheOwnerAlone(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, path string){
		"where there is nothing":            func(*testing.T, string) {},
		"where mktemp made an empty file":   func(t *testing.T, path string) { write(t, path, "", 0o600) },
		"where an earlier run's is":         func(t *testing.T, path string) { write(t, path, "# Written by cellcast; old\n", 0o600) },
		"where an earlier run's is, opened": func(t *testing.T, path string) { write(t, path, "# Written by cellcast; old\n", 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cell.kubeconfig")
			prepare(t, path)
			file := reserve(t, path)
			if err := file.Commit([]byte("token: new\n")); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != 0o600 {
				t.Errorf("mode %o, want 600", got)
			}
			want := "# Written by cellcast; it's replaced or removed by the next run.\ntoken: new\n"
			if diff := cmp.Diff(want, content(t, path)); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
			onlyFile(t, path)
		})
	}
}

func TestReserveRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(t *testing.T, path string)
		want    string
	}{
		"a symbolic link, also to a file of ours": {
			func(t *testing.T, path string) {
				write(t, path+".target", "# Written by cellcast; old\n", 0o600)
				symlink(t, path+".target", path)
			},
			"PATH is a symbolic link: a credential is never written through one; name the file itself"},
		"a dangling symbolic link": {
			func(t *testing.T, path string) { symlink(t, path+".nowhere", path) },
			"PATH is a symbolic link: a credential is never written through one; name the file itself"},
		"a directory": {
			func(t *testing.T, path string) {
				if err := os.Mkdir(path, 0o700); err != nil {
					t.Fatal(err)
				}
			},
			"PATH is no regular file; to print the credential, use -o json"},
		"a kubeconfig that cellcast didn't write": {
			func(t *testing.T, path string) { write(t, path, "apiVersion: v1\nkind: Config\n", 0o600) },
			"PATH exists and wasn't written by cellcast: it's left as it is; name another file"},
		"a short file that cellcast didn't write": {
			func(t *testing.T, path string) { write(t, path, "#", 0o600) },
			"PATH exists and wasn't written by cellcast: it's left as it is; name another file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cell.kubeconfig")
			test.prepare(t, path)
			before := tree(t, path)
			_, err := kubeconfigfile.Reserve(path)
			if want := strings.ReplaceAll(test.want, "PATH", path); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			if diff := cmp.Diff(before, tree(t, path)); diff != "" {
				t.Errorf("files changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestReserveNamesTheMissingDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "cell.kubeconfig")
	_, err := kubeconfigfile.Reserve(path)
	want := "the directory of " + path + " doesn't exist: mkdir -p -m 0700 " + filepath.Dir(path)
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestCommitLooksAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cell.kubeconfig")
	file := reserve(t, path)
	symlink(t, path+".elsewhere", path)
	err := file.Commit([]byte("token: new\n"))
	want := "write the kubeconfig: " + path + " is a symbolic link: a credential is never written through one; name the file itself"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if removed, _ := file.Abandon(); removed {
		t.Error("the link was removed")
	}
	if _, err := os.Stat(path + ".elsewhere"); err == nil {
		t.Error("the link was followed")
	}
	onlyFile(t, path)
}

func TestAbandon(t *testing.T) {
	for name, test := range map[string]struct {
		before  string
		removed bool
	}{
		"removes an earlier run's credential": {"# Written by cellcast; old\n", true},
		"leaves an empty file":                {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cell.kubeconfig")
			write(t, path, test.before, 0o600)
			removed, err := reserve(t, path).Abandon()
			if err != nil || removed != test.removed {
				t.Errorf("got %v, %v; want %v", removed, err, test.removed)
			}
			if _, err := os.Stat(path); os.IsNotExist(err) != test.removed {
				t.Errorf("the file: %v", err)
			}
		})
	}
}

// An interrupted run leaves the earlier file whole.
func TestNothingShowsBeforeCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cell.kubeconfig")
	write(t, path, "# Written by cellcast; old\n", 0o600)
	file := reserve(t, path)
	if got := content(t, path); got != "# Written by cellcast; old\n" {
		t.Errorf("the file is %q", got)
	}
	if _, err := file.Abandon(); err != nil {
		t.Fatal(err)
	}
	if files := tree(t, path); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

func reserve(t *testing.T, path string) *kubeconfigfile.File {
	t.Helper()
	file, err := kubeconfigfile.Reserve(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// tree is what is in the directory of path, with content.
func tree(t *testing.T, path string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		files[entry.Name()] = entry.Type().String()
		if entry.Type().IsRegular() {
			files[entry.Name()] = content(t, filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
	return files
}

// onlyFile fails where a temporary file was left.
func onlyFile(t *testing.T, path string) {
	t.Helper()
	if files := tree(t, path); len(files) != 1 {
		t.Errorf("beside the file there is something: %v", files)
	}
}
