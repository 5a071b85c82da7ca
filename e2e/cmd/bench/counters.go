package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// verbs are the API server's in its metrics, and what they are called elsewhere.
var verbs = map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

// serverWrites are the writes of Istio's objects that the API server has counted
// since its start, whoever sent them: its metrics do not say who.
func serverWrites(ctx context.Context, l *lab.Lab) (counted, error) {
	text, err := l.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("the API server's metrics: %w", err)
	}
	return parseServerWrites(text)
}

func parseServerWrites(text []byte) (counted, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the API server's metrics: %w", err)
	}
	all := counted{}
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		verb, writes := verbs[labels["verb"]]
		if writes && labels["group"] == virtualServiceResource.Group {
			all[kindOfRequest{verb, labels["resource"]}] += int(metric.GetCounter().GetValue())
		}
	}
	return all, nil
}

// minus leaves out what was counted before.
func (c counted) minus(before counted) counted {
	out := counted{}
	for kind, n := range c {
		if n > before[kind] {
			out[kind] = n - before[kind]
		}
	}
	return out
}
