package integration

import (
	"os"
	"strings"
	"testing"
)

// documents are the YAML documents of the files.
func documents(t *testing.T, files ...string) []string {
	t.Helper()
	var all []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Split(string(content), "\n---\n")...)
	}
	return all
}

// tokenReviews counts what cellcast-hub asked its API server of other people's
// tokens, by that server's audit log.
func tokenReviews(t *testing.T) int {
	t.Helper()
	content, err := os.ReadFile(hub.Hub.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(content), `"resource":"tokenreviews"`)
}
