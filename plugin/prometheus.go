package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/prometheus"
)

// bindPrometheus makes the flags about the source of the health gate's numbers. allowed
// are the servers that a Rollout may have asked.
func bindPrometheus(f *pflag.FlagSet, o *prometheus.Options, allowed *config.PrometheusAddresses) {
	f.Var(addressValue{o, allowed}, "prometheus-address", "the Prometheus that Rollouts with a healthGate have asked, as in http://prometheus.monitoring:9090; empty: none")
	f.StringVar(&o.TokenFile, "prometheus-token-file", "", "file with a bearer token for that server; read for each question")
	f.StringVar(&o.CAFile, "prometheus-ca-file", "", "file with PEM certificates to trust for that server; read for each question; empty: the system's")
	f.Var(addressesValue{allowed}, "allow-prometheus-addresses", "further servers that a Rollout may name in its healthGate: URLs with commas between them, or * for any; no token is sent to them")
}

// checkPrometheus refuses credentials that nobody would get.
func checkPrometheus(o prometheus.Options) error {
	if o.Address == "" && (o.TokenFile != "" || o.CAFile != "") {
		return errors.New("--prometheus-token-file and --prometheus-ca-file are for the server of --prometheus-address: name it")
	}
	return nil
}

// addressValue makes --prometheus-address a flag that refuses what is no URL.
type addressValue struct {
	options *prometheus.Options
	allowed *config.PrometheusAddresses
}

func (v addressValue) String() string {
	if v.options == nil {
		return ""
	}
	return v.options.Address
}

func (v addressValue) Type() string { return "url" }

func (v addressValue) Set(s string) (err error) {
	if s != "" {
		if s, err = config.ParsePrometheusAddress(s); err != nil {
			return fmt.Errorf("the URL %w", err)
		}
	}
	v.options.Address, v.allowed.Default = s, s
	return nil
}

// addressesValue makes --allow-prometheus-addresses a flag that refuses what is no URL.
type addressesValue struct{ allowed *config.PrometheusAddresses }

func (v addressesValue) String() string {
	if v.allowed == nil {
		return ""
	}
	return v.allowed.Listed()
}

func (v addressesValue) Type() string { return "urls" }

func (v addressesValue) Set(s string) error { return v.allowed.Allow(s) }
