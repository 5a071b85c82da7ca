package lab

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"
	"crypto/tls"
)

func TestScratch(t *testing.T) {
	l, err := newLab(Options{}, os.Stderr)
	if err != nil { t.Fatal(err) }
	defer l.Stop()
	silenceControllerRuntime()
	began := time.Now()
	go func() {
		for l.env == nil || l.env.ControlPlane.APIServer == nil || l.env.ControlPlane.APIServer.SecureServing.Port == "" { time.Sleep(20*time.Millisecond) }
		tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		c := &http.Client{Transport: tr}
		for {
			r, err := c.Get("https://"+l.apiAddress()+"/healthz")
			if err == nil { r.Body.Close(); fmt.Println("answers", time.Since(began), r.StatusCode); if r.StatusCode == 200 { break } }
			time.Sleep(50*time.Millisecond)
		}
		fmt.Println("healthz", time.Since(began))
	}()
	if os.Getenv("PPROF") != "" {
		go func() {
			time.Sleep(200*time.Millisecond)
			for l.Client == nil {
				time.Sleep(20*time.Millisecond)
			}
		}()
	}
	ctx := context.Background()
	step := func(name string, f func() error) {
		b := time.Now()
		if err := f(); err != nil { t.Fatal(name, err) }
		fmt.Println(name, time.Since(b), "total", time.Since(began))
		out, _ := exec.Command("sh", "-c", "for f in "+l.processes.notes+"/*; do p=${f##*/}; echo $(cut -d'/' -f1-9 /proc/$p/cmdline | tr '\\0' ' ' | cut -c1-60) cpu=$(awk '{print ($14+$15)/100}' /proc/$p/stat); done; awk '{print \"self\", ($14+$15)/100}' /proc/self/stat").Output()
		fmt.Print(string(out))
	}
	step("istio parse", func() error { _, err := istioCRDs(ctx); return err })
	step("api", func() error { return l.startAPIServer(ctx) })
	step("clients", l.makeClients)
	step("ready", func() error { return l.awaitReady(ctx) })
	step("kcm", func() error { return l.startControllerManager(ctx) })
	step("kwok", func() error { return l.startKwok(ctx) })
	time.Sleep(5*time.Second)
	step("5s later", func() error { return nil})
	_ = io.EOF
}
