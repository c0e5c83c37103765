package rehearsal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cellcast.io/cellcast/pkg/policy"
)

// ParseClaims reads the decoded payload of a CI token and returns the pipeline
// that shows the token. It assumes that the hub's AuthenticationConfiguration
// maps each claim to its own name, and one within an object to the names on the
// way to it with a / between them, as what cellcast issuer prints does. A claim
// that the hub doesn't map is seen here all the same.
//
// A claim has one value, or a list of them; numbers and booleans count as
// their text, and empty text as no value, as in the hub. Skipped names the
// claims that are lists of something else.
//
// It refuses a token itself, and never repeats what is in the file.
func ParseClaims(content []byte) (caller policy.Caller, skipped []string, err error) {
	if holdsToken(content) {
		return policy.Caller{}, nil, errors.New("holds a token, where its payload is wanted: decode the token's second part, and keep the token out of files that are checked in")
	}
	payload, err := parseObject(content)
	if err != nil {
		return policy.Caller{}, nil, err
	}
	caller.Claims = map[string][]string{}
	skipped = flatten("", payload, caller.Claims)
	if caller.Issuer, err = text(payload, "iss"); err != nil {
		return policy.Caller{}, nil, err
	}
	if caller.Subject, err = text(payload, "sub"); err != nil {
		return policy.Caller{}, nil, err
	}
	// As at the hub's own port, where the name is claims.sub, without a system:
	// before it.
	caller.User = "pipeline:" + caller.Issuer + "#" + strings.TrimPrefix(caller.Subject, "system:")
	caller.Groups = []string{"cellcast.io:pipelines", everyone}
	return caller, skipped, nil
}

// everyone is the group of all whom an API server authenticated.
const everyone = "system:authenticated"

// serviceAccount begins the user name of a ServiceAccount.
const serviceAccount = "system:serviceaccount:"

// HubUser returns a caller of the hub's own, with the groups that an API server
// adds to those given.
func HubUser(name string, groups []string) policy.Caller {
	groups = append(slices.Clone(groups), everyone)
	if rest, ok := strings.CutPrefix(name, serviceAccount); ok {
		namespace, _, _ := strings.Cut(rest, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	return policy.Caller{User: name, Groups: groups}
}

// token is a JWT anywhere: a header begins with {", which is eyJ in base64.
var token = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]`)

func holdsToken(content []byte) bool { return token.Match(content) }

func parseObject(content []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	var payload map[string]any
	if err := decoder.Decode(&payload); err != nil || payload == nil {
		return nil, errors.New("holds no JSON object: the decoded payload of a token is wanted")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("holds more than one JSON object: the payload of a token is wanted alone, without its header")
	}
	return payload, nil
}

func text(payload map[string]any, name string) (string, error) {
	value, ok := payload[name].(string)
	if !ok || value == "" {
		return "", fmt.Errorf("has no %s: the claims of a token name at least iss and sub", name)
	}
	return value, nil
}

// flatten puts the claims of an object and of those in it under their names,
// and returns the names of those that it can't.
func flatten(prefix string, object map[string]any, to map[string][]string) (skipped []string) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if inner, ok := object[name].(map[string]any); ok {
			skipped = append(skipped, flatten(prefix+name+"/", inner, to)...)
			continue
		}
		values, ok := valuesOf(object[name])
		switch {
		case !ok:
			skipped = append(skipped, prefix+name)
		case len(values) > 0:
			to[prefix+name] = values
		}
	}
	return skipped
}

// valuesOf is the values of a claim; false where an object or a list is among
// those of a list.
func valuesOf(claim any) ([]string, bool) {
	list, isList := claim.([]any)
	if !isList {
		list = []any{claim}
	}
	var values []string
	for _, element := range list {
		switch v := element.(type) {
		case nil:
		case string:
			if v != "" {
				values = append(values, v)
			}
		case bool, json.Number:
			values = append(values, fmt.Sprint(v))
		default:
			return nil, false
		}
	}
	return values, true
}
