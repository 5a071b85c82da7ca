package lab

import (
	"bytes"
	"net"
	"syscall"
	"testing"
	"time"
)

func TestIstiodServesOnTheSameAddressesAfterAKillAndARestart(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	i, err := shared.StartIstiod(ctx, IstiodOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Stop)
	addresses := []string{i.Address, i.HTTPAddress, i.MonitoringAddress}
	serves := func() {
		t.Helper()
		for _, address := range addresses {
			conn, err := net.DialTimeout("tcp", address, 5*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
		}
		metrics, err := i.Metrics(ctx)
		if err != nil || !bytes.Contains(metrics, []byte("pilot_info")) {
			t.Errorf("metrics without pilot_info, error %v", err)
		}
	}
	serves()
	if err := i.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := i.Kill(); err == nil {
		t.Error("an istiod that does not run was killed")
	}
	if err := i.Signal(syscall.SIGSTOP); err == nil {
		t.Error("an istiod that does not run was sent a signal")
	}
	if err := i.Start(ctx); err != nil {
		t.Fatal(err)
	}
	serves()
	if err := i.Start(ctx); err == nil {
		t.Error("istiod was started twice")
	}
	if err := i.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	serves()
	if _, err := shared.StartIstiod(ctx, IstiodOptions{}); err == nil {
		t.Error("a second istiod was started")
	}
}
