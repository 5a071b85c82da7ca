package prometheus_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/prometheus"
)

// source answers when it is told to.
type source struct {
	asked  chan gate.Question
	answer chan func() (gate.Numbers, error)
}

func newSource() *source {
	return &source{asked: make(chan gate.Question, 10), answer: make(chan func() (gate.Numbers, error))}
}

func (s *source) Numbers(ctx context.Context, q gate.Question) (gate.Numbers, error) {
	s.asked <- q
	select {
	case f := <-s.answer:
		return f()
	case <-ctx.Done():
		return gate.Numbers{}, ctx.Err()
	}
}

func newDesk() (*source, *prometheus.Desk, chan types.UID) {
	s, told := newSource(), make(chan types.UID, 10)
	d := prometheus.NewDesk(s)
	d.OnAnswered(func(rollout types.UID) { told <- rollout })
	return s, d, told
}

func TestTheDeskAsksOnceAndKeepsTheAnswer(t *testing.T) {
	s, d, told := newDesk()
	q := question("http://p")
	d.Ask(q)
	<-s.asked
	d.Ask(q)
	if d.Answer("uid") != nil {
		t.Error("there is an answer already")
	}
	s.answer <- func() (gate.Numbers, error) { return gate.Numbers{Known: true}, nil }
	if rollout := <-told; rollout != "uid" {
		t.Errorf("told of %q", rollout)
	}
	if a := d.Answer("uid"); a == nil || *a != (gate.Answer{Question: q, Numbers: gate.Numbers{Known: true}}) {
		t.Errorf("the answer is %+v", a)
	}
	d.Ask(q)
	if len(s.asked) != 0 {
		t.Error("it is asked again")
	}
	if d.Answer("another") != nil {
		t.Error("there is an answer about another Rollout")
	}
}

func TestANewQuestionTakesThePlaceOfTheOneUnderWay(t *testing.T) {
	s, d, told := newDesk()
	first, second := question("http://p"), question("http://p")
	second.To = second.To.Add(time.Minute)
	d.Ask(first)
	<-s.asked
	d.Ask(second)
	<-s.asked
	failed := errors.New("away")
	s.answer <- func() (gate.Numbers, error) { return gate.Numbers{}, failed }
	<-told
	if a := d.Answer("uid"); a == nil || a.Question != second || !errors.Is(a.Err, failed) {
		t.Errorf("the answer is %+v", a)
	}
	if len(told) != 0 {
		t.Error("the question that was given up is answered, too")
	}
}

func TestWhatIsForgottenIsNotAnswered(t *testing.T) {
	s, d, told := newDesk()
	d.Ask(question("http://p"))
	<-s.asked
	d.Forget("uid")
	d.Ask(question("http://p"))
	<-s.asked
	s.answer <- func() (gate.Numbers, error) { return gate.Numbers{}, nil }
	<-told
	d.Forget("uid")
	d.Forget("uid")
	if d.Answer("uid") != nil || len(told) != 0 {
		t.Error("there is an answer")
	}
}

func TestAPanicOverOneQuestionIsItsAnswer(t *testing.T) {
	s, d, told := newDesk()
	d.Ask(question("http://p"))
	<-s.asked
	s.answer <- func() (gate.Numbers, error) { panic("at the disco") }
	<-told
	if a := d.Answer("uid"); a == nil || a.Err == nil || !strings.Contains(a.Err.Error(), "at the disco") {
		t.Errorf("the answer is %+v", a)
	}
}
