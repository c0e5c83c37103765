package decisions

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

var (
	now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key = Key{Hub: "https://cellcast.example.com", Workload: "payments/api"}
	one = Decision{Cell: cellcastv1alpha1.CellReference{Name: "eu-1", Endpoint: "https://eu-1.example.com", CABundle: []byte("PEM")},
		Policy: "payments", DecidedAt: now}
)

const written = `{
  "version": 1,
  "hub": "https://cellcast.example.com",
  "workload": "payments/api",
  "dark": false,
  "cell": {
    "name": "eu-1",
    "endpoint": "https://eu-1.example.com",
    "caBundle": "UEVN"
  },
  "policy": "payments",
  "decidedAt": "2026-01-02T03:04:05Z"
}
`

func saved(t *testing.T) (Cache, string) {
	t.Helper()
	c := In(filepath.Join(t.TempDir(), "a", "cellcast"))
	if err := c.Save(key, one); err != nil {
		t.Fatal(err)
	}
	return c, filepath.Join(c.Dir(), name(key))
}

func TestADecisionIsKeptForItsOwnerAlone(t *testing.T) {
	c, path := saved(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written, string(content)); diff != "" {
		t.Errorf("the file (-want +got):\n%s", diff)
	}
	for path, want := range map[string]os.FileMode{c.Dir(): 0o700, path: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	got, err := c.Last(key, now.Add(time.Hour), 24*time.Hour)
	if diff := cmp.Diff(one, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestALaterDecisionReplacesAnEarlier(t *testing.T) {
	c, _ := saved(t)
	later := one
	later.Cell.Name = "eu-2"
	if err := c.Save(key, later); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Last(key, now, time.Hour); err != nil || got.Cell.Name != "eu-2" {
		t.Errorf("got %v, %v", got, err)
	}
	if files, _ := os.ReadDir(c.Dir()); len(files) != 1 {
		t.Errorf("files are left over: %v", files)
	}
}

func TestAQuestionHasItsOwnDecision(t *testing.T) {
	c, _ := saved(t)
	for name, other := range map[string]Key{
		"of another hub":      {Hub: "https://other.example.com", Workload: key.Workload},
		"of another workload": {Hub: key.Hub, Workload: "payments/web"},
		"for a dark cell":     {Hub: key.Hub, Workload: key.Workload, Dark: true},
	} {
		if _, err := c.Last(other, now, time.Hour); !errors.Is(err, ErrNone) {
			t.Errorf("%s: got %v, want none", name, err)
		}
	}
	if _, err := In(filepath.Join(t.TempDir(), "new")).Last(key, now, time.Hour); !errors.Is(err, ErrNone) {
		t.Errorf("in a folder that isn't there: got %v, want none", err)
	}
}

func TestADecisionCountsForItsTime(t *testing.T) {
	c, _ := saved(t)
	for name, test := range map[string]struct {
		at   time.Time
		says string
	}{
		"at once":                 {now, ""},
		"in its last moment":      {now.Add(time.Hour - 1), ""},
		"no longer":               {now.Add(time.Hour), "the last decision is of 2026-01-02T03:04:05Z and counts for 1h0m0s (--cache-ttl)"},
		"by a clock that is late": {now.Add(-time.Minute), ""},
		"not from a time to come": {now.Add(-time.Minute - 1), "of a time to come"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Last(key, test.at, time.Hour)
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}

func TestWhatIsNotBelieved(t *testing.T) {
	change := func(old, new string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if !strings.Contains(written, old) {
				t.Fatalf("%q isn't in the file", old)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(written, old, new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	chmod := func(mode os.FileMode, up string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if err := os.Chmod(filepath.Join(path, up), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		damage func(t *testing.T, path string)
		says   string
	}{
		"a file that others may read":       {chmod(0o640, "."), "isn't believed: others have access to it (0640)"},
		"a file that others may write":      {chmod(0o602, "."), "isn't believed: others have access to it (0602)"},
		"a folder that others may enter":    {chmod(0o701, ".."), "isn't used: others have access to it (0701)"},
		"an empty file":                     {change(written, ""), "it's damaged: EOF"},
		"half a file":                       {change("\"policy\"", "\"pol"), "it's damaged"},
		"a second decision":                 {change("}\n", "}\n{}"), "it's damaged"},
		"something after it":                {change("Z\"\n}", "Z\"\n}]"), "something follows the decision"},
		"a field that nobody knows":         {change(`"policy"`, `"token": "x", "policy"`), `unknown field "token"`},
		"a version that nobody knows":       {change(`"version": 1`, `"version": 2`), "its version is 2, and 1 is known"},
		"an answer to another question":     {change("payments/api", "payments/web"), "it's the answer to another question"},
		"a cell without a name":             {change(`"name": "eu-1"`, `"name": ""`), `"" is no name of a cell`},
		"a name that would drive a shell":   {change(`"name": "eu-1"`, `"name": "$(id)"`), "is no name of a cell"},
		"an endpoint in the clear":          {change("https://eu-1", "http://eu-1"), "the cell has no https endpoint"},
		"a decision without a time":         {change(`2026-01-02T03:04:05Z`, `0001-01-01T00:00:00Z`), "it doesn't say when it was decided"},
		"a file that is too large":          {change(written, written+strings.Repeat(" ", MaxSize)), "it's larger than 262144 bytes"},
		"a link, though it leads to a file": {link, "it's no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			c, path := saved(t)
			test.damage(t, path)
			_, err := c.Last(key, now, time.Hour)
			if err == nil || errors.Is(err, ErrNone) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}

func link(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.Rename(path, path+".real"), os.Symlink(filepath.Base(path)+".real", path)); err != nil {
		t.Fatal(err)
	}
}

func TestWhatAnotherUserOwnsIsNotBelieved(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	for name, up := range map[string]string{"the file": ".", "the folder": ".."} {
		t.Run(name, func(t *testing.T) {
			c, path := saved(t)
			if err := os.Chown(filepath.Join(path, up), 12345, -1); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Last(key, now, time.Hour); err == nil || !strings.Contains(err.Error(), "it isn't owned by this user (0)") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestNothingIsSavedWhereOthersCouldReadIt(t *testing.T) {
	c, path := saved(t)
	if err := errors.Join(os.Remove(path), os.Chmod(c.Dir(), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := c.Save(key, one); err == nil || !strings.Contains(err.Error(), "others have access to it (0755)") {
		t.Errorf("got %v", err)
	}
	if files, _ := os.ReadDir(c.Dir()); len(files) != 0 {
		t.Errorf("files: %v", files)
	}
}

func TestWhatCouldNotBeReadIsNotSaved(t *testing.T) {
	c, path := saved(t)
	large := one
	large.Cell.CABundle = make([]byte, MaxSize)
	if err := c.Save(key, large); err == nil {
		t.Error("a decision was saved that is too large to be read")
	}
	if err := c.Save(key, Decision{}); err == nil {
		t.Error("an empty decision was saved")
	}
	if content, _ := os.ReadFile(path); string(content) != written {
		t.Errorf("the earlier decision is now\n%s", content)
	}
}
