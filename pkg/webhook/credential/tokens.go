package credential

import (
	"strings"
	"unicode/utf8"
)

const (
	lower   = "abcdefghijklmnopqrstuvwxyz"
	upper   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters = lower + upper
	digits  = "0123456789"
	// urlSafe is the alphabet of base64url, RFC 4648 section 5.
	urlSafe = letters + digits + "-_"
)

// token is what the access tokens of one issuer look like: a prefix that
// nothing else has, then a run of at least least characters.
type token struct {
	prefix   string
	least    int
	alphabet string
	form     Form
}

func tokens() []token {
	const (
		gitHub = Form("a GitHub token")
		gitLab = Form("a GitLab token")
		slack  = Form("a Slack token")
		vault  = Form("a Vault token")
		google = Form("a Google credential")
	)
	return []token{
		{"ghp_", 20, letters + digits, gitHub},
		{"gho_", 20, letters + digits, gitHub},
		{"ghu_", 20, letters + digits, gitHub},
		{"ghs_", 20, letters + digits, gitHub},
		{"ghr_", 20, letters + digits, gitHub},
		{"github_pat_", 20, letters + digits + "_", gitHub},
		{"glpat-", 16, urlSafe, gitLab},
		{"gldt-", 16, urlSafe, gitLab},
		{"glrt-", 16, urlSafe, gitLab},
		{"glcbt-", 16, urlSafe, gitLab},
		{"glptt-", 16, urlSafe, gitLab},
		{"glagent-", 16, urlSafe, gitLab},
		{"xoxa-", 10, letters + digits + "-", slack},
		{"xoxb-", 10, letters + digits + "-", slack},
		{"xoxe-", 10, letters + digits + "-", slack},
		{"xoxp-", 10, letters + digits + "-", slack},
		{"xoxr-", 10, letters + digits + "-", slack},
		{"xoxs-", 10, letters + digits + "-", slack},
		{"xapp-", 10, letters + digits + "-", slack},
		{"hvs.", 20, urlSafe, vault},
		{"hvb.", 20, urlSafe, vault},
		{"hvr.", 20, urlSafe, vault},
		{"ya29.", 20, urlSafe, google},
		{"GOCSPX-", 20, urlSafe, google},
		{"AIzaSy", 33, urlSafe, google},
		{"k8s-aws-v1.", 20, urlSafe, "an EKS token"},
		{"sha256~", 43, urlSafe, "an OpenShift token"},
		{"npm_", 36, letters + digits, "an npm token"},
		{"dckr_pat_", 20, urlSafe, "a Docker token"},
		{"dop_v1_", 64, lower + digits, "a DigitalOcean token"},
		{"AGE-SECRET-KEY-1", 50, upper + digits, PrivateKey},
		{"PuTTY-User-Key-File-", 1, digits, PrivateKey},
	}
}

// in says that the text holds a token of this form. Before the prefix stands
// no letter or digit: "highp_" isn't one.
func (t token) in(text string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], t.prefix)
		if i < 0 {
			return false
		}
		start := at + i
		at = start + len(t.prefix)
		glued := start > 0 && strings.IndexByte(letters+digits, text[start-1]) >= 0
		if !glued && run(text[at:], t.alphabet) >= t.least {
			return true
		}
	}
}

// run returns how many characters at the start of the text are in the alphabet.
func run(text, alphabet string) int {
	for i := range len(text) {
		if strings.IndexByte(alphabet, text[i]) < 0 {
			return i
		}
	}
	return len(text)
}

// isBootstrapToken says that the whole text is a token as kubeadm makes them.
// The part after the dot needs a digit, which all but one in two hundred have:
// names such as deploy.productionsystem are none.
func isBootstrapToken(text string) bool {
	id, secret, _ := strings.Cut(text, ".")
	return len(id) == 6 && len(secret) == 16 && strings.Trim(id+secret, lower+digits) == "" &&
		strings.ContainsAny(secret, digits)
}

// hasAWSKeyPair says that the text holds an access key id and, somewhere, 40
// characters that its secret could be. The id alone is public.
func hasAWSKeyPair(text string) bool {
	var id, secret bool
	for _, word := range strings.FieldsFunc(text, not(letters+digits+"+/")) {
		id = id || len(word) == 20 && (strings.HasPrefix(word, "AKIA") || strings.HasPrefix(word, "ASIA"))
		secret = secret || len(word) == 40 && isOpaque(word)
	}
	return id && secret
}

func not(alphabet string) func(rune) bool {
	return func(r rune) bool { return r >= utf8.RuneSelf || strings.IndexByte(alphabet, byte(r)) < 0 }
}
