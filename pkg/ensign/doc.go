// Package ensign makes a manager whose reconcilers are Ansible's roles and playbooks, Helm charts,
// and Go: what one kind needs is written where it is said best.
//
// A program makes a Manager, gives it watches and reconcilers of its own, and starts it:
//
//	mgr, err := ensign.NewManager(cfg, ctrl.Options{Scheme: scheme}, ensign.Options{})
//	list, err := mgr.LoadWatches(ctx, "watches.yaml")
//	for _, w := range list { err = mgr.AddWatch(w) }
//	err = (&BackupReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr)
//	err = mgr.Start(ctx)
//
// The program "manager" does the same, with flags in front.
//
// # What is needed
//
// Roles and playbooks need a Python environment with ansible-core and ansible-runner; charts need
// the program chart-exec beside Options.Executable. A manager without a watch of the kind needs
// neither.
//
// # What a process has once
//
// The package sets no global: no signals, no ctrl.SetLogger, no klog, no environment. Two managers
// in one process need a run directory (Options.RunDir), ports, and a registry for metrics
// (Options.Registerer) each, and where they keep something in one namespace, a
// ctrl.Options.LeaderElectionID each, with or without leader election: its name begins with that.
// Metrics of controller-runtime, and the names of the program's own controllers, are those of the
// process.
package ensign
