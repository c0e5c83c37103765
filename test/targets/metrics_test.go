package targets

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
)

// metric is a metric of the hub's that has no labels.
func metric(t *testing.T, name string) int64 {
	t.Helper()
	line := regexp.MustCompile(`(?m)^` + name + ` ([0-9.e+]+)$`)
	var value float64
	eventually(t, "the hub tells "+name, func(ctx context.Context) error {
		text, err := hub.Metrics(ctx)
		if err != nil {
			return err
		}
		match := line.FindSubmatch(text)
		if match == nil {
			return fmt.Errorf("it doesn't tell %s", name)
		}
		value, err = strconv.ParseFloat(string(match[1]), 64)
		return err
	})
	return int64(value)
}
