package credential

import (
	"strings"
	"unicode"
)

// namesCredential says that a key names a credential and that its value could
// be one: a text or number that isn't empty, or a list of them. An object is
// never one; its own members tell.
func namesCredential(key string, value node) bool {
	name := key[strings.LastIndexByte(key, '/')+1:]
	return anyText(value, func(text string) bool {
		switch {
		case text == "":
			return false
		case isCredentialName(name):
			return true
		case name == "auth":
			return isBasicPair(text)
		case strings.EqualFold(name, "authorization"):
			return strings.Contains(text, " ") // a scheme and a credential, not "rbac"
		}
		switch lastWord(name) {
		case "password", "passwd", "passphrase":
			return !isSwitch(text)
		case "token", "secret":
			return isOpaque(text)
		default:
			return false
		}
	})
}

func anyText(n node, is func(string) bool) bool {
	switch n.kind {
	case scalar:
		return is(n.text)
	case sequence:
		for _, child := range n.children {
			if anyText(child, is) {
				return true
			}
		}
		return false
	case mapping, empty:
		return false
	default:
		return false
	}
}

// isCredentialName knows the names whose value is a credential whatever it
// looks like. Case and separators don't count: client-key-data, clientKeyData
// and CLIENT_KEY_DATA are one name; token-policy and tokenTTL are others.
func isCredentialName(name string) bool {
	bare := strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_. ", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
	switch bare {
	case "token", "tokenfile", "bearertoken", "bearertokenfile", "accesstoken", "apitoken", "authtoken", "idtoken",
		"identitytoken", "refreshtoken", "registrytoken", "sessiontoken",
		"githubtoken", "ghtoken", "gitlabtoken", "npmtoken", "vaulttoken", "xvaulttoken", "privatetoken", "cijobtoken":
		return true
	case "password", "passwd", "passphrase", "passwordfile", "htpasswd":
		return true
	case "clientkey", "clientkeydata", "clientcertificatedata", "privatekey", "privatekeydata", "privatekeypem",
		"sshprivatekey", "tlskey":
		return true
	case "clientsecret", "sharedsecret", "secretkey", "secretaccesskey", "awssecretaccesskey", "awssessiontoken",
		"apikey", "xapikey", "accountkey", "storageaccountkey", "azureclientsecret":
		return true
	case "dockercfg", "dockerconfigjson":
		return true
	default:
		return false
	}
}

// lastWord returns the last word of a name in any style: dbPassword,
// db-password and DB_PASSWORD all end in password.
func lastWord(name string) string {
	word := name[strings.LastIndexAny(name, "-_. ")+1:]
	if strings.ToUpper(word) == word {
		return strings.ToLower(word)
	}
	return strings.ToLower(word[max(strings.LastIndexFunc(word, unicode.IsUpper), 0):])
}

// isSwitch says that a value turns something on or off: needs-password: "false".
func isSwitch(text string) bool {
	switch strings.ToLower(text) {
	case "true", "false", "yes", "no", "on", "off", "none", "enabled", "disabled", "required", "optional":
		return true
	default:
		return false
	}
}

// isOpaque says that a text looks drawn at random and not like a name: 32 or
// more hexadecimal digits, or 16 or more characters that mix cases and digits.
func isOpaque(text string) bool {
	if len(text) >= 32 && strings.Trim(text, digits+"abcdefABCDEF") == "" {
		return true
	}
	return len(text) >= 16 && strings.Trim(text, letters+digits+"_-+/=.~") == "" &&
		strings.ContainsAny(text, digits) && strings.ContainsAny(text, lower) && strings.ContainsAny(text, upper)
}
