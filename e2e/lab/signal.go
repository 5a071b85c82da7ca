package lab

import (
	"errors"
	"syscall"
)

// Kill ends the controller at once, and with it its plugin, as the loss of their
// node does. Start brings it back.
func (c *Controller) Kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc == nil || c.proc.ended() {
		return errors.New("the controller does not run")
	}
	c.proc.kill()
	<-c.proc.done
	return nil
}

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
