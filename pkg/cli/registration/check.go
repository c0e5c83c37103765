package registration

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

const (
	systemNamespace = "cellcast-system"
	defaultMaxTTL   = time.Hour
	// minTTL is the least that Kubernetes issues a token for.
	minTTL = 10 * time.Minute
	// maxRevocable is how many namespaces a report names at most.
	maxRevocable = 64
)

// trustAudience is the grammar of Cluster.spec.trust.audience, and maxAudience
// its length: as a repetition it would cost each start of the client half a
// millisecond.
var trustAudience = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9._:/]*[A-Za-z0-9])?$`)

const maxAudience = 253

func (c Cell) withDefaults() Cell {
	c.Hub = c.Hub.withDefaults()
	if c.Audience == "" {
		c.Audience = "cellcast:cell:" + c.Name
	}
	if len(c.APIAudiences) == 0 {
		c.APIAudiences = []string{c.Issuer}
	}
	if c.Agent == (types.NamespacedName{}) {
		c.Agent = types.NamespacedName{Namespace: systemNamespace, Name: "cellcast-agent"}
	}
	if c.MaxTTL == 0 {
		c.MaxTTL = defaultMaxTTL
	}
	if c.RevocableQuota == 0 {
		c.RevocableQuota = DefaultRevocableQuota
	}
	c.Mint = slices.Clone(c.Mint)
	slices.SortFunc(c.Mint, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	c.Mint = slices.Compact(c.Mint)
	c.Revocable = slices.Compact(slices.Sorted(slices.Values(c.Revocable)))
	return c
}

func (h Hub) withDefaults() Hub {
	h.Issuer = strings.TrimSpace(h.Issuer)
	h.MirrorURL = strings.TrimRight(h.MirrorURL, "/")
	if h.ServiceAccount == (types.NamespacedName{}) {
		h.ServiceAccount = types.NamespacedName{Namespace: systemNamespace, Name: "cellcast-hub"}
	}
	return h
}

// check names everything that is wrong with the cell.
func (c Cell) check() error {
	var errs []error
	wrong := func(what string, problems ...string) {
		for _, p := range problems {
			errs = append(errs, fmt.Errorf("%s: %s", what, p))
		}
	}
	wrong("cell name", validation.IsDNS1123Subdomain(c.Name)...)
	if len(c.Name) > validation.DNS1123LabelMaxLength {
		wrong("cell name", "must be no more than 63 characters")
	}
	wrong("endpoint", urlProblem(c.Endpoint)...)
	for _, e := range metav1validation.ValidateLabels(c.Labels, field.NewPath("labels")) {
		errs = append(errs, e)
	}
	wrong("provider", oneOf(c.Provider, "", registryv1alpha1.ProviderEKS, registryv1alpha1.ProviderGKE, registryv1alpha1.ProviderAKS, registryv1alpha1.ProviderGeneric)...)
	wrong("state", oneOf(c.State, "", registryv1alpha1.StateLive, registryv1alpha1.StateDark, registryv1alpha1.StateDraining)...)
	if c.Issuer == "" {
		wrong("issuer of the cell", "must not be empty: the agent's reports are known by it")
	}
	if len(c.Audience) > maxAudience || !trustAudience.MatchString(c.Audience) {
		wrong("audience of the cell", fmt.Sprintf("%q must be 1 to 253 letters, digits, '-', '.', '_', ':' and '/', and begin and end with a letter or digit", c.Audience))
	}
	for _, a := range slices.Concat(c.APIAudiences, c.MintAudiences) {
		if c.Issuer != "" && (a == "" || len(a) > 512) {
			wrong("audience of tokens", "must be 1 to 512 characters")
		}
	}
	wrong("agent", accountProblem(c.Agent)...)
	if len(c.Mint) == 0 {
		wrong("ServiceAccounts to mint for", "at least one is needed: without it the hub can issue no credential")
	}
	for _, sa := range c.Mint {
		wrong("ServiceAccount to mint for "+sa.String(), accountProblem(sa)...)
	}
	for _, ns := range c.Revocable {
		wrong(fmt.Sprintf("revocable namespace %q", ns), c.revocableProblem(ns)...)
	}
	if len(c.Revocable) > maxRevocable {
		wrong("revocable namespaces", fmt.Sprintf("must be no more than %d, which is what an agent can report", maxRevocable))
	}
	if c.RevocableQuota < 1 || c.RevocableQuota > maxRevocableQuota {
		wrong("quota of a revocable namespace", fmt.Sprintf("must be 1 to %d Secrets", maxRevocableQuota))
	}
	if c.MaxTTL < minTTL {
		wrong("longest life of a token", "must be at least 10m, the least that Kubernetes issues a token for")
	}
	if c.MaxTTL%time.Second != 0 {
		wrong("longest life of a token", "must be whole seconds")
	}
	return errors.Join(append(errs, c.Hub.check(c.Issuer))...)
}

// check names what is wrong with the hub, for a cell with the given issuer.
func (h Hub) check(cellIssuer string) error {
	var errs []error
	wrong := func(what string, problems ...string) {
		for _, p := range problems {
			errs = append(errs, fmt.Errorf("%s: %s", what, p))
		}
	}
	wrong("issuer of the hub", urlProblem(h.Issuer)...)
	if h.Issuer != "" && h.Issuer == cellIssuer {
		errs = append(errs, &SharedIssuerError{Issuer: h.Issuer})
	}
	if h.MirrorURL != "" {
		wrong("URL of the hub's mirror", urlProblem(h.MirrorURL)...)
	}
	if strings.HasSuffix(h.MirrorURL, discoveryPath) {
		wrong("URL of the hub's mirror", "must be without "+discoveryPath)
	}
	wrong("ServiceAccount of the hub", accountProblem(h.ServiceAccount)...)
	return errors.Join(errs...)
}

// SharedIssuerError says that hub and cell name themselves alike.
type SharedIssuerError struct{ Issuer string }

// Error says what is wrong and what to do.
func (e *SharedIssuerError) Error() string {
	return fmt.Sprintf("the cell's issuer and the hub's are both %q: an API server refuses to trust another one of its own name. "+
		"Give the hub's kube-apiserver an issuer of its own as the first --service-account-issuer, keep the present one as the second, "+
		"and register the cell with the new one", e.Issuer)
}

func urlProblem(raw string) []string {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return []string{"must be an https URL with a host"}
	case u.User != nil || strings.Contains(raw, "@"):
		return []string{"must hold no user or password"}
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(raw, "#"):
		return []string{"must have no query and no fragment"}
	case len(raw) > 512:
		return []string{"must be no more than 512 characters"}
	default:
		return nil
	}
}

func accountProblem(sa types.NamespacedName) []string {
	var problems []string
	for _, p := range validation.IsDNS1123Label(sa.Namespace) {
		problems = append(problems, "namespace: "+p)
	}
	for _, p := range validation.IsDNS1123Subdomain(sa.Name) {
		problems = append(problems, "name: "+p)
	}
	return problems
}

// revocableProblem refuses a namespace that is certain to hold more than
// revocable credentials: there the hub could delete, and nobody could create, what
// others need.
func (c Cell) revocableProblem(ns string) []string {
	switch {
	case ns == c.Agent.Namespace:
		return []string{"must not be the agent's own: it's to hold nothing but ServiceAccounts with revocable credentials"}
	case ns == metav1.NamespaceDefault, strings.HasPrefix(ns, "kube-"):
		return []string{"must not be one of Kubernetes' own: it's to hold nothing but ServiceAccounts with revocable credentials"}
	default:
		return validation.IsDNS1123Label(ns)
	}
}

func oneOf[T ~string](got T, allowed ...T) []string {
	if slices.Contains(allowed, got) {
		return nil
	}
	return []string{fmt.Sprintf("must be one of %v", allowed[1:])}
}
