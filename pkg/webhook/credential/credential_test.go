package credential_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/pkg/webhook/credential"
)

// canary is in every secret below, in the clear or in base64, and in nothing
// else.
const canary = "c4naryC4NARY"

var (
	jwt       = encode(`{"alg":"RS256","kid":"1"}`) + "." + encode(`{"sub":"`+canary+`"}`) + "." + encode("signature of "+canary)
	gitHub    = "gh" + "p_" + strings.Repeat(canary, 3)
	pemKey    = "-----BEGIN EC PRIVATE KEY-----\n" + encode(canary) + "\n-----END EC PRIVATE KEY-----\n"
	execYAML  = "apiVersion: v1\nkind: Config\nclusters:\n- name: a\n  cluster: {server: https://a.example.com}\nusers:\n- name: a\n  user:\n    exec: {command: aws}\n"
	tokenYAML = "apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user:\n    token: " + canary + "\n"
)

// derKey is a private key in PKCS 8, in base64 without armour.
func derKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(der)
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func std(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// wrapped is base64 as openssl and base64(1) write it, in lines.
func wrapped(text string) string {
	var lines strings.Builder
	for rest := std(text); rest != ""; {
		n := min(len(rest), 76)
		lines.WriteString(rest[:n] + "\n")
		rest = rest[n:]
	}
	return lines.String()
}

// annotated is a row with one annotation.
func annotated(value string) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{"note": value}}}
}

// applied is a row as kubectl apply leaves it, with the manifest's spec.
func applied(spec any) map[string]any {
	manifest, _ := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Cluster", "spec": spec})
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		"kubectl.kubernetes.io/last-applied-configuration": string(manifest)}}}
}

