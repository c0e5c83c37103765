package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/cli/stanza"
)

const issuerHelp = `Print the AuthenticationConfiguration by which a hub trusts a CI platform: its
issuer, the audience, and the claims of its tokens, which policies then see by
the names of the platform's documentation.

Read what is printed, write it to the file that the hub is given by
--pipeline-authentication-config or, where there is one, add the entry under jwt
to it. The hub reads a changed file anew; a bad one leaves everything as it was,
and the hub's log says why. A PlacementPolicy then says which jobs may deploy
what: pin the ids, such as repository_id, for a name goes to whoever takes it
next. docs/ci.md has, for each platform, the policy and the job.
`

// issuerOptions is what the user says about the issuer.
type issuerOptions struct {
	stanza.Options
	ca string
}

func (e Env) issuerCommand(program string) *cobra.Command {
	o := &issuerOptions{}
	names := stanza.Names()
	cmd := &cobra.Command{
		Use:       "issuer " + strings.Join(names, "|"),
		Short:     "Print the configuration by which a hub trusts a CI platform",
		Long:      issuerHelp,
		ValidArgs: names,
		Args:      cobra.MaximumNArgs(1),
		Example: fmt.Sprintf(`  # GitHub Actions, for a hub that trusts no platform yet
  %[1]s issuer github > authentication.yaml

  # A GitLab of your own, with a certificate of your own
  %[1]s issuer gitlab --issuer https://gitlab.example.com --ca gitlab-ca.pem

  # A CircleCI organization, by the tokens that its jobs have anyway
  %[1]s issuer circleci --issuer https://oidc.circleci.com/org/ORGANIZATION_ID --audience ORGANIZATION_ID

  # The ServiceAccounts of a build cluster
  %[1]s issuer kubernetes --issuer https://build.example.com`, program),
		RunE: do(func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{"which CI platform? One of " + strings.Join(names, ", ")}
			}
			return e.issuer(o, args[0])
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Issuer, "issuer", "", "https URL of the issuer, the iss of its tokens; required where the platform has no single one")
	flags.StringVar(&o.DiscoveryURL, "discovery-url", "", "https URL of the discovery document, where that isn't ISSUER/.well-known/openid-configuration")
	flags.StringVar(&o.Audience, "audience", door.DefaultAudience, "the audience that tokens must have; what jobs ask for by --audience")
	flags.StringVar(&o.ca, "ca", "", "PEM file to check the issuer's certificate by (default: the roots of the hub's system)")
	return cmd
}

// issuer prints the configuration.
func (e Env) issuer(o *issuerOptions, platform string) error {
	if o.ca != "" {
		content, err := readCA(o.ca)
		if err != nil {
			return err
		}
		o.CA = content
	}
	content, err := stanza.Write(platform, o.Options)
	if err != nil {
		return &usageError{err.Error()}
	}
	_, err = e.Out.Write(content)
	return err
}

// maxCA is more than the stanza takes, so that it's the one to say so.
const maxCA = 64 << 10

// readCA reads no more of the file than could be a CA.
func readCA(path string) (content []byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the issuer's CA: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if content, err = io.ReadAll(io.LimitReader(file, maxCA)); err != nil {
		return nil, fmt.Errorf("read the issuer's CA: %w", err)
	}
	if len(content) == 0 {
		return nil, &usageError{fmt.Sprintf("the file %s of --ca is empty", path)}
	}
	return content, nil
}
