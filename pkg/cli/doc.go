// Package cli is the program as a person runs it: kubectl-like commands over the same
// packages that the plugin is made of. The plugin itself, started by the controller,
// has nothing to do with this package and prints nothing by it.
//
//	os.Exit(cli.Run(ctx, os.Args[1:], cli.Program{Name: os.Args[0], Version: version, In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
//
// A command reads (files, or a cluster through the small interface reader), hands all
// of it to a pure package, and prints what that answers: what was asked for on Out,
// progress and errors on Err. It never writes to a cluster.
//
// Exit codes: 0 all is well, 1 there are findings at or above the threshold, 2 the
// command could not run, or there was nothing to judge.
//
// A new command is one function in the list commands. It binds clusterFlags to reach a
// cluster as kubectl does, and prints through format.
package cli
