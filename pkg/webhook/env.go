package webhook

import (
	"fmt"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// EnvWarnings warn of a label that doesn't say how long a credential may live.
// row is what the sentence is about, such as "the cell".
func EnvWarnings(rowLabels map[string]string, row string) []string {
	counts := row + " counts as production, whose credentials live 10m by default and 15m at most"
	value, set := rowLabels[registry.LabelEnv]
	if !set {
		return []string{fmt.Sprintf("metadata.labels[%s] is missing: %s", registry.LabelEnv, counts)}
	}
	switch value {
	case "prod", "production", "stage", "staging", "dev", "development":
		return nil
	default:
		return []string{fmt.Sprintf("metadata.labels[%s] is none of prod, production, stage, staging, dev, development: %s",
			registry.LabelEnv, counts)}
	}
}
