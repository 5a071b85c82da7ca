package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// machine says on what it was measured. What the system does not tell is left out.
func machine() string {
	cpu, _ := os.ReadFile("/proc/cpuinfo")
	memory, _ := os.ReadFile("/proc/meminfo")
	return describe(cpu, memory, runtime.NumCPU(), runtime.GOOS+"/"+runtime.GOARCH, runtime.Version())
}

func describe(cpu, memory []byte, cores int, platform, goVersion string) string {
	parts := []string{fmt.Sprintf("%d cores", cores)}
	if model := fieldOf(cpu, "model name"); model != "" {
		parts[0] = model + ", " + parts[0]
	}
	if total, err := sizeIn(memory, "MemTotal"); err == nil {
		parts = append(parts, fmt.Sprintf("%.0f GiB", float64(total)/(1<<30)))
	}
	return strings.Join(append(parts, platform, goVersion, "Argo Rollouts "+lab.DefaultVersion), ", ")
}

// fieldOf finds the value of the first line "name : value".
func fieldOf(text []byte, name string) string {
	for line := range bytes.Lines(text) {
		if key, value, found := strings.Cut(string(line), ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
