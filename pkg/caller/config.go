package caller

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
)

// maxConfig is the largest configuration file, in bytes.
const maxConfig = 1 << 20

// parseConfig reads an AuthenticationConfiguration of
// apiserver.config.k8s.io/v1. Unknown fields, fields given twice and a second
// document are refused; then Kubernetes' own rules apply, and then ours.
func parseConfig(data []byte, compiler authenticationcel.Compiler) (*apiserver.AuthenticationConfiguration, error) {
	if len(data) > maxConfig {
		return nil, fmt.Errorf("the file has more than %d bytes", maxConfig)
	}
	document, err := onlyDocument(data)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiserver.AddToScheme, apiserverv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
	object, kind, err := decoder.Decode(document, nil, nil)
	if err != nil {
		return nil, err
	}
	config, ok := object.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("the file holds an object of kind %s, not an AuthenticationConfiguration", kind.Kind)
	}
	problems := validation.ValidateAuthenticationConfiguration(compiler, config, nil)
	return config, append(problems, refusals(config)...).ToAggregate()
}

// onlyDocument is the YAML document of the file. A decoder reads the first of
// several and says nothing about the others.
func onlyDocument(data []byte) ([]byte, error) {
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var only []byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		if only != nil {
			return nil, errors.New("the file holds more than one YAML document")
		}
		only = document
	}
	if only == nil {
		return nil, errors.New("the file is empty")
	}
	return only, nil
}

// refusals are what the hub refuses and Kubernetes doesn't.
func refusals(config *apiserver.AuthenticationConfiguration) field.ErrorList {
	var problems field.ErrorList
	refuse := func(path *field.Path, why string) { problems = append(problems, field.Forbidden(path, why)) }

	if config.Anonymous != nil {
		refuse(field.NewPath("anonymous"), "the hub answers nobody who doesn't say who they are")
	}
	for i, entry := range config.JWT {
		path := field.NewPath("jwt").Index(i)
		if strings.Contains(entry.Issuer.URL, "#") {
			refuse(path.Child("issuer", "url"), "'#' ends the issuer in a pipeline's name, so an issuer must not have one")
		}
		if entry.Issuer.EgressSelectorType != "" {
			refuse(path.Child("issuer", "egressSelectorType"), "the hub has no egress selector; it reaches issuers directly, or by the proxy of its environment")
		}
		mappings, path := entry.ClaimMappings, path.Child("claimMappings")
		if mappings.Groups.Claim != "" {
			refuse(path.Child("groups", "claim"), "it would fetch distributed claims from a URL that the token names; use groups.expression, such as claims."+mappings.Groups.Claim)
		}
		if p := mappings.Username.Prefix; p != nil && reserved(*p) {
			refuse(path.Child("username", "prefix"), whyReserved)
		}
		if p := mappings.Groups.Prefix; p != nil && reserved(*p) {
			refuse(path.Child("groups", "prefix"), whyReserved)
		}
		for j, extra := range mappings.Extra {
			key := path.Child("extra").Index(j).Child("key")
			switch {
			case extra.Key == ClaimIssuer || extra.Key == ClaimSubject:
				refuse(key, "the hub sets this key itself, from the token's "+strings.TrimPrefix(extra.Key, ClaimPrefix))
			case !strings.HasPrefix(extra.Key, ClaimPrefix):
				refuse(key, "a pipeline's claims have keys that begin with "+ClaimPrefix)
			}
		}
	}
	return problems
}

const whyReserved = "names that begin with system: or cellcast.io: are reserved"

func reserved(name string) bool {
	return strings.HasPrefix(name, "system:") || strings.HasPrefix(name, "cellcast.io:")
}
