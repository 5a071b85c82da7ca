package markdown

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// pluginPath is what the path "plugin" stands for.
var pluginPath = []string{"spec", "strategy", "canary", "trafficRouting", "plugins", "argoproj-labs/istio"}

// Manifest is what a runnable block of YAML means to an API server: its text, or the
// Rollout of its file with the block in it. root is the repository.
func (f Fence) Manifest(root string) ([]byte, error) {
	if f.File == "" {
		return []byte(f.Body), nil
	}
	content, err := os.ReadFile(filepath.Join(root, f.File))
	if err != nil {
		return nil, fmt.Errorf("%s: its marker names a file: %w", f.At, err)
	}
	rollout, err := rolloutOf(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %s, which its marker names: %w", f.At, f.File, err)
	}
	var part any
	if err := yaml.UnmarshalStrict([]byte(f.Body), &part); err != nil {
		return nil, fmt.Errorf("%s: %w", f.At, err)
	}
	path := strings.Split(f.Path, ".")
	if f.Path == "plugin" {
		path = pluginPath
	}
	merged, ok := put(rollout, path, part, f.Instead).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: its marker has an empty path", f.At)
	}
	return yaml.Marshal(merged)
}

// rolloutOf is the one Rollout of a file.
func rolloutOf(content []byte) (map[string]any, error) {
	var found []map[string]any
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		var object map[string]any
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			return nil, err
		}
		if object["kind"] == "Rollout" {
			found = append(found, object)
		}
	}
	if len(found) != 1 {
		return nil, errors.New("it does not have one Rollout")
	}
	return found[0], nil
}

// put returns what was with a part at a path, which is made where it is not there.
func put(was any, path []string, part any, instead bool) any {
	object, isMap := was.(map[string]any)
	if len(path) > 0 {
		changed := maps.Clone(object)
		if changed == nil {
			changed = map[string]any{}
		}
		changed[path[0]] = put(changed[path[0]], path[1:], part, instead)
		return changed
	}
	more, both := part.(map[string]any)
	if !isMap || !both || instead {
		return part
	}
	merged := maps.Clone(object)
	for key, value := range more {
		merged[key] = put(merged[key], nil, value, false)
	}
	return merged
}
