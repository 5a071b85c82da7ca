package cli

import (
	"fmt"
	"sync"
	"time"
)

// during tells on Err what is being done, if it takes longer than a person waits
// without wondering.
func (p *Program) during(what string, do func() error) error {
	patience := p.patience
	if patience == 0 {
		patience = time.Second
	}
	var mu sync.Mutex
	done := false
	timer := time.AfterFunc(patience, func() {
		mu.Lock()
		defer mu.Unlock()
		if !done {
			fmt.Fprintf(p.Err, "%s …\n", what)
		}
	})
	err := do()
	timer.Stop()
	mu.Lock()
	done = true // nothing is said about it any more
	mu.Unlock()
	return err
}
