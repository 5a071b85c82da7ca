package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// PrometheusAddresses are the servers that may be asked for numbers. The zero value is
// none: then no Rollout can have a healthGate.
type PrometheusAddresses struct {
	// Default is asked for a Rollout that names none, as ParsePrometheusAddress returns
	// it; "" is none.
	Default string
	// Allowed are further ones that a Rollout may name, in the same form.
	Allowed []string
	// Any lets a Rollout name every address: its author may then have the controller send
	// requests to wherever the controller reaches.
	Any bool
}

// Allows tells whether a Rollout may name this address.
func (p PrometheusAddresses) Allows(address string) bool {
	return address != "" && (p.Any || address == p.Default || slices.Contains(p.Allowed, address))
}

// ParsePrometheusAddress checks the URL of a server and brings it into one form, so that
// two spellings of one address are equal. An error says what to write instead.
func ParsePrometheusAddress(text string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil:
		return "", errors.New("is no URL: write it as in http://prometheus.monitoring:9090")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("must begin with http:// or https://")
	case u.User != nil:
		return "", errors.New("must not hold a user: credentials are the operator's, from a file")
	case u.Hostname() == "" || u.Opaque != "":
		return "", errors.New("names no host: write it as in http://prometheus.monitoring:9090")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return "", errors.New("must end with the path, if there is one: remove what follows ? or #")
	}
	u.Host = strings.ToLower(u.Host)
	return strings.TrimRight(u.String(), "/"), nil
}

// withoutPassword is a URL as it may be repeated in a report.
func withoutPassword(text string) string {
	if u, err := url.Parse(strings.TrimSpace(text)); err == nil {
		return u.Redacted()
	}
	return text
}

// Allow reads the flag --allow-prometheus-addresses: URLs with commas between them, "*"
// for any, "" for none. An error names the faulty one; the plugin should not start with it.
func (p *PrometheusAddresses) Allow(flag string) error {
	p.Allowed, p.Any = nil, false
	switch flag = strings.TrimSpace(flag); flag {
	case "":
		return nil
	case "*":
		p.Any = true
		return nil
	}
	for _, text := range strings.Split(flag, ",") {
		address, err := ParsePrometheusAddress(text)
		if err != nil {
			return fmt.Errorf("%q %w", strings.TrimSpace(text), err)
		}
		p.Allowed = append(p.Allowed, address)
	}
	slices.Sort(p.Allowed)
	p.Allowed = slices.Compact(p.Allowed)
	return nil
}

// Listed is what Allow reads back.
func (p PrometheusAddresses) Listed() string {
	if p.Any {
		return "*"
	}
	return strings.Join(p.Allowed, ",")
}
