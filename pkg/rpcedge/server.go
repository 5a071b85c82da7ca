package rpcedge

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/utils/plugin/types"
)

// DefaultTimeout is how long one call may take. The controller sets no bound of
// its own, so a call that hangs would keep one of its workers for ever.
const DefaultTimeout = 10 * time.Second

// Router does what the calls ask for. Its errors are meant for the Rollout's
// owner and reach the controller as they are.
type Router interface {
	UpdateHash(ctx context.Context, ro *v1alpha1.Rollout, canaryHash, stableHash string, additional []v1alpha1.WeightDestination) error
	SetWeight(ctx context.Context, ro *v1alpha1.Rollout, desired int32, additional []v1alpha1.WeightDestination) error
	VerifyWeight(ctx context.Context, ro *v1alpha1.Rollout, desired int32, additional []v1alpha1.WeightDestination) (bool, error)
	SetHeaderRoute(ctx context.Context, ro *v1alpha1.Rollout, step *v1alpha1.SetHeaderRoute) error
	SetMirrorRoute(ctx context.Context, ro *v1alpha1.Rollout, step *v1alpha1.SetMirrorRoute) error
	RemoveManagedRoutes(ctx context.Context, ro *v1alpha1.Rollout) error
}

// Server answers the controller. The controller calls it from many goroutines
// at once; it has no state, so it is as safe as its Router.
type Server struct {
	// Name is what the controller logs as the type of the traffic router.
	Name string
	// Ready starts what the Router needs and says why it is not there yet. It is
	// called before every call and has to be cheap once it has succeeded.
	Ready func(context.Context) error
	// Router does the work.
	Router Router
	// Called is told of every call, whatever it is for; nil is told nothing.
	Called func()
	// Observe is told how long each call took and how it ended; nil is told nothing.
	Observe func(rpc string, took time.Duration, err error)
	// Timeout bounds each call; 0 means DefaultTimeout.
	Timeout time.Duration
	// Log gets calls that failed and panics.
	Log hclog.Logger
}

// InitPlugin begins the start and answers without waiting for it. An error here
// would gain nothing: the controller keeps the process, never calls InitPlugin
// again, and uses the plugin as if it had succeeded.
func (s *Server) InitPlugin() types.RpcError {
	go func() {
		if err := s.guarded("InitPlugin", s.Log, s.Ready); err != nil {
			s.Log.Warn("not ready yet, the next call tries again", "error", err)
		}
	}()
	return types.RpcError{}
}

// Type names the router in the controller's log.
func (s *Server) Type() string {
	s.called()
	return s.Name
}

func (s *Server) called() {
	if s.Called != nil {
		s.Called()
	}
}

// UpdateHash points the two sides at the pods of the two hashes.
func (s *Server) UpdateHash(ro *v1alpha1.Rollout, canaryHash, stableHash string, additional []v1alpha1.WeightDestination) types.RpcError {
	return rpcError(s.call("UpdateHash", ro, func(ctx context.Context) error {
		return s.Router.UpdateHash(ctx, ro, canaryHash, stableHash, additional)
	}))
}

// SetWeight gives the canary desired parts of maxTrafficWeight, or what its pods
// can take.
func (s *Server) SetWeight(ro *v1alpha1.Rollout, desired int32, additional []v1alpha1.WeightDestination) types.RpcError {
	return rpcError(s.call("SetWeight", ro, func(ctx context.Context) error {
		return s.Router.SetWeight(ctx, ro, desired, additional)
	}))
}

// VerifyWeight answers NotVerified together with every error: the controller
// then records the truth and goes on with scaling, deadline and abort.
func (s *Server) VerifyWeight(ro *v1alpha1.Rollout, desired int32, additional []v1alpha1.WeightDestination) (types.RpcVerified, types.RpcError) {
	verified := false
	err := s.call("VerifyWeight", ro, func(ctx context.Context) (err error) {
		verified, err = s.Router.VerifyWeight(ctx, ro, desired, additional)
		return err
	})
	if err != nil || !verified {
		return types.NotVerified, rpcError(err)
	}
	return types.Verified, types.RpcError{}
}

// SetHeaderRoute sends requests with certain headers to the canary.
func (s *Server) SetHeaderRoute(ro *v1alpha1.Rollout, step *v1alpha1.SetHeaderRoute) types.RpcError {
	return rpcError(s.call("SetHeaderRoute", ro, func(ctx context.Context) error {
		return s.Router.SetHeaderRoute(ctx, ro, step)
	}))
}

// SetMirrorRoute sends copies of requests to the canary.
func (s *Server) SetMirrorRoute(ro *v1alpha1.Rollout, step *v1alpha1.SetMirrorRoute) types.RpcError {
	return rpcError(s.call("SetMirrorRoute", ro, func(ctx context.Context) error {
		return s.Router.SetMirrorRoute(ctx, ro, step)
	}))
}

// RemoveManagedRoutes takes away what SetHeaderRoute and SetMirrorRoute made.
func (s *Server) RemoveManagedRoutes(ro *v1alpha1.Rollout) types.RpcError {
	return rpcError(s.call("RemoveManagedRoutes", ro, func(ctx context.Context) error {
		return s.Router.RemoveManagedRoutes(ctx, ro)
	}))
}

// call runs one RPC: ready first, then the work, both within one deadline.
func (s *Server) call(name string, ro *v1alpha1.Rollout, work func(context.Context) error) error {
	s.called()
	began := time.Now()
	log := s.Log.With("rpc", name, "namespace", ro.Namespace, "rollout", ro.Name)
	err := s.guarded(name, log, func(ctx context.Context) error {
		if err := s.Ready(ctx); err != nil {
			return err
		}
		return work(ctx)
	})
	if err != nil {
		// Debug, since the controller logs every error it gets and reports it as
		// an Event; a second line for each of its retries would say no more.
		log.Debug("answered with an error", "error", err)
	}
	if s.Observe != nil {
		s.Observe(name, time.Since(began), err)
	}
	return err
}

// guarded bounds work in time and turns a panic into an error.
func (s *Server) guarded(name string, log hclog.Logger, work func(context.Context) error) (err error) {
	timeout := s.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			log.Error("recovered from a panic, please report it", "panic", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("%s: internal error: %v (the plugin goes on; its log has the stack)", name, cause)
		}
	}()
	if err = work(ctx); errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%s: not done within %s (--rpc-timeout): %w", name, timeout, err)
	}
	return err
}

func rpcError(err error) types.RpcError {
	if err == nil {
		return types.RpcError{}
	}
	if err.Error() == "" {
		// The wire knows an error only by its text.
		return types.RpcError{ErrorString: "unknown error"}
	}
	return types.RpcError{ErrorString: err.Error()}
}
