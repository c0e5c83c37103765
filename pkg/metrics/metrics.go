// Package metrics serves one /metrics of everything that runs in the hub:
// the API server's own families, controller-runtime's, and cellcast's.
package metrics

import (
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// Namespace begins the name of every metric of cellcast's own.
const Namespace = "cellcast"

// Handler serves the families of all the gatherers. Where two gatherers have a
// family of one name, its series are joined; of a series that both have, the
// first gatherer's stands.
func Handler(gatherers ...prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(joined(gatherers), promhttp.HandlerOpts{})
}

type joined []prometheus.Gatherer

func (j joined) Gather() ([]*dto.MetricFamily, error) {
	families := map[string]*dto.MetricFamily{}
	series := map[string]bool{}
	for _, gatherer := range j {
		gathered, err := gatherer.Gather()
		if err != nil {
			return nil, err
		}
		for _, family := range gathered {
			name := family.GetName()
			into, known := families[name]
			if !known {
				into = &dto.MetricFamily{Name: family.Name, Help: family.Help, Type: family.Type, Unit: family.Unit}
				families[name] = into
			}
			if into.GetType() != family.GetType() {
				continue
			}
			for _, metric := range family.GetMetric() {
				if key := name + labels(metric); !series[key] {
					series[key] = true
					into.Metric = append(into.Metric, metric)
				}
			}
		}
	}
	all := make([]*dto.MetricFamily, 0, len(families))
	for _, family := range families {
		all = append(all, family)
	}
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, nil
}

func labels(metric *dto.Metric) string {
	var b strings.Builder
	for _, pair := range metric.GetLabel() {
		b.WriteByte(0xff)
		b.WriteString(pair.GetName())
		b.WriteByte(0xff)
		b.WriteString(pair.GetValue())
	}
	return b.String()
}
