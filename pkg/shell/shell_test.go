package shell

import "testing"

func TestWord(t *testing.T) {
	for text, want := range map[string]string{
		"kubectl":               "kubectl",
		"--role=edit:a,b":       "--role=edit:a,b",
		"users/alice/eu":        "users/alice/eu",
		"":                      "''",
		"two words":             "'two words'",
		"R&D":                   "'R&D'",
		"$HOME":                 "'$HOME'",
		"~root":                 "'~root'",
		"it's":                  `'it'\''s'`,
		"a\nb":                  "'a\nb'",
		"users/a&wget$IFS-q&b/": "'users/a&wget$IFS-q&b/'",
	} {
		if got := Word(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
