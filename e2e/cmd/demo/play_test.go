package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

func TestTheFirstToArriveWaitsForTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := scenarios.NewMeeting(2)
		began := time.Now()
		met := make(chan time.Duration, 1)
		go func() {
			if err := m.Arrive(t.Context()); err != nil {
				t.Error(err)
			}
			met <- time.Since(began)
		}()
		time.Sleep(40 * time.Second)
		if err := m.Arrive(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := <-met; waited != 40*time.Second {
			t.Errorf("the first went on after %s, the second came after 40 s", waited)
		}
	})
}

func TestNobodyWaitsForOneWhoGaveUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := scenarios.NewMeeting(2).Arrive(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
}

func TestAStoryWithoutItsMarkCannotBeCut(t *testing.T) {
	if _, err := (pair{nativeStory(), pluginStory(20)}).since("rollback"); err == nil {
		t.Error("a timeline without the mark was cut")
	}
}

func TestThePictureIsOneOfBothRouters(t *testing.T) {
	var out bytes.Buffer
	if err := (pair{nativeStory(), pluginStory(20)}).draw(&out); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(&out)
	for elements := 0; ; elements++ {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) && elements > 10 {
			return
		} else if err != nil {
			t.Fatalf("not a picture, after %d elements: %v", elements, err)
		}
	}
}