func TestScanFinds(t *testing.T) {
	const note = "metadata.annotations[note]"
	const lastApplied = "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]"
	type object = map[string]any
	for name, tc := range map[string]struct {
		row  any
		want []string
	}{
		"a JWT":                        {annotated(jwt), []string{note + " a JSON Web Token"}},
		"a JWT in a sentence":          {annotated("use " + jwt + ", it's good"), []string{note + " a JSON Web Token"}},
		"a JWT glued to a word":        {annotated("jwt_" + jwt), []string{note + " a JSON Web Token"}},
		"an encrypted JWT":             {annotated(encode(`{"alg":"dir","enc":"A256GCM"}`) + ".." + canary + "." + canary + "." + canary), []string{note + " a JSON Web Token"}},
		"an encrypted JWT with a key":  {annotated(encode(`{"alg":"RSA-OAEP","enc":"A256GCM"}`) + "." + canary + "." + canary + "." + canary + "." + canary), []string{note + " a JSON Web Token"}},
		"a JWT in base64":              {annotated(std(jwt)), []string{note + " a JSON Web Token"}},
		"a JWT in base64 twice":        {annotated(std(std(jwt))), []string{note + " a JSON Web Token"}},
		"a JWT in base64 of lines":     {annotated(wrapped(jwt)), []string{note + " a JSON Web Token"}},
		"base64 of a JWT in a line":    {annotated("data:text/plain;base64," + std(jwt)), []string{note + " a JSON Web Token"}},
		"base64 of a JWT in a path":    {annotated("https://a.example.com/" + encode(jwt) + "/x"), []string{note + " a JSON Web Token"}},
		"a JWT in quotes with escapes": {annotated(`"\u0065` + jwt[1:] + `"`), []string{note + " a JSON Web Token"}},
		"a JWT in any field":           {object{"spec": object{"reporter": object{"subject": jwt}}}, []string{"spec.reporter.subject a JSON Web Token"}},
		"a JWT in a list":              {object{"spec": object{"users": []any{"x", jwt}}}, []string{"spec.users[1] a JSON Web Token"}},
		"a JWT in a key":               {object{"metadata": object{"labels": object{jwt: "x"}}}, []string{"metadata.labels a JSON Web Token"}},
		"a JWT in a key at the root":   {object{jwt: "x"}, []string{"object a JSON Web Token"}},
		"a JWT under a secret key":     {object{"metadata": object{"labels": object{gitHub: jwt}}}, []string{"metadata.labels a GitHub token"}},

		"a kubeconfig":                     {annotated(tokenYAML), []string{note + " a kubeconfig"}},
		"a kubeconfig without a token":     {annotated(execYAML), []string{note + " a kubeconfig"}},
		"a kubeconfig in base64":           {annotated(std(tokenYAML)), []string{note + " a kubeconfig"}},
		"a kubeconfig in base64 of lines":  {annotated(wrapped(tokenYAML)), []string{note + " a kubeconfig"}},
		"a kubeconfig with a mark":         {annotated(std("\ufeff" + tokenYAML)), []string{note + " a kubeconfig"}},
		"a kubeconfig in JSON":             {annotated(`{"kind":"Config","contexts":[],"users":[{"user":{"token":"` + canary + `"}}]}`), []string{note + " a kubeconfig"}},
		"a kubeconfig without a kind":      {annotated("users: []\nclusters: []\n"), []string{note + " a kubeconfig"}},
		"a kubeconfig as second document":  {annotated("a: b\n---\n" + tokenYAML), []string{note + " a kubeconfig"}},
		"a kubeconfig cut off":             {annotated(tokenYAML + "contexts: [\n"), []string{note + " a value under the name of a credential"}},
		"a user entry of a kubeconfig":     {annotated("- name: a\n  user:\n    client-key-data: " + canary), []string{note + "[0].user.client-key-data a value under the name of a credential"}},
		"the manifest of a Secret":         {annotated("kind: Secret\ndata:\n  x: " + std(canary)), []string{note + " the data of a Secret"}},
		"a document in base64url":          {annotated(encode(`{"password":"` + canary + `???>>>~~~"}`)), []string{note + ".password a value under the name of a credential"}},
		"a JSON document with a mark":      {annotated("\ufeff" + `{"token":"` + canary + `"}`), []string{note + ".token a value under the name of a credential"}},
		"a private key":                    {annotated(pemKey), []string{note + " a private key"}},
		"a private key in base64":          {annotated(std(pemKey)), []string{note + " a private key"}},
		"an OpenSSH private key":           {annotated("-----BEGIN OPENSSH PRIVATE KEY-----\n" + canary), []string{note + " a private key"}},
		"a PGP private key":                {annotated("-----BEGIN PGP PRIVATE KEY BLOCK-----\n" + canary), []string{note + " a private key"}},
		"a private key after certificates": {annotated("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n" + pemKey), []string{note + " a private key"}},
		"a private key without armour":     {annotated(derKey(t)), []string{note + " a private key"}},
		"a private JWK":                    {annotated(`{"kty":"EC","crv":"P-256","x":"a","y":"b","d":"` + canary + `"}`), []string{note + " a private key"}},

		"a GitHub token":               {annotated(gitHub), []string{note + " a GitHub token"}},
		"a token after an underscore":  {annotated("x_" + gitHub), []string{note + " a GitHub token"}},
		"a fine-grained GitHub token":  {annotated("github_pat_" + strings.Repeat(canary, 3)), []string{note + " a GitHub token"}},
		"a GitLab token":               {annotated("glp" + "at-" + strings.Repeat(canary, 2)), []string{note + " a GitLab token"}},
		"a Slack token":                {annotated("xox" + "b-1-" + canary), []string{note + " a Slack token"}},
		"a Vault token":                {annotated("hvs." + strings.Repeat(canary, 3)), []string{note + " a Vault token"}},
		"an EKS token":                 {annotated("k8s-aws-v1." + strings.Repeat(canary, 3)), []string{note + " an EKS token"}},
		"an OpenShift token":           {annotated("sha256~" + strings.Repeat(canary, 4)), []string{note + " an OpenShift token"}},
		"a bootstrap token":            {annotated("abcdef.0123456789abcdef"), []string{note + " a Kubernetes bootstrap token"}},
		"a bearer token":               {annotated("Bearer " + canary + "0123"), []string{note + " the value of an Authorization header"}},
		"a short token after a header": {annotated("curl -H 'Authorization: Bearer x" + canary + "' https://a"), []string{note + " the value of an Authorization header"}},
		"basic authentication":         {annotated("Basic " + std("u:"+canary)), []string{note + " the value of an Authorization header"}},
		"a URL with a password":        {annotated("see https://u:" + canary + "@a.example.com/x"), []string{note + " a URL with a password"}},
		"a second URL with a password": {annotated("https://a https://u:" + canary + "@a"), []string{note + " a URL with a password"}},
		"a token in a query":           {annotated("https://a.example.com/?x=y&access_token=" + canary), []string{note + " a value under the name of a credential"}},
		"an AWS key pair":              {annotated("AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), []string{note + " an AWS access key with its secret"}},
		"an env file":                  {annotated("A=b\nexport AWS_SECRET_ACCESS_KEY=" + canary), []string{note + " a value under the name of a credential"}},
		"a command line":               {annotated("login --password=" + canary), []string{note + " a value under the name of a credential"}},
		"JSON that is broken":          {annotated(`{"token": "` + canary + `", }`), []string{note + ".token a value under the name of a credential"}},
		"JSON that is cut off":         {annotated(`x {\"clientSecret\": \"` + canary), []string{note + " a value under the name of a credential"}},

		"a label called token":            {object{"metadata": object{"labels": object{"token": canary}}}, []string{"metadata.labels[token] a value under the name of a credential"}},
		"a prefixed label called token":   {object{"metadata": object{"labels": object{"example.com/token": canary}}}, []string{"metadata.labels[example.com/token] a value under the name of a credential"}},
		"a name that ends in password":    {object{"metadata": object{"annotations": object{"db-password": canary}}}, []string{"metadata.annotations[db-password] a value under the name of a credential"}},
		"an opaque value under a token":   {object{"metadata": object{"annotations": object{"deployBotToken": canary + canary}}}, []string{"metadata.annotations[deployBotToken] a value under the name of a credential"}},
		"hexadecimal under a secret":      {object{"metadata": object{"annotations": object{"webhook-secret": "da39a3ee5e6b4b0d3255bfef95601890afd80709"}}}, []string{"metadata.annotations[webhook-secret] a value under the name of a credential"}},
		"a header in JSON":                {annotated(`{"Authorization":"Bearer ` + canary + `"}`), []string{note + ".Authorization a value under the name of a credential"}},
		"a number under a password":       {annotated("password: 123456"), []string{note + ".password a value under the name of a credential"}},
		"a list under a password":         {annotated(`{"password":["` + canary + `"]}`), []string{note + ".password a value under the name of a credential"}},
		"an alias under a token":          {annotated("a: &x " + canary + "\ntoken: *x\n"), []string{note + ".token a value under the name of a credential"}},
		"a Docker configuration":          {annotated(`{"auths":{"r.example.com":{"auth":"` + std("u:"+canary) + `"}}}`), []string{note + ".auths[r.example.com].auth a value under the name of a credential"}},
		"what the CRD pruned":             {applied(object{"token": canary}), []string{lastApplied + ".spec.token a value under the name of a credential"}},
		"a pruned tokenFile":              {applied(object{"auth": object{"tokenFile": "/" + canary}}), []string{lastApplied + ".spec.auth.tokenFile a value under the name of a credential"}},
		"a pruned client-key-data":        {applied(object{"client-key-data": canary}), []string{lastApplied + ".spec.client-key-data a value under the name of a credential"}},
		"a pruned kubeconfig":             {applied(object{"kubeconfig": object{"kind": "Config", "users": []any{}}}), []string{lastApplied + ".spec.kubeconfig a kubeconfig"}},
		"a pruned kubeconfig in a string": {applied(object{"kubeconfig": std(tokenYAML)}), []string{lastApplied + ".spec.kubeconfig a kubeconfig"}},
		"a key that managedFields repeat": {object{"metadata": object{
			"annotations":   object{gitHub: "x"},
			"managedFields": []any{object{"manager": "kubectl", "fieldsV1": object{"f:metadata": object{"f:annotations": object{"f:" + gitHub: object{}}}}}}}},
			[]string{"metadata.annotations a GitHub token"}},
		"a field manager":             {object{"metadata": object{"managedFields": []any{object{"manager": gitHub}}}}, []string{"metadata.managedFields[0].manager a GitHub token"}},
		"a field that nobody manages": {object{"metadata": object{"managedFields": []any{object{"fieldsV1": object{"f:" + gitHub: object{}}}}}}, []string{"metadata.managedFields[0].fieldsV1 a GitHub token"}},
		"every place": {object{"a": jwt, "b": object{"token": canary}, "c": []any{gitHub}},
			[]string{"a a JSON Web Token", "b.token a value under the name of a credential", "c[0] a GitHub token"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, scan(t, tc.row)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// scan returns the findings as "path form", and sees that none quotes a secret.
func scan(t *testing.T, row any) []string {
	t.Helper()
	raw, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	found, err := credential.Scan(raw)
	if err != nil {
		t.Fatalf("Scan: %v", err)
	}
	var got []string
	for _, f := range found {
		line := fmt.Sprintf("%s %s", f.Path, f.Form)
		if strings.Contains(line, canary) || strings.Contains(line, encode(canary)) {
			t.Errorf("a finding quotes the secret: %s", line)
		}
		got = append(got, line)
	}
	return got
}

func TestScanShowsKeysThatCanBeShown(t *testing.T) {
	long := strings.Repeat("k", 400)
	type object = map[string]any
	row := object{"a": object{"line\nbreak": object{"token": canary}}, "b": object{long: object{"token": canary}}}
	want := []string{
		"a[line?break].token a value under the name of a credential",
		"b." + long[:317] + ".token a value under the name of a credential",
	}
	if diff := cmp.Diff(want, scan(t, row)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestScanSeesBothMembersOfOneKey(t *testing.T) {
	for _, second := range []string{"", "x"} {
		found, err := credential.Scan([]byte(`{"spec":{"token":"` + canary + `","token":"` + second + `"}}`))
		if err != nil || len(found) != 1 || found[0].Path.String() != "spec.token" {
			t.Errorf("Scan = %v, %v; want one finding at spec.token", found, err)
		}
	}
}

func TestScanPasses(t *testing.T) {
	type object = map[string]any
	for name, row := range map[string]any{
		"an empty token":                 applied(object{"token": ""}),
		"a token that is null":           annotated(`{"token":null,"password":false}`),
		"YAML without a value":           annotated("token:\npassword: ~\nclientSecret: false\n"),
		"names that mean something else": object{"metadata": object{"labels": object{"authorization": "rbac", "auth": "oidc"}, "annotations": object{"encryption-key": "arn:aws:kms:eu-west-1:123456789012:key/1"}}},
		"the fields of a policy":         object{"spec": object{"tokenTTL": object{"default": "10m"}, "credential": object{"serviceAccountName": "deployer", "audiences": []any{"vault"}}}},
		"the fields of a cell":           object{"spec": object{"trust": object{"audience": "cellcast:cell:prod-eu"}, "reporter": object{"subject": "system:serviceaccount:cellcast-system:cellcast-agent"}}},
		"names that only begin so":       object{"metadata": object{"labels": object{"token-policy": "short", "password-rotation": "weekly", "secret-store": "vault"}}},
		"a switch":                       object{"metadata": object{"annotations": object{"needs-password": "false"}}},
		"a name under a token":           object{"metadata": object{"annotations": object{"deploy-token": "registry-pull-secret"}}},
		"a reference to a secret":        annotated(`{"clientSecret":{"name":"a","key":"b"}}`),
		"a sentence about a token":       annotated("token: ask the platform team"),
		"prose about bearer tokens":      annotated("callers present a Bearer token; basic authentication is off"),
		"a comparison in CEL":            object{"spec": object{"expression": "claims.token == 'x' && password != y"}},
		"a ternary in CEL":               object{"spec": object{"expression": "has(claims.env) ? claims.env : ''"}},
		"a variable":                     annotated("login --password=$PASSWORD --token={{token}} token=<token>"),
		"a URL with a user":              annotated("ssh://git@github.com/a/b git@github.com:a/b.git https://a:6443/@x:y"),
		"hashes":                         annotated("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 da39a3ee5e6b4b0d3255bfef95601890afd80709"),
		"a UUID":                         annotated("123e4567-e89b-12d3-a456-426614174000"),
		"a version with dots":            annotated("v1.2.3-rc.1+build.20260101"),
		"a long host name":               annotated("https://abcdef.productionsystem.eu.example.com"),
		"a public JWK":                   annotated(`{"kty":"EC","crv":"P-256","x":"a","y":"b"}`),
		"a certificate":                  annotated("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
		"JSON in three segments":         annotated(encode(`{"a":"b"}`) + ".c.d"),
		"a name like a bootstrap token":  object{"metadata": object{"name": "deploy.productionsystem"}},
		"an AWS access key id":           annotated("uses AKIAIOSFODNN7EXAMPLE"),
		"an AWS role":                    annotated("arn:aws:iam::123456789012:role/AKIAIOSFODNN7EXAMPLE"),
		"base64 of harmless JSON":        annotated(std(`{"team":"payments","tier":"one"}`)),
		"words that look like base64":    annotated("abcdefghijklmnop productionproductionproduction"),
		"a prefix inside a word":         annotated("highp_precisionrenderingpipeline0"),
		"field names under managedFields": object{"metadata": object{"managedFields": []any{object{
			"manager": "kubectl-client-side-apply", "fieldsV1": object{"f:metadata": object{"f:annotations": object{".": object{}, "f:example.com/token": object{}}, `k:{"type":"Ready"}`: object{}}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := scan(t, row); len(got) != 0 {
				t.Errorf("Scan found %q", got)
			}
		})
	}
}

func TestScanRefusesWhatItCannotSearch(t *testing.T) {
	deep := strings.Repeat(`{"a":`, credential.MaxDepth+1) + "1" + strings.Repeat("}", credential.MaxDepth+1)
	const unsearchable = "the object can't be searched for credentials: it must be one JSON object that nests at most 64 deep"
	for name, tc := range map[string]struct{ object, want string }{
		"too large": {`{"a":"` + strings.Repeat("x", credential.MaxBytes) + `"}`,
			"the object has 1048584 bytes; at most 1048576 can be searched for credentials: shorten its annotations"},
		"nests too deep": {deep, unsearchable},
		"nothing":        {"", unsearchable},
		"a list":         {"[]", unsearchable},
		"two objects":    {"{}{}", unsearchable},
		"cut off":        {`{"a":`, unsearchable},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := credential.Scan([]byte(tc.object)); err == nil || err.Error() != tc.want {
				t.Errorf("Scan: %v\nwant %s", err, tc.want)
			}
		})
	}

	layers := jwt
	for range credential.MaxLayers + 1 {
		layers = std(layers)
	}
	lines := strings.Repeat("all work and no play ", 5000)
	for range 6 {
		lines = wrapped(lines)
	}
	flow := strings.Repeat("[", credential.MaxDepth+2) + strings.Repeat("]", credential.MaxDepth+2)
	block := "a: " + flow
	for name, value := range map[string]string{"layers": layers, "bytes to unwrap": lines, "levels of JSON": flow, "levels of YAML": block} {
		t.Run("too many "+name, func(t *testing.T) {
			want := []string{"metadata.annotations[note] more layers or levels than can be searched"}
			if diff := cmp.Diff(want, scan(t, annotated(value))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScanEndsAtMaxFindings(t *testing.T) {
	many := map[string]any{}
	for i := range credential.MaxFindings + 5 {
		many[fmt.Sprintf("f%d", i)] = jwt
	}
	if got := scan(t, many); len(got) != credential.MaxFindings {
		t.Errorf("Scan found %d, want %d", len(got), credential.MaxFindings)
	}
}
