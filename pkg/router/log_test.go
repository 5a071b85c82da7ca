package router

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestAWriteIsOneLineWithItsObjectsAndAnUnchangedReconcileIsNone(t *testing.T) {
	w := hostWorld(t)
	var out bytes.Buffer
	r := newRouter(w, Options{}, hclog.New(&hclog.LoggerOptions{Output: &out, JSONFormat: true, Level: hclog.Info}), w.clock)
	ro := rollout(hostConfig)
	w.pods("new", 20, 20)
	for range 20 {
		mustUpdate(t, r, ro, "new", "old")
		if err := setWeight(t, r, ro, 50); err != nil {
			t.Fatal(err)
		}
		if verified, err := r.VerifyWeight(context.Background(), ro, 50, nil); !verified || err != nil {
			t.Fatalf("verified %v, error %v", verified, err)
		}
		if err := r.RemoveManagedRoutes(context.Background(), ro); err != nil {
			t.Fatal(err)
		}
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	if len(lines) != 1 {
		t.Fatalf("%d lines for one write and 20 reconciles:\n%s", len(lines), &out)
	}
	var line map[string]any
	if err := json.Unmarshal(lines[0], &line); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"namespace": "shop", "rollout": "cart", "virtualService": "shop/cart", "@level": "info"} {
		if line[key] != want {
			t.Errorf("%s is %v, want %s", key, line[key], want)
		}
	}
}
