package lab

import (
	"errors"
	"syscall"
)

// Signal sends a signal to the controller's process alone, not to its plugin.
// With SIGSTOP and SIGCONT a test plays a controller that does nothing for a
// while, as in its back-off, with its plugin at work.
func (c *Controller) Signal(signal syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc == nil || c.proc.cmd == nil || c.proc.cmd.Process == nil {
		return errors.New("the controller does not run")
	}
	return c.proc.cmd.Process.Signal(signal)
}
