package scenarios

import (
	"debug/buildinfo"
	"testing"
)

func TestThePluginUnderTestHasTheRaceDetector(t *testing.T) {
	info, err := buildinfo.ReadFile(pluginPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range info.Settings {
		if setting.Key == "-race" && setting.Value == "true" {
			return
		}
	}
	t.Errorf("%s was built without -race: %v", pluginPath, info.Settings)
}
