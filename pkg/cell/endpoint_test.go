package cell

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]string{
		"https://cell.example":                  "",
		"https://cell.example:6443/k8s/c-1":     "",
		"https://[2001:db8::1]:6443":            "",
		"http://cell.example":                   "is not an https URL",
		"cell.example:6443":                     "is not an https URL",
		"https://":                              "has no host",
		"https://:6443":                         "has no host",
		"https://me:hunter2@cell.example":       "has userinfo, a query or a fragment",
		"https://cell.example?token=hunter2":    "has userinfo, a query or a fragment",
		"https://cell.example?":                 "has userinfo, a query or a fragment",
		"https://cell.example#hunter2":          "has userinfo, a query or a fragment",
		"https://cell.example/%zz?token=hunter": "is not a URL",
		"":                                      "is not an https URL",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := parseEndpoint(text)
			if got := message(err); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestParseCABundle(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("hunter2")}))
	noise := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("hunter2")}))
	headed := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Headers: map[string]string{"Token": "hunter2"}, Bytes: server.Certificate().Raw}))
	torn := strings.Replace(certificate, "-----END CERTIFICATE-----", "-----END-----", 1)

	for sentence, tt := range map[string]struct{ bundle, want string }{
		"one certificate":                {certificate, ""},
		"two, with blank lines between":  {"\n" + certificate + "\n\r\n" + certificate + "\n", ""},
		"a private key after it":         {certificate + key, "entry 2 is not a certificate"},
		"text before it":                 {"token: hunter2\n" + certificate, "what stands before entry 1 isn't PEM"},
		"text between":                   {certificate + "token: hunter2\n" + certificate, "what stands before entry 2 isn't PEM"},
		"text after it":                  {certificate + "token: hunter2\n", "what stands before entry 2 isn't PEM"},
		"a block whose bytes are noise":  {noise, "entry 1 is not a certificate that can be read"},
		"a block with headers":           {headed, "entry 1 is not a certificate"},
		"a torn block":                   {torn, "entry 1 is not PEM"},
		"a torn block before a good one": {torn + certificate, "entry 1 is not PEM"},
		"an RSA key of 8192 bits":        {certificate + rsaCA(t, 8192), ""},
		"an RSA key of 8193 bits":        {certificate + rsaCA(t, 8193), "entry 2 has an RSA key of more than 8192 bits"},
	} {
		t.Run(sentence, func(t *testing.T) {
			roots, err := ParseCABundle([]byte(tt.bundle))
			if got := message(err); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if (roots != nil) != (tt.want == "") {
				t.Errorf("roots are %v", roots)
			}
		})
	}
}

func TestAnEmptyCABundleMeansTheSystemsRoots(t *testing.T) {
	for _, empty := range []string{"", " \n"} {
		if roots, err := ParseCABundle([]byte(empty)); roots != nil || err != nil {
			t.Errorf("%q: %v, %v", empty, roots, err)
		}
	}
}

// rsaCA is the certificate of a CA with a key of so many bits, which nobody has the
// private one of.
func rsaCA(t *testing.T, bits uint) string {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 65537}, signer)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
