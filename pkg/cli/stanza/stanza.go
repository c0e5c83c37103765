// Package stanza writes the AuthenticationConfiguration by which a hub trusts
// a CI platform: the issuer, the audience, and which of the token's claims
// policies shall see.
//
// Claims keep the names of the platform's documentation, ids as well as names,
// for a name goes to whoever takes it next and an id doesn't. A claim that a
// job doesn't have is left out and keeps no job from coming in. What can't be
// written so that the hub takes it is refused here.
package stanza

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// Options say which issuer it is.
type Options struct {
	// Issuer is the iss of its tokens, an https URL. Empty means the one that
	// the platform's documentation names, where there is only one.
	Issuer string
	// DiscoveryURL is where its discovery document is, where that isn't at the
	// issuer's URL. It must differ from the issuer.
	DiscoveryURL string
	// Audience is the aud that its tokens must have for the hub; required.
	Audience string
	// CA is what the issuer's certificate is checked by, PEM certificates and
	// nothing else. Empty means the roots of the hub's system.
	CA []byte
}

// Write returns the configuration, YAML of kind AuthenticationConfiguration
// (apiserver.config.k8s.io/v1) with one entry. Errors speak to who named the
// options.
func Write(name string, o Options) ([]byte, error) {
	p, ok := platforms[name]
	if !ok {
		return nil, fmt.Errorf("no CI platform is known as %q; there are %s", name, strings.Join(Names(), ", "))
	}
	if o.Issuer == "" {
		o.Issuer = p.issuer
	}
	if o.Issuer == "" {
		return nil, fmt.Errorf("%s has no issuer of its own: give --issuer, %s", name, p.whichIssuer)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	ca, err := certificates(o.CA)
	if err != nil {
		return nil, err
	}
	o.CA = ca
	return p.render(o), nil
}

func (o Options) check() error {
	switch {
	case !isURL(o.Issuer):
		return errors.New("--issuer must be an https URL without user, query and fragment: the iss of the tokens, to the letter")
	case o.DiscoveryURL != "" && !isURL(o.DiscoveryURL):
		return errors.New("--discovery-url must be an https URL without user, query and fragment")
	case o.DiscoveryURL == o.Issuer:
		return errors.New("--discovery-url is the whole URL of the discovery document, so it differs from the issuer; leave it out where the document is at ISSUER/.well-known/openid-configuration")
	case o.Audience == "" || strings.ContainsFunc(o.Audience, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		return errors.New("--audience must be a word: what the job's tokens are asked for")
	default:
		return nil
	}
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil && !strings.ContainsAny(s, "?#")
}

const head = `# By this file a hub trusts %s: it's given by
# --pipeline-authentication-config. Where the hub has one already, add the entry
# under jwt to it; a changed file is read anew. Policies see each claim by the
# name after claims.cellcast.io/, and iss and sub besides.
`

// render writes with comments, which no encoder keeps. Whatever isn't a
// constant of ours is quoted.
func (p platform) render(o Options) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, head, p.title)
	for _, line := range p.notes {
		b.WriteString(strings.TrimRight("# "+line, " ") + "\n")
	}
	b.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n  - issuer:\n")
	fmt.Fprintf(&b, "      url: %s\n", strconv.Quote(o.Issuer))
	if o.DiscoveryURL != "" {
		fmt.Fprintf(&b, "      discoveryURL: %s\n", strconv.Quote(o.DiscoveryURL))
	}
	fmt.Fprintf(&b, "      audiences:\n        - %s\n", strconv.Quote(o.Audience))
	if len(o.CA) > 0 {
		b.WriteString("      certificateAuthority: |\n        ")
		b.WriteString(strings.ReplaceAll(strings.TrimRight(string(o.CA), "\n"), "\n", "\n        "))
		b.WriteString("\n")
	}
	if p.rule != "" {
		b.WriteString("    # Who isn't yours gets in without this rule, and finds no policy. Put your id in\n    # to keep them out altogether.\n")
		fmt.Fprintf(&b, "    #claimValidationRules:\n    #  - expression: '%s'\n    #    message: another organisation's token\n", p.rule)
	}
	fmt.Fprintf(&b, "    claimMappings:\n      username:\n        expression: '%s'\n", p.username())
	if len(p.claims) == 0 {
		b.WriteString(example)
		return []byte(b.String())
	}
	b.WriteString("      extra:\n")
	for _, c := range p.claims {
		fmt.Fprintf(&b, "        - key: %s\n          valueExpression: '%s'\n", c.key(), c.expression())
	}
	return []byte(b.String())
}

// example stands where nothing is known of the claims.
const example = `      # A claim that every token has, one that may be missing, and one that is no
      # string:
      #extra:
      #  - key: claims.cellcast.io/project_id
      #    valueExpression: 'claims.project_id'
      #  - key: claims.cellcast.io/environment
      #    valueExpression: 'claims.?environment.orValue("")'
      #  - key: claims.cellcast.io/protected
      #    valueExpression: 'claims.?protected.orValue(null) == null ? "" : string(claims.protected)'
`
